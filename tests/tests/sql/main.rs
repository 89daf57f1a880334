//! The integration tests of what Kindex makes of SQL databases, of the chart, and of the embedded cluster beside a
//! kube-apiserver: each area is a module. All others are the program `main`, in the folder above; the two build side by
//! side. Name an area to run it alone:
//! `cargo test -p kindex-tests --test sql store::`.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]
#![expect(
    unreachable_pub,
    reason = "a test binary exports nothing: `pub` says what its areas share"
)]

mod store;

mod schema;

mod adopt;
mod compare;
mod deploy;
mod plan;
