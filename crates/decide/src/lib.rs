//! Every decision of the ingester and of the repair commands on an object and its row, as pure, total functions without
//! state. Writing rows and removing finalizers is up to the callers.
//!
//! [`row`] compares a row with the observed version of its object; all decisions build on that. [`ingest`] decides for
//! the ingester, which watches the cluster and carries out effects; [`repair`] for commands that may run beside an
//! ingester, see less and therefore do less. Modules are in reading order: each imports only those above it.

pub mod row;

pub mod ingest;

pub mod repair;
