//! What can be asked of the writer, a file for each command: reads, decides by the pure rules, then writes.

mod release;

mod attributes;

mod log;

mod open;

mod finish;

mod heartbeat;

mod tick;

mod delete;

mod probe;

mod shrink;

pub(super) use attributes::{LogParams, LogTags};
pub(super) use delete::{DeleteRun, PurgeDeleted};
pub(super) use finish::Finish;
pub(super) use heartbeat::Heartbeat;
pub(super) use log::LogBatch;
pub(super) use open::Open;
pub(super) use probe::Probe;
pub(super) use shrink::Shrink;
pub use tick::TickReport;
pub(super) use tick::{ForgetBatches, GiveUpCrashed, Tick};
