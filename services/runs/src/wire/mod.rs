//! The messages and services of `mlrun.v1`, as `proto/` says them.

mod exact;

mod columns;

mod codec;

pub use codec::Codec;
pub use columns::{MetricColumns, Sent};
pub use exact::{MetricPoint, MetricStats};

/// Messages, servers and clients.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub mod v1 {
    tonic::include_proto!("mlrun.v1");

    pub use super::{MetricColumns as MetricBatch, MetricPoint, MetricStats};
}

/// The encoded `google.protobuf.FileDescriptorSet` of all files and what they import.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
