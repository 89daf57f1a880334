//! The integration tests but for those of the program `sql`, in the folder of that name: each area is a module. The two
//! build side by side. Name an area to run it alone: `cargo test -p kindex-tests --test main api::`.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]
#![expect(
    unreachable_pub,
    reason = "a test binary exports nothing: `pub` says what its areas share"
)]

mod api;
mod ci;
mod fidelity;
mod golden;
mod ingester;
mod kube;
mod outside;
mod proxy;
mod reject;
mod sim;
mod tidy;
mod versions;
