//! The metrics of the front end, each with its name and help text.

use std::time::Duration;

use kindex_serve::listen;
use prometheus::core::Collector;
use prometheus::{Gauge, HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

use crate::domain::{Logged, warning};

/// From a heartbeat to a batch that waits for a slow disk.
const SECONDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionReason {
    /// The connection broke off, or what is packed cannot be unpacked.
    BodyBroken,
    /// More bytes than are read of any request.
    BodyTooLarge,
    /// The bytes came too slowly.
    BodyTooSlow,
    /// The bodies of others have the memory.
    NoMemory,
    /// The requests of others have the places.
    TooManyRequests,
    /// The caller sends more than its share.
    RateExceeded,
}

impl RejectionReason {
    /// All of them, in the order of their words.
    pub const ALL: [Self; 6] = [
        Self::BodyBroken,
        Self::BodyTooLarge,
        Self::BodyTooSlow,
        Self::NoMemory,
        Self::TooManyRequests,
        Self::RateExceeded,
    ];

    /// As the label and the answer say it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BodyBroken => "BODY_BROKEN",
            Self::BodyTooLarge => "BODY_TOO_LARGE",
            Self::BodyTooSlow => "BODY_TOO_SLOW",
            Self::NoMemory => "NO_MEMORY",
            Self::TooManyRequests => "TOO_MANY_REQUESTS",
            Self::RateExceeded => "TOO_OFTEN",
        }
    }
}

/// Over what a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// gRPC.
    Grpc,
    /// REST.
    Rest,
}

impl Transport {
    /// As the label says it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Grpc => "grpc",
            Self::Rest => "rest",
        }
    }
}

/// The metrics of one service. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: IntCounterVec,
    seconds: HistogramVec,
    points: IntCounterVec,
    warnings: IntCounterVec,
    rejections: IntCounterVec,
    connections: Gauge,
}

impl Metrics {
    /// Shown by `registry`.
    ///
    /// # Panics
    /// Where the registry shows such a service already.
    pub fn new(registry: &Registry) -> Self {
        let metrics = Self::default();
        metrics.begin();
        let collectors: [Box<dyn Collector>; 6] = [
            Box::new(metrics.requests.clone()),
            Box::new(metrics.seconds.clone()),
            Box::new(metrics.points.clone()),
            Box::new(metrics.warnings.clone()),
            Box::new(metrics.rejections.clone()),
            Box::new(metrics.connections.clone()),
        ];
        for collector in collectors {
            registry.register(collector).expect("one runs service a registry");
        }
        metrics
    }

    /// Shows from the start what can be counted.
    fn begin(&self) {
        for outcome in ["accepted", "deduplicated", "dropped"] {
            self.points.with_label_values(&[outcome]);
        }
        for code in warning::CODES {
            self.warnings.with_label_values(&[code]);
        }
        for reason in RejectionReason::ALL {
            self.rejections.with_label_values(&[reason.as_str()]);
        }
    }

    /// Counts a request that was answered with this code after this time.
    pub(crate) fn answered(&self, transport: Transport, call: &str, code: &str, after: Duration) {
        let word = transport.word();
        self.requests.with_label_values(&[word, call, code]).inc();
        self.seconds
            .with_label_values(&[word, call])
            .observe(after.as_secs_f64());
    }

    /// Counts what became of the points of a batch.
    pub(crate) fn logged(&self, logged: &Logged) {
        for (outcome, points) in [
            ("accepted", logged.accepted),
            ("deduplicated", logged.deduplicated),
            ("dropped", logged.dropped),
        ] {
            self.points.with_label_values(&[outcome]).inc_by(points);
        }
        for warning in &logged.warnings {
            self.warnings.with_label_values(&[warning.code.as_str()]).inc();
        }
    }

    /// Counts a request that was not let in.
    pub(crate) fn count_rejection(&self, reason: RejectionReason) {
        self.rejections.with_label_values(&[reason.as_str()]).inc();
    }
}

/// Metrics that nobody sees.
impl Default for Metrics {
    fn default() -> Self {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            IntCounterVec::new(Opts::new(name, help), labels).expect("a name and labels that are valid")
        };
        let seconds = HistogramOpts::new("kindex_runs_request_seconds", "Time to answer a request.");
        Self {
            requests: counter(
                "kindex_runs_requests_total",
                "Requests that were answered, by transport, call and code.",
                &["transport", "call", "code"],
            ),
            seconds: HistogramVec::new(seconds.buckets(SECONDS.to_vec()), &["transport", "call"])
                .expect("a name and labels that are valid"),
            points: counter(
                "kindex_runs_points_total",
                "Points of batches that were answered: accepted, deduplicated or dropped.",
                &["outcome"],
            ),
            warnings: counter(
                "kindex_runs_warnings_total",
                "Warnings in the answers to batches, by code.",
                &["code"],
            ),
            rejections: counter(
                "kindex_runs_turned_away_total",
                "Requests that were not let in, by reason.",
                &["reason"],
            ),
            connections: Gauge::new("kindex_runs_connections", "Open connections.").expect("a valid name"),
        }
    }
}

impl listen::Meter for Metrics {
    fn opened(&self) {
        self.connections.inc();
    }

    fn closed(&self) {
        self.connections.dec();
    }
}

#[cfg(test)]
mod tests {
    use prometheus::TextEncoder;

    use super::*;

    #[test]
    fn each_reason_of_a_rejection_is_a_series_from_the_start() {
        let registry = Registry::new();
        let _metrics = Metrics::new(&registry);
        let text = TextEncoder::new().encode_to_string(&registry.gather()).expect("a text");
        let series = text
            .lines()
            .filter(|line| line.starts_with("kindex_runs_turned_away_total{"));
        let expected = [
            "BODY_BROKEN",
            "BODY_TOO_LARGE",
            "BODY_TOO_SLOW",
            "NO_MEMORY",
            "TOO_MANY_REQUESTS",
            "TOO_OFTEN",
        ];
        let expected = expected.map(|word| format!("kindex_runs_turned_away_total{{reason=\"{word}\"}} 0"));
        assert_eq!(series.collect::<Vec<_>>(), expected);
    }
}
