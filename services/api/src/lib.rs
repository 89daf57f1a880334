//! The API server: one Kubernetes API over the cluster and SQL, in which live and archived objects are served together.
//! `operations` implements the verbs, independent of HTTP; `rest` serves Kubernetes' paths and `grpc` the emitted
//! services; `server` listens. The kinds come from the registry.

pub mod metrics;

pub mod operations;

pub mod columns;

mod identity;
mod watched;

pub mod rest;

pub mod grpc;

pub mod server;
