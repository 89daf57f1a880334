//! `POST /api/v1/ingest/batch`: points, parameters and tags that are stored together or not at all.

use std::borrow::Cow;
use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::pairs::Pairs;
use super::values::{Double, Time, Whole};
use crate::domain::Logged;
use crate::front::detail;
use crate::refusal::{Code, Refusal};
use crate::validate::Sent;
use crate::wire::MetricColumns;

/// The body.
#[derive(Debug, Deserialize)]
pub(super) struct Batch {
    run_id: String,
    #[serde(default)]
    batch_id: String,
    seq: Option<Whole>,
    sequence: Option<Whole>,
    metrics: Points,
    #[serde(default)]
    params: Pairs,
    #[serde(default)]
    tags: Pairs,
}

/// Points, which become columns as they are read.
#[derive(Debug, Default)]
struct Points(MetricColumns);

#[derive(Deserialize)]
struct Point<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    step: Whole,
    value: Double,
    timestamp: Option<Time>,
}

struct PointsVisitor;

impl<'de> Visitor<'de> for PointsVisitor {
    type Value = Points;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of points")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Points, A::Error> {
        let mut columns = MetricColumns::default();
        while let Some(point) = list.next_element::<Point<'_>>()? {
            let Point {
                name,
                step: Whole(step),
                value: Double(value),
                timestamp,
            } = point;
            columns.push(&name, step, value, timestamp.map(|Time(time)| time));
        }
        Ok(Points(columns))
    }
}

impl<'de> Deserialize<'de> for Points {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(PointsVisitor)
    }
}

impl Batch {
    /// As both transports have it.
    ///
    /// # Errors
    /// Two sequences that differ.
    pub(super) fn sent(self) -> Result<Sent, Refusal> {
        let sequence = match (self.seq, self.sequence) {
            (Some(seq), Some(sequence)) if seq != sequence => {
                let message = "seq and sequence mean the same and differ; send one of them";
                return Err(Refusal::new(Code::InvalidArgument, "INVALID_FIELD", message).at("seq"));
            }
            (seq, sequence) => sequence.or(seq),
        };
        Ok(Sent {
            run_id: self.run_id,
            batch_id: self.batch_id,
            sequence: sequence.map(|Whole(sequence)| sequence),
            points: self.metrics.0,
            params: self.params.0,
            tags: self.tags.0,
        })
    }
}

/// The answer.
#[derive(Debug, Serialize)]
pub(super) struct BatchAnswer {
    status: &'static str,
    /// Points, parameters and tags together.
    accepted: u64,
    duplicate: bool,
    accepted_points: u64,
    deduplicated_points: u64,
    dropped_points: u64,
    server_time: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Value>,
}

impl From<Logged> for BatchAnswer {
    fn from(logged: Logged) -> Self {
        Self {
            status: "ok",
            accepted: logged.accepted + logged.params_accepted + logged.params_existing + logged.tags_updated,
            duplicate: logged.is_duplicate(),
            accepted_points: logged.accepted,
            deduplicated_points: logged.deduplicated,
            dropped_points: logged.dropped,
            server_time: crate::domain::timestamp(logged.server_time).to_string(),
            warnings: logged.warnings.iter().map(detail).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::json;
    use crate::wire::v1::LogMetricsRequest;
    use crate::{domain, validate};

    fn sent(text: &str) -> Result<Sent, Refusal> {
        json::read::<Batch>(text.as_bytes())?.sent()
    }

    #[test]
    fn a_body_of_the_clients_there_are_is_read() {
        let text = r#"{
            "run_id": "run", "batch_id": "b", "seq": 3, "timestamp": 1.5,
            "metrics": [
                {"name": "loss", "value": NaN, "step": 1, "timestamp": 0.0},
                {"name": "l\u00f6ss", "value": -0.0, "step": "2", "timestamp": null}
            ],
            "params": [{"name": "lr", "value": 0.1}], "tags": [{"key": "k", "value": "v"}],
            "stats": {"metric_count": 2}
        }"#;
        let sent = sent(text).expect("a batch");
        assert_eq!(
            (sent.run_id.as_str(), sent.batch_id.as_str(), sent.sequence),
            ("run", "b", Some(3))
        );
        let points: Vec<_> = sent
            .points
            .iter()
            .map(|point| (point.name, point.step, point.time.is_some()))
            .collect();
        assert_eq!(points, [("loss", 1, true), ("l\u{f6}ss", 2, false)]);
        assert!(f64::from_bits(sent.points.values()[0]).is_nan());
        assert_eq!(sent.points.values()[1], (-0.0_f64).to_bits());
        assert_eq!(sent.params, [("lr".to_owned(), "0.1".to_owned())]);
        assert_eq!(sent.tags, [("k".to_owned(), "v".to_owned())]);
    }

    #[test]
    fn what_is_missing_or_no_number_is_refused() {
        for (text, reason) in [
            (r#"{"metrics":[]}"#, "REQUIRED"),
            (r#"{"run_id":"r"}"#, "REQUIRED"),
            (r#"{"run_id":"r","metrics":[{"name":"a","step":1}]}"#, "REQUIRED"),
            (
                r#"{"run_id":"r","metrics":[{"name":"a","step":1,"value":null}]}"#,
                "INVALID_FIELD",
            ),
            (r#"{"run_id":"r","metrics":[],"seq":1,"sequence":2}"#, "INVALID_FIELD"),
            (r#"{"run_id":"r","metrics":[}"#, "INVALID_JSON"),
        ] {
            assert_eq!(sent(text).expect_err("refused").reason, reason, "{text}");
        }
    }

    #[test]
    fn a_batch_has_one_hash_over_both_transports() {
        let text = r#"{"run_id":"r","batch_id":"b","metrics":[
            {"name":"a","step":1,"value":0.1,"timestamp":"2026-01-01T00:00:00.000000001Z"},
            {"name":"b","step":1,"value":"Infinity"}]}"#;
        let rest = validate::batch(sent(text).expect("a batch"), 0, validate::Oversized::Cut).expect("a batch");
        let mut points = MetricColumns::default();
        points.push("a", 1, 0.1, Some(domain::to_wire(1_767_225_600_000_000_001)));
        points.push("b", 1, f64::INFINITY, None);
        let request = LogMetricsRequest {
            run_id: Some(crate::wire::v1::RunId { value: "r".to_owned() }),
            metrics: Some(points),
            batch_id: "b".to_owned(),
            sequence: None,
        };
        let grpc = validate::log_metrics(request, 0, validate::Oversized::Cut).expect("a batch");
        assert_eq!(rest.payload_hash, grpc.payload_hash);
    }
}
