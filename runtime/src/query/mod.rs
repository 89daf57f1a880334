//! Typed queries over the stored objects of one kind. A generated module names the
//! columns and says which of them lead a key; the types here carry that knowledge, so
//! that a query which would read a whole table does not compile. Knows no kind.
//!
//! ```text
//! let failed = pipeline_run::query()
//!     .state().eq(PipelineRunState::Failed)
//!     .label("team", "fraud")
//!     .live()
//!     .order_by_update_time()
//!     .limit(50)
//!     .fetch(&*store)
//!     .await?;
//! ```

pub mod column;

mod filter;
mod select;
mod state;
mod typed;

pub use jiff::Timestamp;

pub use self::column::{Column, EnumColumn, TextColumn};
pub use self::filter::Filter;
pub use self::select::{Dialect, Direction, Select, Statement};
pub use self::state::{All, LeadsAKey, Narrowed, Newest, Runnable, Scan, State};
pub use self::typed::TypedQuery;

#[cfg(test)]
mod tests;
