//! What the load programs share: objects of a fixed shape, the patterns that Kindex's
//! writer is measured against, and how figures are taken and shown.

pub mod figures;

pub mod objects;

pub mod many;

pub mod load_data;

pub mod reference;

pub mod load_server;

pub mod child;

pub mod clients;

pub mod grpc;

pub mod stale;

pub mod upstream;

pub mod runs;

pub mod tree;
