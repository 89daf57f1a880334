//! Real faults: the ingester's own process, real databases and a real network between
//! them, broken under load. After each fault SQL equals the cluster, nothing is lost, and
//! the time until rows come again is reported. `KINDEX_FAULTS=full` makes each fault as
//! often as a release deserves; otherwise each is made a few times.

mod database;
mod ingester;
mod objects;
mod report;

mod held;

mod load;

mod stage;

mod judge;

mod galera;
mod kills;
mod network;
mod planted;
mod replicas;
mod runs;
mod server;
mod stalls;

/// How often a fault is made: this often where everything is wanted, else so often.
fn times(full: usize, quick: usize) -> usize {
    match std::env::var("KINDEX_FAULTS").as_deref() {
        Ok("full") => full,
        Ok(_) | Err(_) => quick,
    }
}
