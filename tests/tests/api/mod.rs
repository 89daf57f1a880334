//! The API server over an embedded cluster, a real ingester and real databases, asked over HTTP as any client asks.

mod each_right;
mod early;
mod encrypted;
mod following;
mod full;
mod grpc;
mod guard;
mod http2;
mod large;
mod lifecycle;
mod limits;
mod lists;
mod nonsense;
mod program;
mod real;
mod replaced;
mod rights;
mod sizes;
mod slow;
mod stage;
mod storage_off;
mod stored;
mod watches;
mod watches_of_sql;
mod watches_with_selectors;
mod windows;
