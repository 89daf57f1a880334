//! Typed messages as Kubernetes objects: the well-known types with both their encodings, the serde
//! adapters that generated messages name in their attributes, and the decoding of an object's text
//! with every disagreement reported by path. Knows no kind.
//!
//! A generated message is a plain prost message. Its JSON follows Kubernetes and protojson: fields
//! by their JSON names, enums by name, bytes in base64, 64-bit integers as numbers (strings are
//! read too), `null` as absent, zero values left out, a oneof's member directly in its message.
//! What serde derives by itself is left to it; the rest is said in an attribute such as
//! `#[serde(with = "kindex_model::wire::Plain::<kindex_model::wire::Name<State>>")]`: a *shape* ([`Plain`],
//! [`Optional`], [`Repeated`], [`Map`]) around a *codec* (`i64`, [`Base64`], [`Name`], …).

mod report;

mod tracked;

mod decode;

mod shape;

mod number;

mod text;

mod oneof;

mod rfc3339;

mod time;

mod duration;

mod json;

mod any;

mod kubernetes;

mod meta;

mod column;

mod root;

pub use any::Any;
pub use column::{enum_name, json_text, non_default, own_namespace};
pub use decode::{Decoded, decode};
pub use duration::{Duration, GoDuration};
pub use json::{ListValue, Struct, Value};
pub use kubernetes::{IntOrString, Quantity, RawJson};
pub use meta::{ListMeta, ManagedFieldsEntry, ObjectMeta, OwnerReference, TypeMeta};
pub use oneof::{Oneof, oneof};
pub use report::report;
pub use root::{List, NoStatus, Part, Root, decode_root, encode_root};
pub use shape::{Codec, Map, MapKey, Nested, Optional, Plain, Repeated, or_default, present, unset};
pub use text::{Base64, Empty, FieldMask, Name, ProtoEnum};
pub use time::{MicroTime, Time, Timestamp};

#[cfg(test)]
mod tests;
