//! Each alignment, on runs that are small enough to read.

use super::*;

const SECOND: i64 = 1_000_000_000;
const START: i64 = 1_790_000_000 * SECOND;

/// Series by series, as they are read.
fn compare(runs: &[(Compared, Series)], alignment: Alignment, points_max: usize) -> CompareRunsResponse {
    let mut axis = SharedAxis::new(alignment);
    for (run, series) in runs {
        axis.add(run, series);
    }
    let mut answer = axis.into_answer(points_max);
    for (run, series) in runs {
        answer.begin(&run.run);
        answer.add(run, &MetricName::new("loss"), series);
    }
    answer.finish()
}

/// A run that logs its loss every `stride` steps, one step a second.
fn run(id: &str, started_at: i64, stride: i64, values: &[f64]) -> (Compared, Series) {
    let mut series = Series::default();
    for (index, value) in values.iter().enumerate() {
        let step = index as i64 * stride;
        series.push(step, started_at + step * SECOND, value.to_bits());
    }
    let run = Compared {
        run: RunId::new(id),
        started_at,
        last_step: series.steps.last().copied().unwrap_or(0),
    };
    (run, series)
}

fn two() -> [(Compared, Series); 2] {
    [
        run("a", START, 100, &[1.0, 0.8, 0.6]),
        run("b", START + 50 * SECOND, 50, &[2.0, 1.0]),
    ]
}

fn values(response: &CompareRunsResponse, run: usize) -> Vec<Option<f64>> {
    let points = &response.run_metrics[run].series[0].points;
    points
        .iter()
        .map(|point| point.timestamp.map(|_| (point.value * 1e9).round() / 1e9))
        .collect()
}

fn x_values(response: &CompareRunsResponse) -> Vec<f64> {
    response.alignment_info.clone().expect("an axis").x_values
}

#[test]
fn runs_are_compared_by_step_with_lines_between_points_and_gaps_outside() {
    let compared = compare(&two(), Alignment::Step, 500);
    assert_eq!(x_values(&compared), [0.0, 50.0, 100.0, 200.0]);
    assert_eq!(values(&compared, 0), [Some(1.0), Some(0.9), Some(0.8), Some(0.6)]);
    assert_eq!(values(&compared, 1), [Some(2.0), Some(1.0), None, None]);
    let gap = &compared.run_metrics[1].series[0].points[2];
    assert!(gap.value.is_nan() && gap.timestamp.is_none() && gap.step == 100);
}

#[test]
fn runs_are_compared_by_the_time_since_their_starts() {
    let compared = compare(&two(), Alignment::RelativeTime, 500);
    assert_eq!(x_values(&compared), [0.0, 50.0, 100.0, 200.0]);
    assert_eq!(values(&compared, 1), [Some(2.0), Some(1.0), None, None]);
}

#[test]
fn runs_are_compared_by_the_time_of_the_clock() {
    let compared = compare(&two(), Alignment::AbsoluteTime, 500);
    let since: Vec<f64> = x_values(&compared).iter().map(|x| x - 1_790_000_000.0).collect();
    assert_eq!(since, [0.0, 50.0, 100.0, 200.0]);
    assert_eq!(values(&compared, 1), [None, Some(2.0), Some(1.0), None]);
}

#[test]
fn runs_are_compared_by_their_progress() {
    let compared = compare(&two(), Alignment::Progress, 500);
    assert_eq!(x_values(&compared), [0.0, 50.0, 100.0]);
    assert_eq!(values(&compared, 0), [Some(1.0), Some(0.8), Some(0.6)]);
    assert_eq!(values(&compared, 1), [Some(2.0), Some(1.5), Some(1.0)]);
    let short = compare(&[run("c", START, 1, &[4.0])], Alignment::Progress, 500);
    assert_eq!(x_values(&short), [100.0]);
}

#[test]
fn a_stored_nan_is_told_from_a_gap() {
    let compared = compare(&[run("a", START, 1, &[1.0, f64::NAN, 3.0])], Alignment::Step, 500);
    let points = &compared.run_metrics[0].series[0].points;
    assert!(points[1].value.is_nan() && points[1].timestamp.is_some());
}

#[test]
fn statistics_are_of_all_points_however_thin_the_axis_is() {
    let many: Vec<f64> = (0..3_000).map(f64::from).collect();
    let compared = compare(&[run("a", START, 1, &many)], Alignment::Step, 10);
    let series = &compared.run_metrics[0].series[0];
    assert_eq!(series.points.len(), 10);
    assert_eq!((series.points[0].step, series.points[9].step), (0, 2_999));
    assert_eq!(series.stats.clone().expect("statistics").count, 3_000);
}

#[test]
fn a_series_without_points_is_left_out() {
    let runs = [run("a", START, 1, &[1.0, 2.0]), run("b", START, 1, &[])];
    let compared = compare(&runs, Alignment::Step, 10);
    assert_eq!(x_values(&compared), [0.0, 1.0]);
    assert!(compared.run_metrics[1].series.is_empty());
}

#[test]
fn names_are_common_where_all_runs_have_them() {
    let names = |names: &[&str]| names.iter().map(|name| MetricName::new(*name)).collect::<Vec<_>>();
    assert_eq!(
        common(&[&names(&["loss", "acc"]), &names(&["lr", "loss"])]),
        names(&["loss"])
    );
    assert_eq!(common(&[]), names(&[]));
}

#[test]
fn as_many_runs_and_names_are_compared_as_the_limits_allow() {
    let of = |runs: usize, names: usize, max_points| {
        Comparison::of(&CompareRunsRequest {
            run_ids: (0..runs).map(|run| v1::RunId { value: run.to_string() }).collect(),
            metric_names: (0..names).map(|name| format!("m{name}")).collect(),
            alignment: 0,
            max_points,
        })
    };
    assert!(of(20, 20, 0).is_ok());
    assert_eq!(of(21, 1, 0).map_err(|refusal| refusal.field), Err("run_ids".to_owned()));
    assert_eq!(
        of(1, 21, 0).map_err(|refusal| refusal.field),
        Err("metric_names".to_owned())
    );
    for (sent, points) in [(0, 500), (4_999, 4_999), (5_001, 5_000)] {
        assert_eq!(of(1, 1, sent).map(|comparison| comparison.points_max), Ok(points));
    }
}
