//! What is kept of a request, and what a request is refused for.

use prost::Message as _;
use prost_types::Timestamp;

use super::*;
use crate::domain::{PresentedToken, warning};
use crate::limits::{self, Enforcement};
use crate::refusal::{Code, Refusal};
use crate::wire::MetricColumns;
use crate::wire::v1::{
    InitRunRequest, LogMetricsRequest, LogParamsRequest, LogTagsRequest, Parameter, ProjectId, RunId, Tag,
};

const NOW: i64 = 1_800_000_000_000_000_000;

fn run() -> Option<RunId> {
    Some(RunId {
        value: "run".to_owned(),
    })
}

fn columns(points: impl IntoIterator<Item = (&'static str, i64, f64)>) -> MetricColumns {
    let mut columns = MetricColumns::default();
    for (name, step, value) in points {
        columns.push(name, step, value, None);
    }
    columns
}

fn request(points: MetricColumns) -> LogMetricsRequest {
    LogMetricsRequest {
        run_id: run(),
        metrics: Some(points),
        batch_id: "batch".to_owned(),
        sequence: None,
    }
}

fn logged(points: MetricColumns) -> crate::domain::Batch {
    log_metrics(request(points), NOW, Oversized::Cut).expect("a batch")
}

fn refused<T: std::fmt::Debug>(result: Result<T, Refusal>) -> (Code, &'static str, String) {
    let refusal = result.expect_err("refused");
    (refusal.code, refusal.reason, refusal.field)
}

#[test]
fn every_code_of_the_limits_is_a_warning_that_answers_can_carry() {
    for limit in limits::ALL {
        if let Enforcement::Dropped(code) | Enforcement::Cut(code) = limit.enforcement {
            assert!(warning::CODES.contains(&code), "{code}");
        }
    }
}

#[test]
fn a_bad_point_is_dropped_with_a_warning_and_its_neighbors_stay() {
    let batch = logged(columns([
        ("loss", 1, 1.0),
        ("9lives", 1, 2.0),
        ("loss", -1, 3.0),
        ("", 1, 4.0),
        ("acc", 2, 5.0),
    ]));
    let warned: Vec<(&str, &str)> = batch
        .warnings
        .iter()
        .map(|w| (w.code.as_str(), w.field.as_str()))
        .collect();
    assert_eq!(
        warned,
        [
            ("INVALID_METRIC_NAME", "metrics.points[1].name"),
            ("STEP_NEGATIVE", "metrics.points[2].step"),
            ("INVALID_METRIC_NAME", "metrics.points[3].name"),
        ]
    );
    assert_eq!((batch.sent, batch.dropped, batch.points.len()), (5, 3, 2));
    let names: Vec<&str> = batch.points.names.iter().map(|name| name.as_str()).collect();
    assert_eq!(
        (names, batch.points.name_of.as_slice()),
        (vec!["loss", "acc"], &[0, 1][..])
    );
    assert_eq!(batch.points.steps, [1, 2]);
}

#[test]
fn a_batch_has_ten_thousand_points_and_the_rest_is_cut_off() {
    for (sent, dropped) in [(9_999, 0), (10_000, 0), (10_001, 1)] {
        let points = || columns((0..sent).map(|step| ("loss", step, 0.5)));
        let batch = logged(points());
        assert_eq!((batch.sent, batch.dropped), (sent as u64, dropped), "{sent}");
        let truncated = batch
            .warnings
            .iter()
            .any(|warning| warning.code == warning::BATCH_TRUNCATED);
        assert_eq!(truncated, dropped > 0, "{sent}");
        let strict = log_metrics(request(points()), NOW, Oversized::Refused);
        assert_eq!(strict.is_err(), dropped > 0, "{sent}");
    }
}

#[test]
fn a_batch_is_cut_after_the_last_point_that_fits_a_mebibyte() {
    let name: &'static str = "n".repeat(200).leak();
    let points = columns((0..9_000).map(|step| (name, 1 << 40 | step, 0.1)));
    let bytes = request(points.clone()).encoded_len();
    let batch = logged(points.clone());
    let kept = columns((0..batch.points.len() as i64).map(|step| (name, 1 << 40 | step, 0.1)));
    let (of_kept, max) = (request(kept).encoded_len(), limits::BATCH_BYTES.max);
    assert!(
        bytes > max && of_kept <= max && of_kept + 2 * 230 > max,
        "{bytes} {of_kept}"
    );
    assert_eq!(batch.sent, batch.dropped + batch.points.len() as u64);
    assert_eq!(batch.warnings.len(), 1);
    assert_eq!(batch.warnings[0].code, warning::BATCH_TRUNCATED);
}

#[test]
fn a_missing_timestamp_is_the_receipt_time_and_one_that_lies_ahead_becomes_it() {
    const SECOND: i64 = 1_000_000_000;
    let at = |ns: i64| Some(crate::domain::to_wire(ns));
    let mut sent = MetricColumns::default();
    for time in [
        None,
        at(NOW - 400 * 24 * 3600 * SECOND),
        at(NOW + 300 * SECOND),
        at(NOW + 300 * SECOND + 1),
        Some(Timestamp {
            seconds: i64::MAX,
            nanos: 0,
        }),
        Some(Timestamp { seconds: 0, nanos: -1 }),
        at(0),
    ] {
        sent.push("loss", 1, 1.0, time);
    }
    let batch = logged(sent);
    let old = NOW - 400 * 24 * 3600 * SECOND;
    assert_eq!(batch.points.times, [NOW, old, NOW + 300 * SECOND, NOW, NOW, NOW, 0]);
    assert_eq!(batch.warnings, [warning::clock_skew(3, 3)]);
    assert_eq!(batch.dropped, 0);
}

#[test]
fn every_class_of_doubles_keeps_its_bits_and_subnormals_their_sign() {
    let nan = f64::from_bits(0x7ff8_dead_beef_0001);
    let smallest = f64::MIN_POSITIVE;
    let subnormal = f64::from_bits(smallest.to_bits() - 1);
    for (sent, stored) in [
        (nan, nan),
        (-nan, -nan),
        (f64::INFINITY, f64::INFINITY),
        (f64::NEG_INFINITY, f64::NEG_INFINITY),
        (0.0, 0.0),
        (-0.0, -0.0),
        (smallest, smallest),
        (subnormal, 0.0),
        (-subnormal, -0.0),
        (5e-324, 0.0),
        (-5e-324, -0.0),
        (f64::MAX, f64::MAX),
    ] {
        let batch = logged(columns([("loss", 1, sent)]));
        assert_eq!(batch.points.values, [stored.to_bits()], "{sent:e}");
        assert!(batch.warnings.is_empty());
    }
}

#[test]
fn a_batch_without_run_id_or_batch_id_is_refused() {
    let good = || request(columns([("loss", 1, 1.0)]));
    let log = |request| refused(log_metrics(request, NOW, Oversized::Cut));
    let invalid = |reason, field: &str| (Code::InvalidArgument, reason, field.to_owned());
    let id = |value: &str| {
        Some(RunId {
            value: value.to_owned(),
        })
    };
    let long = "x".repeat(65);
    assert_eq!(
        log(LogMetricsRequest { run_id: None, ..good() }),
        invalid("REQUIRED", "run_id")
    );
    assert_eq!(
        log(LogMetricsRequest {
            run_id: id(""),
            ..good()
        }),
        invalid("REQUIRED", "run_id")
    );
    assert_eq!(
        log(LogMetricsRequest {
            run_id: id(&long),
            ..good()
        }),
        invalid("TOO_LONG", "run_id")
    );
    assert_eq!(
        log(LogMetricsRequest {
            run_id: id("a/b"),
            ..good()
        }),
        invalid("INVALID_NAME", "run_id")
    );
    let batch_id = |batch_id: &str| LogMetricsRequest {
        batch_id: batch_id.to_owned(),
        ..good()
    };
    assert_eq!(log(batch_id("")), invalid("REQUIRED", "batch_id"));
    assert_eq!(log(batch_id(&"\u{20ac}".repeat(65))), invalid("TOO_LONG", "batch_id"));
    assert!(log_metrics(batch_id(&"\u{20ac}".repeat(64)), NOW, Oversized::Cut).is_ok());
    for sequence in [0, -1, i64::MAX] {
        let request = LogMetricsRequest {
            sequence: Some(sequence),
            ..good()
        };
        assert_eq!(log(request), invalid("OUT_OF_RANGE", "sequence"), "{sequence}");
    }
}

#[test]
fn the_hash_is_of_what_was_sent_and_not_of_what_was_kept() {
    let hash = |points| logged(points).payload_hash;
    assert_ne!(hash(columns([("9lives", 1, 1.0)])), hash(columns([("9lives", 1, 2.0)])));
    let with = |sequence| LogMetricsRequest {
        sequence,
        ..request(columns([("loss", 1, 1.0)]))
    };
    let hash = |request| log_metrics(request, NOW, Oversized::Cut).expect("a batch").payload_hash;
    assert_eq!(
        hash(with(None)),
        hash(with(Some(7))),
        "a retry may come without its place"
    );
}

#[test]
fn a_parameter_is_kept_once_with_its_first_value_and_a_tag_with_its_last() {
    let param = |name: &str, value: &str| Parameter {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let params = vec![
        param("lr", "1"),
        param("lr", "2"),
        param("lr", "1"),
        param("", "x"),
        param("b", &"x".repeat(4097)),
    ];
    let change = log_params(LogParamsRequest { run_id: run(), params }).expect("parameters");
    assert_eq!(change.params, [("lr".to_owned(), "1".to_owned())]);
    let codes: Vec<&str> = change.warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(codes, ["PARAM_IMMUTABLE", "INVALID_PARAM", "INVALID_PARAM"]);

    let tag = |key: &str, value: &str| Tag {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    let tags = vec![
        tag("a", "1"),
        tag("a", "2"),
        tag("mlrun.x", "1"),
        tag(&"\u{20ac}".repeat(100), "x"),
    ];
    let request = LogTagsRequest {
        run_id: run(),
        tags,
        remove_keys: vec!["b".to_owned()],
    };
    let change = log_tags(request).expect("tags");
    assert_eq!(change.set, [("a".to_owned(), "2".to_owned())]);
    let codes: Vec<&str> = change.warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(codes, ["INVALID_TAG", "INVALID_TAG"]);
}

#[test]
fn a_run_needs_a_project_whose_name_fits() {
    let init = |project: Option<&str>| {
        let project_id = project.map(|value| ProjectId {
            value: value.to_owned(),
        });
        init_run(
            InitRunRequest {
                project_id,
                ..InitRunRequest::default()
            },
            Vec::new(),
            "",
            PresentedToken::Absent,
        )
    };
    assert!(init(Some("vision")).is_ok());
    let field = || "project_id".to_owned();
    assert_eq!(refused(init(None)), (Code::InvalidArgument, "REQUIRED", field()));
    assert_eq!(
        refused(init(Some("BAD NAME!"))),
        (Code::InvalidArgument, "INVALID_NAME", field())
    );
}

#[test]
fn multibyte_names_of_any_length_never_panic() {
    for length in 0..300 {
        for character in ["\u{e9}", "\u{20ac}", "\u{1f600}"] {
            let name: &'static str = character.repeat(length).leak();
            let batch = logged(columns([(name, 1, 1.0), ("loss", 1, 1.0)]));
            assert_eq!((batch.dropped, batch.points.len()), (1, 1));
            let tags = vec![Tag {
                key: name.to_owned(),
                value: name.to_owned(),
            }];
            let change = log_tags(LogTagsRequest {
                run_id: run(),
                tags,
                remove_keys: Vec::new(),
            })
            .expect("tags");
            assert_eq!(change.warnings.len(), 1);
        }
    }
}
