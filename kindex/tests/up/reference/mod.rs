//! The tests that the design document of Michelangelo's ingester asks for, each under its name there, against the
//! real binary, with MariaDB as the store and on both sorts of cluster. `docs/src/reference/scenarios.md` says which
//! test holds which scenario, and which holds which defect of that ingester.

mod stage;

mod alone;
mod disabling;
mod enabling;
mod finalizers;
mod reconcile;
