//! Restores archived and deleted objects: creates them in the cluster again.
//!
//! `choose` selects the row of a name, and `manifest` makes the new object; both are pure. `owners` looks up the
//! owners, `holds` sees to what the object holds, and `run` sends the requests.

mod choose;

mod manifest;

mod owners;

mod holds;

mod run;

pub use choose::{Choice, choose, choose_under};
pub use manifest::{Manifest, ManifestError};
pub use owners::OmittedOwner;
pub use run::{Mode, Outcome, RestoreError, RestoreReport, Restorer};
