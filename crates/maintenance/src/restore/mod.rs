//! Creates objects in the cluster again that only SQL holds: evicted or deleted ones.
//!
//! `choose` says which row of a name is meant, `manifest` what is sent; both are pure. `owners`
//! asks what has become of the owners, and `run` does it.

mod choose;

mod manifest;

mod owners;

mod run;

pub use choose::{Choice, choose, choose_under};
pub use manifest::{Manifest, ManifestError};
pub use owners::LeftOut;
pub use run::{Done, Mode, Outcome, RestoreError, Restorer};
