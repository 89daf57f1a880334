//! The ingester beyond `decide`: one controller fed by hand, and the driver with
//! clusters and databases in memory.

mod bench;
mod fakes;

mod driver;
mod gaps;
mod leaving;

mod batches;
mod held;
mod history;
mod outage;
mod owners;
mod races;
mod release_archived;
mod release_namespaces;
mod releases;
mod restoration;
mod store_errors;
mod unrecorded;
