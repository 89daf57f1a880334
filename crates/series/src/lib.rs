//! Series of numbers over steps: columns, their encodings, merges, statistics, and fewer points of them. Values in,
//! values out: knows no run, no store, no clock and no network.

mod points;
pub use points::{Columns, Series};

mod error;
pub use error::DecodeError;

mod varint;

mod planes;

mod values;

pub mod batch;

pub mod chunk;
pub use chunk::Effort;

mod merge;
pub use merge::{in_step_order, merge, merge_all};

mod stats;
pub use stats::Stats;

mod downsample;
pub use downsample::{Bucket, Method, buckets, downsample};

pub mod align;

#[cfg(test)]
mod sample;
