//! What a request asks for: its path, its query, the form in which the answer is wanted. Pure parsing; refuses to know
//! whether what is asked for exists.

mod accept;
mod path;
mod query;

pub(crate) use accept::{Rendering, rendering, wants_aggregated_discovery};
pub(crate) use path::{ResourcePath, Subresource, Target, parse as parse_path};
pub(crate) use query::{FieldValidation, ListQuery, Query, VersionMatch};
