//! `CompareRuns`: the curves of several runs over one axis.

use kindex_series::align::{Axis, Curve};
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
/// Places of an axis that are in memory, before it is thinned to what an answer has.
const AXIS_PLACES_MAX: usize = 1 << 20;

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

/// A run that is compared.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Compared {
    pub(super) run: RunId,
    pub(super) started_at: i64,
    /// The highest step of its series, of which progress is a part.
    pub(super) last_step: i64,
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

    /// Where a point of a run stands.
    fn x(self, step: i64, time: i64, run: &Compared) -> f64 {
        match self {
            Self::Step => step as f64,
            Self::RelativeTime => time.saturating_sub(run.started_at) as f64 / SECOND_NS,
            Self::AbsoluteTime => time as f64 / SECOND_NS,
            Self::Progress if run.last_step <= 0 => 100.0,
            Self::Progress => step as f64 / run.last_step as f64 * 100.0,
        }
    }

    fn curve(self, run: &Compared, series: &Series) -> Curve {
        Curve::new((0..series.len()).map(|index| {
            let (step, time) = (series.steps[index], series.times[index]);
            (self.x(step, time, run), series.value(index), time)
        }))
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

/// The axis of all series, which come one at a time: the union of what they have.
#[derive(Debug)]
pub(super) struct SharedAxis {
    alignment: Alignment,
    axis: Axis,
    series: usize,
}

impl SharedAxis {
    /// One of no series.
    pub(super) fn new(alignment: Alignment) -> Self {
        Self {
            alignment,
            axis: Axis::new(AXIS_PLACES_MAX),
            series: 0,
        }
    }

    /// Adds a series of a run.
    pub(super) fn add(&mut self, run: &Compared, series: &Series) {
        if !series.is_empty() {
            self.axis.add(&self.alignment.curve(run, series));
            self.series += 1;
        }
    }

    /// An answer over this axis, to which each series comes once more.
    pub(super) fn into_answer(self, points_max: usize) -> Answer {
        let points_max = points_max.min(ANSWER_POINTS_MAX / self.series.max(1)).max(2);
        Answer {
            alignment: self.alignment,
            x_values: self.axis.thinned(points_max),
            run_metrics: Vec::new(),
        }
    }
}

/// An answer that grows by one series at a time, of which it keeps a point for each place of the axis; a gap is a point
/// with value NaN and no timestamp.
#[derive(Debug)]
pub(super) struct Answer {
    alignment: Alignment,
    x_values: Vec<f64>,
    run_metrics: Vec<RunMetrics>,
}

impl Answer {
    /// Begins with the next run.
    pub(super) fn begin(&mut self, run: &RunId) {
        let run_id = v1::RunId {
            value: run.as_str().to_owned(),
        };
        self.run_metrics.push(RunMetrics {
            run_id: Some(run_id),
            series: Vec::new(),
        });
    }

    /// Adds a series of the run. One without points is left out.
    pub(super) fn add(&mut self, run: &Compared, name: &MetricName, series: &Series) {
        let Some(stats) = Stats::of(series) else { return };
        let curve = self.alignment.curve(run, series);
        let series = MetricSeries {
            name: name.as_str().to_owned(),
            points: points(&curve, self.alignment, &self.x_values),
            stats: Some(wire_stats(&stats)),
        };
        let run = self.run_metrics.last_mut().expect("a run has begun");
        run.series.push(series);
    }

    /// The answer.
    pub(super) fn finish(self) -> CompareRunsResponse {
        CompareRunsResponse {
            run_metrics: self.run_metrics,
            alignment_info: Some(AlignmentInfo {
                mode: self.alignment.mode().into(),
                x_values: self.x_values,
                x_label: self.alignment.label().to_owned(),
            }),
        }
    }
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
