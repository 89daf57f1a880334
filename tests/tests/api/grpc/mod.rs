//! The API server asked over gRPC by a client that knows the services from their descriptors alone.

pub(super) mod client;
mod errors;
mod events;
mod forecasts;
mod lists;
mod nonsense;
mod past;
mod references;
mod rights;
mod searches;
mod services;
mod storage_off;
mod verbs;
mod watches;
