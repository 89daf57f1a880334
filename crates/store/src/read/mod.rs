//! Reading objects: by name and by uid, and by queries in pages.

pub(crate) mod page;

mod replaced;

mod objects;

mod lead;

mod reader;

mod queries;

mod naming;

mod owners;

#[cfg(test)]
mod query_bounds;

pub use naming::select_naming;
pub use objects::{Counts, ListQuery, Objects, RowsOfName};
pub use owners::Owners;
pub use queries::Queries;
