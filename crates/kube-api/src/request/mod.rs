//! What a request asks for: its path, its query, the form in which the answer is wanted. Pure parsing; refuses to know
//! whether what is asked for exists.

mod accept;
mod escape;

mod path;
mod query;

pub use accept::wants_aggregated_discovery;
pub use accept::{Rendering, rendering};
pub use escape::escaped;
pub use path::{Collection, ResourcePath, Subresource, Target, group_version, parse as parse_path};
pub use query::Query;
pub use query::{FieldValidation, ListQuery, QueryError, VersionMatch};
