//! What to do about one object and its row: every such decision of the ingester and of the repair commands, as pure,
//! total functions. Knows neither how a row is written nor how a finalizer is removed, and keeps nothing between two
//! calls.
//!
//! [`row`] says how a row stands to the version of its object that was observed; all decisions are made of that.
//! [`ingest`] decides for who follows the cluster and carries effects out; [`repair`] for commands that may run beside
//! an ingester, see less, and therefore do less. Modules are in reading order: each imports only those above it.

pub mod row;

pub mod ingest;

pub mod repair;
