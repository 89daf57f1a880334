//! Series, comparisons and last points, before and after compaction.

use super::*;
use crate::domain::to_wire;
use crate::fixture::START;
use crate::refusal::Code;
use crate::wire::v1::{AlignmentMode, CompareRunsRequest, GetMetricsRequest};

#[tokio::test]
async fn series_come_back_in_step_order() {
    let on = Fixture::new().await;
    on.open("a", "").await;
    on.log("a", "loss", [(5, 0.5), (1, 0.1), (3, 0.3)]).await;
    on.log("a", "loss", [(2, 0.2), (4, 0.4)]).await;
    let reader = Reader::new(on.store.clone());
    for _ in 0..2 {
        let found = metrics(&reader, GetMetricsRequest::default()).await;
        assert_eq!(found, [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4), (5, 0.5)]);
        on.compact().await;
    }
}

#[tokio::test]
async fn a_rewritten_step_has_one_value() {
    let on = Fixture::new().await;
    on.open("a", "").await;
    on.log("a", "loss", [(1, 0.1), (2, 0.2), (2, 0.25)]).await;
    on.log("a", "loss", [(1, 9.0)]).await;
    let reader = Reader::new(on.store.clone());
    assert_eq!(
        metrics(&reader, GetMetricsRequest::default()).await,
        [(1, 9.0), (2, 0.25)]
    );
    on.compact().await;
    on.log("a", "loss", [(2, 7.0)]).await;
    assert_eq!(
        metrics(&reader, GetMetricsRequest::default()).await,
        [(1, 9.0), (2, 7.0)]
    );
}

/// Points of the metric `loss` of the run `a`.
async fn metrics(reader: &Reader, request: GetMetricsRequest) -> Vec<(i64, f64)> {
    let request = GetMetricsRequest {
        run_ids: vec![id("a")],
        metric_names: vec!["loss".to_owned()],
        ..request
    };
    let mut found = reader.get_metrics(request).await.expect("series");
    let series = found.run_metrics.remove(0).series;
    let points = series.into_iter().flat_map(|series| series.points);
    points.map(|point| (point.step, point.value)).collect()
}

#[tokio::test]
async fn a_range_of_steps_and_times_has_its_own_points_and_statistics() {
    let on = Fixture::new().await;
    on.open("a", "").await;
    on.log("a", "loss", (0..100).map(|step| (step, step as f64))).await;
    let reader = Reader::new(on.store.clone());
    let range = GetMetricsRequest {
        min_step: Some(10),
        max_step: Some(19),
        max_time: Some(to_wire(START + 15 * SECOND)),
        ..GetMetricsRequest::default()
    };
    let steps: Vec<i64> = metrics(&reader, range.clone())
        .await
        .iter()
        .map(|point| point.0)
        .collect();
    assert_eq!(steps, (10..=15).collect::<Vec<_>>());
    let request = GetMetricsRequest {
        run_ids: vec![id("a")],
        max_points: 2,
        ..range
    };
    let answer = reader.get_metrics(request).await.expect("series");
    assert!(answer.downsampled);
    assert_eq!(answer.original_point_count, 6);
    let series = &answer.run_metrics[0].series[0];
    let stats = series.stats.clone().expect("statistics");
    assert_eq!(
        (stats.min, stats.max, stats.mean, stats.last, stats.count),
        (10.0, 15.0, 12.5, 15.0, 6)
    );
    assert_eq!(series.points.len(), 2);
}

#[tokio::test]
async fn every_float_class_is_read_to_the_bit() {
    let on = Fixture::new().await;
    on.open("a", "").await;
    let nan = f64::from_bits(0x7ff8_dead_beef_0001);
    let values = [
        nan,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -0.0,
        0.0,
        f64::MAX,
        f64::MIN_POSITIVE,
    ];
    on.log("a", "loss", (0..).zip(values)).await;
    let reader = Reader::new(on.store.clone());
    for _ in 0..2 {
        let found = metrics(&reader, GetMetricsRequest::default()).await;
        let bits: Vec<u64> = found.iter().map(|point| point.1.to_bits()).collect();
        assert_eq!(bits, values.map(f64::to_bits));
        on.compact().await;
    }
}

#[tokio::test]
async fn metrics_of_all_names_come_in_order_and_a_missing_run_is_not_found() {
    let on = Fixture::new().await;
    on.open("a", "").await;
    for number in 0..30 {
        on.log("a", &format!("m{number:02}"), [(1, f64::from(number))]).await;
    }
    let reader = Reader::new(on.store.clone());
    let request = GetMetricsRequest {
        run_ids: vec![id("a")],
        ..GetMetricsRequest::default()
    };
    let answer = reader.get_metrics(request).await.expect("series");
    let names: Vec<&str> = answer.run_metrics[0]
        .series
        .iter()
        .map(|series| series.name.as_str())
        .collect();
    assert_eq!(names.len(), 30);
    assert!(names.is_sorted());
    let missing = GetMetricsRequest {
        run_ids: vec![id("a"), id("b")],
        ..GetMetricsRequest::default()
    };
    assert_eq!(
        reader.get_metrics(missing).await.map_err(|refusal| refusal.code),
        Err(Code::NotFound)
    );
}

#[tokio::test]
async fn the_latest_point_of_each_metric_is_found_in_chunks_and_in_what_is_not_compacted() {
    let on = Fixture::new().await;
    on.open("a", "").await;
    on.log("a", "eval", [(0, 5.0), (50, 6.0)]).await;
    on.log("a", "loss", (0..1_000).map(|step| (step, step as f64))).await;
    on.compact().await;
    on.log("a", "loss", [(1_000, 0.5)]).await;
    on.log("a", "new", [(3, f64::NAN)]).await;
    on.log("a", "eval", [(50, 7.0)]).await;
    let latest = Reader::new(on.store.clone())
        .latest(&crate::domain::RunId::new("a"))
        .await
        .expect("points");
    let shown: Vec<String> = latest
        .iter()
        .map(|latest| format!("{} {} {}", latest.name, latest.step, latest.value))
        .collect();
    assert_eq!(shown, ["eval 50 7", "loss 1000 0.5", "new 3 NaN"]);
}

#[tokio::test]
async fn runs_are_compared_over_what_they_share() {
    let on = Fixture::new().await;
    for run in ["a", "b"] {
        on.open(run, "").await;
        on.log(run, "loss", [(0, 1.0), (10, 0.0)]).await;
    }
    on.log("b", "acc", [(0, 1.0)]).await;
    let reader = Reader::new(on.store.clone());
    let request = CompareRunsRequest {
        run_ids: vec![id("a"), id("b")],
        ..CompareRunsRequest::default()
    };
    let compared = reader.compare_runs(request).await.expect("a comparison");
    assert_eq!(compared.alignment_info.expect("an axis").x_values, [0.0, 10.0]);
    for run in compared.run_metrics {
        let names: Vec<&str> = run.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["loss"]);
    }
}

#[tokio::test]
async fn progress_is_a_part_of_the_last_step_of_all_series_that_are_compared() {
    let on = Fixture::new().await;
    on.open("a", "").await;
    on.log("a", "acc", [(0, 1.0), (10, 2.0)]).await;
    on.log("a", "loss", [(5, 1.0), (20, 3.0)]).await;
    on.log("a", "other", [(0, 1.0), (20, 4.0)]).await;
    let reader = Reader::new(on.store.clone());
    for (other, expected) in [
        ("loss", vec![0.0, 25.0, 50.0, 100.0]),
        ("other", vec![0.0, 50.0, 100.0]),
    ] {
        let request = CompareRunsRequest {
            run_ids: vec![id("a")],
            metric_names: vec!["acc".to_owned(), other.to_owned()],
            alignment: AlignmentMode::Progress.into(),
            ..CompareRunsRequest::default()
        };
        let compared = reader.compare_runs(request).await.expect("a comparison");
        assert_eq!(compared.alignment_info.expect("an axis").x_values, expected);
    }
}
