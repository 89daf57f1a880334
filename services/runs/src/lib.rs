//! Runs: takes in the metrics, parameters, tags and artifacts of training jobs over gRPC and REST, and answers for
//! them. An answer means that what was sent is durable. Knows no Kubernetes and no kind.

pub mod wire;

pub mod refusal;

pub mod limits;

pub mod domain;

pub mod ledger;

pub mod lifecycle;

pub mod secrets;

pub mod token;

pub mod validate;

pub mod keys;

pub mod store;

#[cfg(test)]
mod fixture;

pub mod metrics;

pub mod roles;

pub mod read;

pub mod artifacts;

pub mod operations;

pub mod grpc;

pub mod pack;

pub mod front;

pub mod rest;

pub mod service;
