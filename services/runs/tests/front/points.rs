//! What becomes of points, one by one: the same over both transports.

use kindex_runs::domain::{from_wire, nanos, system_clock};
use kindex_runs::wire::v1::{GetMetricsRequest, MetricSeries};

use crate::both::{Client, Point, Transport};
use crate::server::{Server, run_id};

const TIME: i64 = 1_700_000_000_123_456_789;

/// The series of a run.
async fn series(server: &Server, run: &str) -> Vec<MetricSeries> {
    let request = GetMetricsRequest {
        run_ids: run_id(run).into_iter().collect(),
        ..GetMetricsRequest::default()
    };
    let found = server.query().get_metrics(request).await.expect("series").into_inner();
    found.run_metrics.into_iter().flat_map(|run| run.series).collect()
}

/// A server, and a run for each transport to which these points were logged, with what was answered.
async fn logged(points: &[Point<'_>]) -> (Server, Vec<(&'static str, crate::both::Counted)>) {
    let server = Server::start().await;
    let mut runs = Vec::new();
    for (transport, run) in Transport::BOTH.into_iter().zip(["grpc", "rest"]) {
        let client = Client {
            server: &server,
            transport,
        };
        client.open(run, "", &[]).await.expect("a run");
        runs.push((run, client.log(run, "b", None, points).await.expect("stored")));
    }
    (server, runs)
}

#[tokio::test]
async fn a_point_comes_back_with_its_name_step_value_and_timestamp() {
    let sent = [
        ("train/loss", 7, 0.1 + 0.2, Some(TIME)),
        ("train/loss", i64::MAX, f64::MAX, Some(0)),
        ("a.b-c_d", 0, -0.0, Some(-TIME)),
    ];
    let (server, runs) = logged(&sent).await;
    for (run, answer) in runs {
        assert_eq!((answer.counts, answer.warnings.len()), ((3, 0), 0), "{run}");
        let mut read = Vec::new();
        for series in series(&server, run).await {
            for point in series.points {
                let time = from_wire(&point.timestamp.expect("a time"));
                read.push((series.name.clone(), point.step, point.value.to_bits(), time));
            }
        }
        let mut expected: Vec<_> = sent
            .iter()
            .map(|(name, step, value, time)| ((*name).to_owned(), *step, value.to_bits(), *time))
            .collect();
        expected.sort();
        read.sort();
        assert_eq!(read, expected, "{run}");
    }
}

#[tokio::test]
async fn a_missing_timestamp_is_the_receipt_time() {
    let now = || nanos(system_clock()()).expect("a time of our days");
    let before = now();
    let (server, runs) = logged(&[("loss", 1, 0.5, None), ("loss", 2, 0.5, Some(0))]).await;
    let after = now();
    for (run, _) in runs {
        let points = &series(&server, run).await[0].points;
        let time = |place: usize| from_wire(points[place].timestamp.as_ref().expect("a time")).expect("a time");
        assert!((before..=after).contains(&time(0)), "{run}: {}", time(0));
        assert_eq!(time(1), 0, "{run}: 1970 is a time");
    }
}

#[tokio::test]
async fn a_negative_step_is_dropped_with_a_warning() {
    let (server, runs) = logged(&[("loss", 0, 1.0, None), ("loss", -1, 2.0, None), ("loss", 1, 3.0, None)]).await;
    for (run, answer) in runs {
        let warning = ("STEP_NEGATIVE", "metrics.points[1].step", "warning");
        let (code, field, severity) = &answer.warnings[0];
        assert_eq!((code.as_str(), field.as_str(), severity.as_str()), warning, "{run}");
        assert_eq!(answer.counts, (2, 0), "{run}");
        let steps: Vec<i64> = series(&server, run).await[0]
            .points
            .iter()
            .map(|point| point.step)
            .collect();
        assert_eq!(steps, [0, 1], "{run}");
    }
}

#[tokio::test]
async fn an_invalid_metric_name_costs_its_point_and_no_neighbor() {
    let long = "n".repeat(257);
    let names = ["ok", "9lives", "a b", "", "_mlrun.x", &long, "l\u{f6}ss", "also/ok"];
    let points: Vec<Point<'_>> = names.iter().map(|name| (*name, 1, 1.0, None)).collect();
    let (server, runs) = logged(&points).await;
    for (run, answer) in runs {
        assert_eq!(answer.counts, (2, 0), "{run}");
        let fields: Vec<&str> = answer.warnings.iter().map(|(_, field, _)| field.as_str()).collect();
        let expected: Vec<String> = (1..7).map(|place| format!("metrics.points[{place}].name")).collect();
        assert_eq!(fields, expected, "{run}");
        assert!(
            answer.warnings.iter().all(|(code, ..)| code == "INVALID_METRIC_NAME"),
            "{run}"
        );
        let stored: Vec<String> = series(&server, run)
            .await
            .into_iter()
            .map(|series| series.name)
            .collect();
        assert_eq!(stored, ["also/ok", "ok"], "{run}");
    }
}

#[tokio::test]
async fn nan_is_stored_and_its_neighbors_stay() {
    let (server, runs) = logged(&[
        ("loss", 1, 0.5, None),
        ("loss", 2, f64::NAN, None),
        ("loss", 3, 0.25, None),
    ])
    .await;
    for (run, answer) in runs {
        assert_eq!((answer.counts, answer.warnings.len()), ((3, 0), 0), "{run}");
        let values: Vec<f64> = series(&server, run).await[0]
            .points
            .iter()
            .map(|point| point.value)
            .collect();
        assert!(
            values[0] == 0.5 && values[1].is_nan() && values[2] == 0.25,
            "{run}: {values:?}"
        );
        let shown = server.get(&format!("/api/v1/runs/{run}/metrics")).await.json();
        assert_eq!(shown["series"][0]["points"][1]["mean"], "NaN", "{run}");
    }
}

#[tokio::test]
async fn infinities_are_stored_and_left_out_of_statistics() {
    let values = [1.0, f64::INFINITY, 2.0, f64::NEG_INFINITY];
    let points: Vec<Point<'_>> = values
        .iter()
        .zip(0..)
        .map(|(value, step)| ("loss", step, *value, None))
        .collect();
    let (server, runs) = logged(&points).await;
    for (run, _) in runs {
        let series = series(&server, run).await.remove(0);
        let stored: Vec<f64> = series.points.iter().map(|point| point.value).collect();
        assert_eq!(stored, values, "{run}");
        let stats = series.stats.expect("statistics");
        assert_eq!(
            (stats.min, stats.max, stats.mean, stats.count),
            (1.0, 2.0, 1.5, 4),
            "{run}"
        );
        assert_eq!(stats.last, f64::NEG_INFINITY, "{run}");
    }
}

#[tokio::test]
async fn a_subnormal_number_becomes_the_zero_of_its_sign() {
    let (server, runs) = logged(&[("loss", 1, 5e-324, None), ("loss", 2, -5e-324, None)]).await;
    for (run, _) in runs {
        let points = &series(&server, run).await[0].points;
        let bits: Vec<u64> = points.iter().map(|point| point.value.to_bits()).collect();
        assert_eq!(bits, [0.0_f64.to_bits(), (-0.0_f64).to_bits()], "{run}");
    }
}

#[tokio::test]
async fn accepted_deduplicated_and_dropped_points_add_up_to_those_sent() {
    let server = Server::with(|options| options.store.metric_names_max = 2).await;
    for (transport, run) in Transport::BOTH.into_iter().zip(["grpc", "rest"]) {
        let client = Client {
            server: &server,
            transport,
        };
        client.open(run, "", &[]).await.expect("a run");
        let points = [
            ("a", 1, 1.0, None),
            ("b", -1, 1.0, None),
            ("9", 1, 1.0, None),
            ("c", 1, 1.0, None),
            ("d", 1, 1.0, None),
        ];
        let first = client.log(run, "b", None, &points).await.expect("stored");
        assert_eq!(
            first.counts,
            (2, 0),
            "{run}: a and c; b has a negative step, 9 is not a name, d is one metric too many"
        );
        let again = client.log(run, "b", None, &points).await.expect("known");
        assert_eq!(
            again.counts,
            (0, 3),
            "{run}: what the limits of the run dropped was seen as well"
        );
        let body = format!(
            r#"{{"run_id":"{run}","batch_id":"c","metrics":[{{"name":"a","step":2,"value":1}},{{"name":"a","step":-2,"value":1}}]}}"#
        );
        let shown = server.post("/api/v1/ingest/batch", body).await.json();
        let counts = ["accepted_points", "deduplicated_points", "dropped_points"].map(|count| shown[count].clone());
        assert_eq!(counts, [1, 0, 1], "{run}");
    }
}

#[tokio::test]
async fn points_come_back_in_the_order_of_steps_whatever_order_they_came_in() {
    let points: Vec<Point<'_>> = [5, 1, 4, 0, 3, 2]
        .iter()
        .map(|step| ("loss", *step, *step as f64, None))
        .collect();
    let (server, runs) = logged(&points).await;
    for (run, _) in runs {
        let steps: Vec<i64> = series(&server, run).await[0]
            .points
            .iter()
            .map(|point| point.step)
            .collect();
        assert_eq!(steps, [0, 1, 2, 3, 4, 5], "{run}");
    }
}

#[tokio::test]
async fn the_last_write_of_a_step_wins() {
    let (server, runs) = logged(&[("loss", 1, 1.0, None), ("loss", 1, 2.0, None)]).await;
    for ((run, _), transport) in runs.into_iter().zip(Transport::BOTH) {
        let value = async || {
            let points = &series(&server, run).await[0].points;
            assert_eq!(points.len(), 1, "{run}");
            points[0].value
        };
        assert_eq!(value().await, 2.0, "{run}: within a batch");
        let client = Client {
            server: &server,
            transport,
        };
        client
            .log(run, "c", None, &[("loss", 1, 3.0, Some(0))])
            .await
            .expect("stored");
        assert_eq!(value().await, 3.0, "{run}: whatever its timestamp is");
    }
}
