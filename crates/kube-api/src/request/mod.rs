//! Parses a request: its path, its query and the accepted formats of the answer.

mod accept;
mod escape;

mod path;
mod query;

pub use accept::wants_aggregated_discovery;
pub use accept::{Rendering, rendering};
pub use escape::{escaped, unescaped};
pub use path::{Collection, ResourcePath, Subresource, Target, group_version, parse as parse_path};
pub use query::Query;
pub use query::{FieldValidation, ListQuery, QueryError, VersionMatch};
