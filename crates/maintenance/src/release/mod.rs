//! Removes the finalizers of Kindex from all objects, so that they can be deleted while no ingester and no deletion
//! service runs. No object is released before SQL holds it, and SQL holds the released version afterwards.
//!
//! `run` reads the list, `alone` checks that no service runs, `page` stores and releases, `refusals` says what is not
//! tried any more because the cluster refuses it from its beginning.

mod options;

mod refusals;

mod page;

mod alone;

mod run;

pub use alone::StoppedServices;
pub use options::{Options, ReleaseSides};
pub use page::Released;
pub use refusals::RefusedAlike;
pub use run::release;
