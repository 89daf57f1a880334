//! Logs metrics of a training job to the runs service of Kindex, from a thread of its own.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use kindex_runs_client::{Run, Settings, Status};
//!
//! # fn main() -> Result<(), kindex_runs_client::Error> {
//! let run = Run::start(Settings::new("http://127.0.0.1:50051", "demo"))?;
//! for step in 0..1000 {
//!     run.log(step, &[("loss", 1.0 / (step + 1) as f64)])?;
//! }
//! run.finish(Status::Finished, Duration::from_secs(60))?;
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//! - [`Run::start`] and [`Run::log`] wait neither for the network nor for the service. The service may be away when a
//!   run starts.
//! - What `log` took is sent in batches, in the order of the calls, each with an id of its own. A batch is sent again,
//!   as the same batch, until it is answered, and the next one is sent after that. The service stores it once.
//! - An answer means what the service's `--durability` says.
//! - [`Run::flush`] and [`Run::finish`] wait until everything is answered, or until their timeout has passed. They
//!   return how many points were stored and dropped, or how many were not answered.
//! - A run that the service took for crashed, because nothing reached it for five minutes, is resumed, also after an
//!   outage of up to six days.
//!
//! # What is not guaranteed
//! - Points are in memory until they are answered. If the process ends before, they are lost: call `flush` or `finish`.
//! - The memory is bounded by [`Settings::buffer_points`]. When it is full, `log` returns [`Error::Full`] and takes
//!   nothing of that call.
//! - A run that is dropped without `finish` stays running: nothing more of it is sent, and five minutes later the
//!   service marks it as crashed.
//! - After an outage of more than six days, the service may no longer resume a crashed run, and refuses it for good.
//! - If the service refuses something for good, such as a key, nothing more is sent, and all later calls return
//!   [`Error::Refused`].

mod error;

#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod wire;

mod settings;

mod buffer;

mod shared;

mod link;

mod sender;

mod run;

pub use error::{Error, Refusal};
pub use run::Run;
pub use settings::{Settings, Status};
pub use shared::Report;
