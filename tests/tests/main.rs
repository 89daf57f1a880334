//! All integration tests, one binary: each area is a module. Name an area to run it alone:
//! `cargo test -p kindex-tests store::`.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]
#![expect(
    unreachable_pub,
    reason = "a test binary exports nothing: `pub` says what its areas share"
)]

mod adopt;
mod api;
mod ci;
mod compare;
mod deploy;
mod fidelity;
mod golden;
mod ingester;
mod kube;
mod outside;
mod plan;
mod proxy;
mod reject;
mod schema;
mod sim;
mod store;
mod tidy;
mod versions;
