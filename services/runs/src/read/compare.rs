//! `CompareRuns`: the curves of several runs over one axis.

use kindex_series::align::{Curve, axis};
use kindex_series::{Series, Stats};

use super::listing::points_max;
use super::metrics::{self, ANSWER_POINTS_MAX, wire_stats};
use crate::domain::{MetricName, RunId, to_wire};
use crate::limits;
use crate::refusal::{Code, Refusal};
use crate::wire::v1::{
    self, AlignmentInfo, AlignmentMode, CompareRunsRequest, CompareRunsResponse, MetricPoint, MetricSeries, RunMetrics,
};

const SECOND_NS: f64 = 1e9;

/// A request, checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison {
    pub(super) runs: Vec<RunId>,
    /// Those that all runs have if empty.
    pub(super) names: Vec<MetricName>,
    pub(super) alignment: Alignment,
    pub(super) points_max: usize,
}

/// What the axis shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alignment {
    Step,
    RelativeTime,
    AbsoluteTime,
    Progress,
}

/// A run with the series that are compared, by name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Compared {
    pub(super) run: RunId,
    pub(super) started_at: i64,
    pub(super) series: Vec<(MetricName, Series)>,
}

impl Comparison {
    /// Of a request.
    pub(super) fn of(request: &CompareRunsRequest) -> Result<Self, Refusal> {
        let number = request.alignment;
        let unknown = |_| {
            let message = format!("alignment: {number} is unknown to this server; leave it out for STEP");
            Refusal::new(Code::InvalidArgument, "INVALID_ALIGNMENT", message).at("alignment")
        };
        let alignment = match AlignmentMode::try_from(number).map_err(unknown)? {
            AlignmentMode::Unspecified | AlignmentMode::Step => Alignment::Step,
            AlignmentMode::RelativeTime => Alignment::RelativeTime,
            AlignmentMode::AbsoluteTime => Alignment::AbsoluteTime,
            AlignmentMode::Progress => Alignment::Progress,
        };
        Ok(Self {
            runs: metrics::runs(&request.run_ids, limits::COMPARED_RUNS)?,
            names: metrics::names(&request.metric_names, limits::COMPARED_NAMES)?,
            alignment,
            points_max: points_max(
                request.max_points,
                limits::COMPARED_POINTS_DEFAULT,
                limits::COMPARED_POINTS,
            )?,
        })
    }
}

impl Alignment {
    fn mode(self) -> AlignmentMode {
        match self {
            Self::Step => AlignmentMode::Step,
            Self::RelativeTime => AlignmentMode::RelativeTime,
            Self::AbsoluteTime => AlignmentMode::AbsoluteTime,
            Self::Progress => AlignmentMode::Progress,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::RelativeTime => "seconds since the start",
            Self::AbsoluteTime => "seconds since 1970",
            Self::Progress => "percent of the last step",
        }
    }

    /// Where a point stands, in a run that started then and whose last step is known.
    fn x(self, step: i64, time: i64, started_at: i64, last_step: i64) -> f64 {
        match self {
            Self::Step => step as f64,
            Self::RelativeTime => time.saturating_sub(started_at) as f64 / SECOND_NS,
            Self::AbsoluteTime => time as f64 / SECOND_NS,
            Self::Progress if last_step <= 0 => 100.0,
            Self::Progress => step as f64 / last_step as f64 * 100.0,
        }
    }
}

/// The names that all runs have, as many as are compared at most.
pub(super) fn common(names: &[&[MetricName]]) -> Vec<MetricName> {
    let Some((first, others)) = names.split_first() else {
        return Vec::new();
    };
    let is_common = |name: &&MetricName| others.iter().all(|names| names.contains(name));
    let mut common: Vec<MetricName> = first.iter().filter(is_common).cloned().collect();
    common.sort();
    common.truncate(limits::COMPARED_NAMES.max);
    common
}

/// The curves over one axis: the union of what the runs have, thinned evenly. A series has a point for each place of
/// the axis; a gap is a point with value NaN and no timestamp.
pub(super) fn compare(runs: &[Compared], alignment: Alignment, points_max: usize) -> CompareRunsResponse {
    let curves: Vec<Vec<Curve>> = runs.iter().map(|run| curves(run, alignment)).collect();
    let count = curves.iter().map(Vec::len).sum::<usize>();
    let points_max = points_max.min(ANSWER_POINTS_MAX / count.max(1)).max(2);
    let x_values = axis(curves.iter().flatten(), points_max);
    let of_run = |(run, curves): (&Compared, &Vec<Curve>)| RunMetrics {
        run_id: Some(v1::RunId {
            value: run.run.as_str().to_owned(),
        }),
        series: run
            .series
            .iter()
            .zip(curves)
            .map(|((name, series), curve)| MetricSeries {
                name: name.as_str().to_owned(),
                points: points(curve, alignment, &x_values),
                stats: Stats::of(series).as_ref().map(wire_stats),
            })
            .collect(),
    };
    CompareRunsResponse {
        run_metrics: runs.iter().zip(&curves).map(of_run).collect(),
        alignment_info: Some(AlignmentInfo {
            mode: alignment.mode().into(),
            x_values,
            x_label: alignment.label().to_owned(),
        }),
    }
}

fn curves(run: &Compared, alignment: Alignment) -> Vec<Curve> {
    let last_step = run.series.iter().filter_map(|(_, series)| series.steps.last()).max();
    let last_step = last_step.copied().unwrap_or(0);
    let curve = |(_, series): &(MetricName, Series)| {
        Curve::new((0..series.len()).map(|index| {
            let (step, time) = (series.steps[index], series.times[index]);
            (
                alignment.x(step, time, run.started_at, last_step),
                series.value(index),
                time,
            )
        }))
    };
    run.series.iter().map(curve).collect()
}

/// The step of a point is its place on the axis: the step itself, or the index where the axis shows something else.
fn points(curve: &Curve, alignment: Alignment, x_values: &[f64]) -> Vec<MetricPoint> {
    let point = |(index, &x): (usize, &f64)| {
        let at = curve.at(x);
        MetricPoint {
            name: String::new(),
            step: match alignment {
                Alignment::Step => x as i64,
                Alignment::RelativeTime | Alignment::AbsoluteTime | Alignment::Progress => index as i64,
            },
            value: at.map_or(f64::NAN, |(value, _)| value),
            timestamp: at.map(|(_, time)| to_wire(time)),
        }
    };
    x_values.iter().enumerate().map(point).collect()
}

#[cfg(test)]
mod tests;
