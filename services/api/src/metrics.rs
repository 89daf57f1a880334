//! The metrics of the API server, each with its name and help text.

use std::time::Duration;

use kindex_kube_api::request::Verb;
use kindex_serve::{listen, watches};
use prometheus::core::Collector;
use prometheus::{Gauge, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry};

/// From an object in memory to a list of a whole kind.
const SECONDS: &[f64] = &[
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0,
];

/// What a request turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What it does.
    pub verb: OperationVerb,
    /// The name of the kind; empty for what is relayed.
    pub kind: &'static str,
}

impl Operation {
    /// What is about none of the served kinds.
    pub const RELAYED: Self = Self {
        verb: OperationVerb::Relay,
        kind: "",
    };
}

/// What a request does, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationVerb {
    /// As Kubernetes names it.
    Kubernetes(Verb),
    /// A method that Kubernetes has no verb for.
    Other,
    /// A subscription to events.
    Events,
    /// A request for none of the served kinds, which the cluster answers.
    Relay,
}

impl OperationVerb {
    /// As the metrics show it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kubernetes(verb) => verb.as_str(),
            Self::Other => "other",
            Self::Events => "events",
            Self::Relay => "relay",
        }
    }
}

impl From<Verb> for OperationVerb {
    fn from(verb: Verb) -> Self {
        Self::Kubernetes(verb)
    }
}

impl From<Option<Verb>> for OperationVerb {
    fn from(verb: Option<Verb>) -> Self {
        verb.map_or(Self::Other, Self::Kubernetes)
    }
}

/// Why a request was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionReason {
    /// As many as are let in are under way.
    InFlight,
    /// Its client has asked too often.
    Rate,
    /// Its body came too slowly.
    SlowBody,
    /// The bodies under way take as much memory as they may.
    BodyBytes,
    /// There are as many watches as may be.
    Watches,
}

/// The metrics of one server. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: IntCounterVec,
    seconds: HistogramVec,
    rejections: IntCounterVec,
    /// Open connections.
    pub connections: Gauge,
    /// Watches under way.
    pub watches: Gauge,
    /// Subscriptions to events under way.
    pub subscriptions: Gauge,
    /// Bytes of events that are held for watches.
    pub watch_bytes: Gauge,
    /// Watches that were ended because the memory was needed.
    pub watches_ended: IntCounter,
}

impl Metrics {
    /// Shown by `registry`.
    ///
    /// # Panics
    /// Where the registry shows an API server already.
    pub fn new(registry: &Registry) -> Self {
        let metrics = Self::default();
        let collectors: [Box<dyn Collector>; 8] = [
            Box::new(metrics.requests.clone()),
            Box::new(metrics.seconds.clone()),
            Box::new(metrics.rejections.clone()),
            Box::new(metrics.connections.clone()),
            Box::new(metrics.watches.clone()),
            Box::new(metrics.subscriptions.clone()),
            Box::new(metrics.watch_bytes.clone()),
            Box::new(metrics.watches_ended.clone()),
        ];
        for collector in collectors {
            registry.register(collector).expect("one API server a registry");
        }
        metrics
    }

    /// Counts a request that was answered with this code after this time, of a watch up to its first event.
    pub(crate) fn answered(&self, operation: Operation, code: &str, after: Duration) {
        let Operation { verb, kind } = operation;
        self.requests.with_label_values(&[verb.as_str(), kind, code]).inc();
        let seconds = self.seconds.with_label_values(&[verb.as_str(), kind]);
        seconds.observe(after.as_secs_f64());
    }

    /// Counts a request that was not let in.
    pub(crate) fn count_rejection(&self, why: RejectionReason) {
        self.of(why).inc();
    }

    fn of(&self, why: RejectionReason) -> prometheus::IntCounter {
        let why = match why {
            RejectionReason::InFlight => "in_flight",
            RejectionReason::Rate => "rate",
            RejectionReason::SlowBody => "slow_body",
            RejectionReason::BodyBytes => "body_bytes",
            RejectionReason::Watches => "watches",
        };
        self.rejections.with_label_values(&[why])
    }
}

/// Metrics that nobody sees.
impl Default for Metrics {
    fn default() -> Self {
        let vector = |name: &str, help: &str, labels: &[&str]| {
            IntCounterVec::new(Opts::new(name, help), labels).expect("names are valid")
        };
        let gauge = |name: &str, help: &str| Gauge::new(name, help).expect("names are valid");
        let seconds = HistogramOpts::new(
            "kindex_api_request_seconds",
            "Time from the request headers to the response headers.",
        );
        let metrics = Self {
            requests: vector(
                "kindex_api_requests_total",
                "Requests by kind, verb and response code.",
                &["verb", "kind", "code"],
            ),
            seconds: HistogramVec::new(seconds.buckets(SECONDS.to_vec()), &["verb", "kind"]).expect("names are valid"),
            rejections: vector(
                "kindex_api_turned_away_total",
                "Requests rejected because of a limit, by cause.",
                &["cause"],
            ),
            connections: gauge("kindex_api_connections", "Open connections of clients."),
            watches: gauge("kindex_api_watches", "Open watches."),
            subscriptions: gauge("kindex_api_event_subscriptions", "Open subscriptions to events."),
            watch_bytes: gauge(
                "kindex_api_watch_bytes",
                "Bytes of buffered events that the clients of watches have not read.",
            ),
            watches_ended: IntCounter::new(
                "kindex_api_watches_ended_total",
                "Watches ended because the event buffer was full and their clients did not read.",
            )
            .expect("names are valid"),
        };
        // Shown from the start, so that the first of them is seen as an increase.
        let causes = [
            RejectionReason::InFlight,
            RejectionReason::Rate,
            RejectionReason::SlowBody,
            RejectionReason::BodyBytes,
            RejectionReason::Watches,
        ];
        let _shown = causes.map(|why| metrics.of(why));
        metrics
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

impl watches::Meter for Metrics {
    fn held(&self, bytes: usize) {
        self.watch_bytes.set(bytes as f64);
    }

    fn ended(&self) {
        self.watches_ended.inc();
    }
}

/// One of something, for as long as it lives.
#[derive(Debug)]
pub(crate) struct GaugeIncrement(Gauge);

impl GaugeIncrement {
    pub(crate) fn of(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for GaugeIncrement {
    fn drop(&mut self) {
        self.0.dec();
    }
}
