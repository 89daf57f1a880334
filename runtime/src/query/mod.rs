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
//!     .limit(50);
//! let mut page = failed.fetch(&*store).await?;
//! while let Some(token) = &page.continue_token {
//!     page = failed.fetch_after(&*store, token).await?;
//! }
//! ```

pub mod column;

mod fetch;
mod filter;
mod label_selector;
mod reach;
mod state;
mod text;
mod typed;

pub use jiff::Timestamp;

pub use self::column::{Column, EnumColumn, TextColumn};
pub use self::fetch::{Fetched, first};
pub use self::filter::Filter;
pub use self::label_selector::{LabelSelector, LabelSelectorError};
pub use self::reach::Reach;
pub use self::state::{All, LeadsAKey, Narrowed, Newest, Runnable, Scan, State};
pub use self::text::TextError;
pub use self::typed::TypedQuery;
pub use crate::store::{Dialect, Direction, MetadataStorage, Page, Select, Statement, Stored};

#[cfg(test)]
mod tests;
