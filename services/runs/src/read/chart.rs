//! Curves as bands: for clients that draw the mean of each bucket and the range around it.

use kindex_series::{Bucket, Series, buckets};

use super::listing::points_max;
use super::metrics::{self, Range};
use crate::domain::{MetricName, RunId};
use crate::limits;
use crate::refusal::Refusal;
use crate::validate;
use crate::wire::v1;

/// Which curves of a run, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartRequest {
    /// The run.
    pub run: RunId,
    /// All if empty.
    pub names: Vec<MetricName>,
    /// Of which points.
    pub range: Range,
    /// Buckets of a curve.
    pub buckets_max: usize,
}

impl ChartRequest {
    /// Of what was sent; 0 buckets are the default.
    ///
    /// # Errors
    /// What does not fit the limits of `GetMetrics`.
    pub fn of(run: &str, names: &[String], range: Range, buckets_max: i32) -> Result<Self, Refusal> {
        let run = v1::RunId { value: run.to_owned() };
        Ok(Self {
            run: validate::run_id(Some(&run))?,
            names: metrics::names(names, limits::METRICS_NAMES)?,
            range,
            buckets_max: points_max(buckets_max, limits::METRICS_POINTS_DEFAULT, limits::METRICS_POINTS)?,
        })
    }
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Of which metric.
    pub name: MetricName,
    /// In the order of their steps.
    pub buckets: Vec<Bucket>,
    /// The points that they were made of.
    pub points: u64,
}

impl Chart {
    /// Of a series.
    pub(super) fn of(name: MetricName, series: &Series, buckets_max: usize) -> Self {
        Self {
            name,
            buckets: buckets(series, buckets_max),
            points: series.len() as u64,
        }
    }

    /// Whether a bucket can have several points.
    #[must_use]
    pub fn is_downsampled(&self) -> bool {
        self.points > self.buckets.len() as u64
    }
}
