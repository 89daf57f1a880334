//! Structural schemas of custom resources: compiled once from a CustomResourceDefinition, then used to prune, default,
//! validate and merge objects, with the rules and the words of the Kubernetes API server. Everything here is a pure
//! function over [`serde_json::Value`]; the module knows nothing of HTTP, storage and time.
//!
//! The walks recurse along the value. Their depth is bounded because request bodies are read with a nesting limit
//! of 128 levels (`decode`), and schemas come in such bodies too.

mod formats;

mod go_regex;

mod go_text;

mod problem;

mod cel;

mod structural;

mod defaults;

mod listtype;

mod metadata;

mod prune;

mod validate;

mod check;

mod compile;

pub use defaults::{TooLarge, apply_defaults};
pub use go_text::{number as number_text, quote};
pub use metadata::coerce_metadata;
pub use problem::{FieldError, FieldReason};
pub use prune::prune;
pub use structural::{Additional, ListType, Structural, Type};
pub use validate::validate_update;
