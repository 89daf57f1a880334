//! From a request, as either transport decoded it, to what the store takes in. A fault of the request refuses it; a
//! fault of an item drops the item with a warning. Pure: the time of receipt is a parameter.

mod field;

mod hash;

mod points;

mod texts;

mod batch;

mod run;

pub use batch::{Sent, batch, log_metrics};
pub(crate) use field::{artifact_name, optional_project};
pub use field::{project, run_id, within};
pub use points::Oversized;
pub use run::{finish_run, init_run};
pub use texts::{log_params, log_tags};

#[cfg(test)]
mod tests;
