//! Typed queries over the stored objects of one kind. A generated module names the
//! columns and says which of them lead a key; the types here carry that knowledge, so
//! that a query which would read a whole table does not compile. Knows no kind.
//!
//! ```text
//! let failed = pipeline_run::query()
//!     .state().eq(PipelineRunState::Failed)
//!     .label("team", "fraud")
//!     .live()
//!     .order_by(pipeline_run::UPDATE_TIME).desc()
//!     .limit(50);
//! let page = failed.fetch(&*store).await?;
//! let rows = failed.select((pipeline_run::NAME, pipeline_run::END_TIME)).stream(&*store);
//! ```

pub mod pattern;

pub mod select;

mod fixed;

mod named;

mod stored;

mod row_state;

mod page;

mod reader;

mod fetch;

mod narrowing;

pub mod column;

mod text;

mod criteria;

mod expression;

mod labels;

mod reach;

mod gathered;

mod reference;

mod typed;

mod filter;

mod order;

mod projection;

mod joined;

mod declare;

pub use jiff::Timestamp;
pub use kindex_kube_api::selector::{LabelSelector, SelectorError};
#[doc(hidden)]
pub use kindex_model as model;

pub use self::column::{Column, ColumnOf, EnumColumn, EnumName, TextColumn, base};
pub use self::criteria::{Criterion, CriterionOperation, CriterionOperator, LogicalOperator};
pub use self::fetch::{Fetched, Streamed, all, first};
pub use self::filter::Filter;
pub use self::joined::{Joined, References};
pub use self::labels::LabelsTooLarge;
pub use self::named::{TemplateError, named_query};
pub use self::narrowing::{LeadsAKey, Narrowed, Narrowing, Newest, Runnable, Scan, WholeTable};
pub use self::order::Ordering;
pub use self::page::Page;
pub use self::projection::{Columns, Projection};
pub use self::reach::Reach;
pub use self::reader::{MistypedColumn, Reader, Selection};
pub use self::reference::{Named, Reference};
pub use self::row_state::{Arrival, RowState};
pub use self::select::{Direction, Select};
pub use self::stored::{Life, Revive, Stored};
pub use self::text::TextError;
pub use self::typed::TypedQuery;
