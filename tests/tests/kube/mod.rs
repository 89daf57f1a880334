//! The embedded Kubernetes API server, looked at from outside: the real kubectl, kube-rs, and plain HTTP.

mod cluster;

mod kubectl;
mod refusals;

mod access;
mod certificate;
mod lifecycle;
mod limits;
mod paging;
mod transcripts;
mod updates;
mod versions;
mod watches;
mod webhook;
