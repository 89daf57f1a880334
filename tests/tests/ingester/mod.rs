//! The ingester beyond `decide`: one controller fed by hand, and the driver with
//! clusters and databases in memory.

mod batches;
mod bench;
mod driver;
mod fakes;
mod gaps;
mod held;
mod history;
mod leaving;
mod outage;
mod owners;
mod races;
mod release_archived;
mod release_namespaces;
mod releases;
mod restoration;
mod store_errors;
mod unrecorded;
