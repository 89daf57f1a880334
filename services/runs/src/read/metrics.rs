//! `GetMetrics`: what is asked for, and what is made of the points.

use kindex_series::{Method, Series, Stats, downsample};

use super::filter::bound;
use super::listing::points_max;
use crate::domain::{MetricName, RunId, to_wire};
use crate::limits;
use crate::refusal::{Code, Refusal};
use crate::validate::{self, within};
use crate::wire::v1::{
    self, DownsampleMethod, GetMetricsRequest, GetMetricsResponse, MetricPoint, MetricSeries, MetricStats, RunMetrics,
};

/// An answer has no more points, however many series it has.
pub(super) const ANSWER_POINTS_MAX: usize = 1_000_000;

/// A request, checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MetricsQuery {
    pub(super) runs: Vec<RunId>,
    /// All of a run if empty.
    pub(super) names: Vec<MetricName>,
    pub(super) range: Range,
    pub(super) points_max: usize,
    pub(super) method: Method,
}

/// Bounds of steps and times, all inclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The lowest step.
    pub step_min: Option<i64>,
    /// The highest step.
    pub step_max: Option<i64>,
    /// The earliest time.
    pub time_min: Option<i64>,
    /// The latest time.
    pub time_max: Option<i64>,
}

impl MetricsQuery {
    /// Of a request.
    pub(super) fn of(request: &GetMetricsRequest) -> Result<Self, Refusal> {
        let method = method(request)?;
        Ok(Self {
            runs: runs(&request.run_ids, limits::METRICS_RUNS)?,
            names: names(&request.metric_names, limits::METRICS_NAMES)?,
            range: Range {
                step_min: request.min_step,
                step_max: request.max_step,
                time_min: bound("min_time", request.min_time.as_ref())?,
                time_max: bound("max_time", request.max_time.as_ref())?,
            },
            points_max: points_max(
                request.max_points,
                limits::METRICS_POINTS_DEFAULT,
                limits::METRICS_POINTS,
            )?,
            method,
        })
    }
}

/// Runs of a request, each once.
pub(super) fn runs(runs: &[v1::RunId], limit: limits::Limit) -> Result<Vec<RunId>, Refusal> {
    within("run_ids", runs.len(), limit)?;
    if runs.is_empty() {
        let message = "run_ids is empty: name the runs to read";
        return Err(Refusal::new(Code::InvalidArgument, "REQUIRED", message).at("run_ids"));
    }
    let mut checked = Vec::with_capacity(runs.len());
    for run in runs {
        let run = validate::run_id(Some(run))?;
        if !checked.contains(&run) {
            checked.push(run);
        }
    }
    Ok(checked)
}

/// Names of a request, in order, each once.
pub(super) fn names(names: &[String], limit: limits::Limit) -> Result<Vec<MetricName>, Refusal> {
    within("metric_names", names.len(), limit)?;
    let mut names: Vec<MetricName> = names.iter().map(MetricName::new).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

fn method(request: &GetMetricsRequest) -> Result<Method, Refusal> {
    let number = request.downsample_method;
    let unknown = |_| {
        let message = format!("downsample_method: {number} is unknown to this server; leave it out for LTTB");
        Refusal::new(Code::InvalidArgument, "INVALID_METHOD", message).at("downsample_method")
    };
    Ok(match DownsampleMethod::try_from(number).map_err(unknown)? {
        DownsampleMethod::Unspecified | DownsampleMethod::Lttb => Method::Lttb,
        DownsampleMethod::MinMax => Method::MinMax,
        DownsampleMethod::Average => Method::Average,
        DownsampleMethod::First => Method::First,
        DownsampleMethod::Last => Method::Last,
    })
}

/// How many points each of so many series has, so that an answer stays within memory.
pub(super) fn shared_points_max(points_max: usize, series: usize) -> usize {
    points_max.min(ANSWER_POINTS_MAX / series.max(1)).max(1)
}

/// An answer that grows by one series at a time, of which no more than the shown points are kept.
#[derive(Debug, Default)]
pub(super) struct Answer {
    response: GetMetricsResponse,
}

impl Answer {
    /// Begins with the next run.
    pub(super) fn begin(&mut self, run: &RunId) {
        let run_id = v1::RunId {
            value: run.as_str().to_owned(),
        };
        self.response.run_metrics.push(RunMetrics {
            run_id: Some(run_id),
            series: Vec::new(),
        });
    }

    /// Adds a series of the run. A series without points in the range is left out.
    pub(super) fn add(&mut self, name: &MetricName, series: &Series, method: Method, points_max: usize) {
        let Some(stats) = Stats::of(series) else { return };
        let is_thinned = series.len() > points_max;
        self.response.downsampled |= is_thinned;
        self.response.original_point_count += series.len() as i64;
        let points = match is_thinned {
            true => points(&downsample(series, method, points_max)),
            false => points(series),
        };
        let series = MetricSeries {
            name: name.as_str().to_owned(),
            points,
            stats: Some(wire_stats(&stats)),
        };
        let run = self.response.run_metrics.last_mut().expect("a run has begun");
        run.series.push(series);
    }

    /// The answer.
    pub(super) fn finish(self) -> GetMetricsResponse {
        self.response
    }
}

/// Points of a series; the series says its name once.
fn points(series: &Series) -> Vec<MetricPoint> {
    let point = |index| MetricPoint {
        name: String::new(),
        step: series.steps[index],
        value: series.value(index),
        timestamp: Some(to_wire(series.times[index])),
    };
    (0..series.len()).map(point).collect()
}

/// Statistics as a message says them.
pub(super) fn wire_stats(stats: &Stats) -> MetricStats {
    MetricStats {
        min: stats.min,
        max: stats.max,
        mean: stats.mean(),
        last: stats.last(),
        count: stats.count as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> GetMetricsRequest {
        GetMetricsRequest {
            run_ids: vec![v1::RunId {
                value: "run".to_owned(),
            }],
            ..GetMetricsRequest::default()
        }
    }

    #[test]
    fn as_many_runs_and_names_are_read_as_the_limits_allow() {
        let runs = |count: usize| {
            let run_ids = (0..count)
                .map(|number| v1::RunId {
                    value: format!("run-{number}"),
                })
                .collect();
            MetricsQuery::of(&GetMetricsRequest { run_ids, ..request() })
        };
        assert!(runs(9).is_ok() && runs(10).is_ok());
        assert_eq!(runs(11).map_err(|refusal| refusal.field), Err("run_ids".to_owned()));
        assert_eq!(runs(0).map_err(|refusal| refusal.field), Err("run_ids".to_owned()));
        let names = |count: usize| {
            let metric_names = (0..count).map(|number| format!("m{number}")).collect();
            MetricsQuery::of(&GetMetricsRequest {
                metric_names,
                ..request()
            })
        };
        assert!(names(0).is_ok() && names(50).is_ok());
        assert_eq!(
            names(51).map_err(|refusal| refusal.field),
            Err("metric_names".to_owned())
        );
    }

    #[test]
    fn the_number_of_points_is_a_default_or_clamped() {
        let max = |max_points| {
            MetricsQuery::of(&GetMetricsRequest {
                max_points,
                ..request()
            })
            .map(|query| query.points_max)
        };
        assert_eq!(max(0), Ok(1_000));
        assert_eq!(max(9_999), Ok(9_999));
        assert_eq!(max(10_001), Ok(10_000));
        assert_eq!(max(1_000_000_000), Ok(10_000));
        assert_eq!(max(-1).map_err(|refusal| refusal.field), Err("max_points".to_owned()));
    }

    #[test]
    fn series_share_what_an_answer_may_hold() {
        assert_eq!(shared_points_max(10_000, 50), 10_000);
        assert_eq!(shared_points_max(10_000, 500), 2_000);
        assert_eq!(shared_points_max(1_000, 10_000_000), 1);
    }

    #[test]
    fn statistics_are_of_all_points_and_points_are_thinned() {
        let mut series = Series::default();
        for step in 0..10_000 {
            series.push(step, step, (step as f64).to_bits());
        }
        let mut answer = Answer::default();
        answer.begin(&RunId::new("run"));
        answer.add(&MetricName::new("loss"), &series, Method::First, 100);
        answer.add(&MetricName::new("none"), &Series::default(), Method::First, 100);
        let answer = answer.finish();
        assert!(answer.downsampled);
        assert_eq!(answer.original_point_count, 10_000);
        assert_eq!(answer.run_metrics[0].series.len(), 1);
        let series = &answer.run_metrics[0].series[0];
        assert_eq!(series.points.len(), 100);
        let stats = series.stats.clone().expect("statistics");
        assert_eq!(
            (stats.min, stats.max, stats.mean, stats.count),
            (0.0, 9_999.0, 4_999.5, 10_000)
        );
    }
}
