//! Parses a request: its path, its query, its verb, the accepted formats of the answer, and the options of a deletion.

mod accept;
mod escape;

pub mod parameter;

mod path;
mod query;

mod delete;
mod verb;

pub use accept::wants_aggregated_discovery;
pub use accept::{Rendering, rendering};
pub use delete::{DeleteOptions, Preconditions, Propagation, PropagationError};
pub use escape::{escaped, unescaped};
pub use path::{
    API, APIS, Collection, ResourcePath, Subresource, Target, group_path, group_version, parse as parse_path,
};
pub use query::{FieldValidation, ListQuery, Query, QueryError, VersionMatch};
pub use verb::Verb;
