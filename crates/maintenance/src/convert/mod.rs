//! Converts the rows of archived and deleted objects to their kind's own version, and drops the texts that they had
//! before. Live rows are left to the ingester: once the migration of a kind's objects has rewritten an object in the
//! cluster, its event brings the row along.

mod options;

mod plan;

mod resume;

mod refused;

mod page;

mod run;

mod kept;

pub use kept::drop_kept;
pub use options::{Mode, Options};
pub use plan::Refusal;
pub use refused::refused_rows;
pub use run::{Converted, PAGES_AT_ONCE, REFUSALS_MAX, convert};
