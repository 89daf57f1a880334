//! Writing rows: what an ingester does, and how a batch of it becomes one transaction.

mod plan;

mod versions;

mod main_row;

mod batch;

mod keep;

mod replaced;

mod feed;

mod events;

mod outbox;

mod references;

mod restored;

mod apply;

mod rows;

mod rewind;

mod checkpoints;

mod record;

mod quarantine;

pub(crate) use batch::{Batch, Work};
pub use checkpoints::{CheckpointOutcome, Checkpoints};
pub(crate) use events::Event;
pub(crate) use feed::FeedEntry;
pub use feed::{CHANGES_KEPT, Position, SQL_ONLY_CHANGES_KEPT};
pub(crate) use feed::{number, position};
pub use outbox::TOMBSTONES_KEPT;
pub(crate) use outbox::{OutboxWork, advance, append, end};
pub(crate) use plan::{NewRow, replacement};
pub use quarantine::{Quarantine, QuarantineRecord, QuarantineRecords, Quarantined};
pub use record::is_cut;
pub(crate) use references::{DeletionMode, NewReference};
pub(crate) use replaced::{forget, list, state_name};
pub use rewind::Rewind;
pub use rows::Rows;
pub(crate) use versions::HistoryBatch;
