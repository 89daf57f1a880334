//! What the service is about once a request has been checked: ids, points in columns, batches, runs and warnings.
//! Knows neither transport nor storage.

mod ids;

mod time;

mod points;

pub mod warning;

mod batch;

mod run;

pub use batch::{Batch, Logged, ParamsChange, ParamsLogged, TagsChange, TagsLogged};
pub use ids::{BatchId, MetricName, ProjectName, RunId, RunIds};
pub use points::Points;
pub use run::{FinishRun, Finished, HeartbeatAnswer, NewRun, Opened, PresentedToken, Run, Status};
pub use time::{Clock, from_wire, nanos, system_clock, timestamp, to_wire};
