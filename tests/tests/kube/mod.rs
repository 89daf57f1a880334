//! The embedded Kubernetes API server, looked at from outside: the real kubectl, kube-rs, and plain HTTP.

mod access;
mod certificate;
mod cluster;
mod kubectl;
mod lifecycle;
mod limits;
mod paging;
mod refusals;
mod transcripts;
mod updates;
mod versions;
mod watches;
mod webhook;
