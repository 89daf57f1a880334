//! Parses a request: its path, its query, its verb, the accepted formats of the answer, and the options of a deletion.

mod accept;
mod delete;
mod escape;

mod path;
mod query;
mod verb;

pub use accept::wants_aggregated_discovery;
pub use accept::{Rendering, rendering};
pub use delete::{DeleteOptions, Preconditions};
pub use escape::{escaped, unescaped};
pub use path::{
    API, APIS, Collection, ResourcePath, Subresource, Target, group_path, group_version, parse as parse_path,
};
pub use query::{FIELD_SELECTOR, LABEL_SELECTOR, Query};
pub use query::{FieldValidation, ListQuery, QueryError, VersionMatch};
pub use verb::Verb;
