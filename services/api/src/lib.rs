//! The API server: one Kubernetes API over the cluster and SQL, in which an object keeps its name and its history
//! wherever it lives. `operations` says what each verb means and knows no HTTP server; `rest` speaks Kubernetes'
//! paths and `grpc` the services that are emitted for the kinds; `server` listens. Knows no kind: the registry brings
//! them.

pub mod figures;

pub mod operations;

pub mod columns;

mod identity;
mod watched;

pub mod rest;

pub mod grpc;

pub mod server;
