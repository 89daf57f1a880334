//! The counters and histograms of one kind, each with its name and help text. Gauges are in `gauges`.

use std::collections::HashMap;
use std::time::Duration;

use kindex_store::Written;
use prometheus::core::Collector;
use prometheus::{Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts, Registry};

/// From the latency of one commit on a local disk to an outage.
const LAG_SECONDS: &[f64] = &[
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0,
];
const BATCH_ROWS: &[f64] = &[
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0,
];
/// Shown from the start, so that the first of them is seen as an increase.
const COMMON_CAUSES: &[&str] = &["connection", "timeout", "deadlock", "conflict"];

/// The metrics of one kind.
#[derive(Debug)]
pub struct KindMetrics {
    /// From the arrival of an event to its committed row, in seconds.
    pub lag: Histogram,
    /// Rows a batch.
    pub batch_rows: Histogram,
    /// Watch events received.
    pub events: IntCounter,
    /// Events that a newer one of the same uid replaced before they were stored.
    pub collapsed: IntCounter,
    /// Rows inserted.
    pub inserted: IntCounter,
    /// Rows changed.
    pub updated: IntCounter,
    /// Writes that found the row as it should be.
    pub unchanged: IntCounter,
    /// Writes that lost against a newer row.
    pub superseded: IntCounter,
    /// Objects that left the cluster for SQL.
    pub evictions: IntCounter,
    /// Archived objects whose name another object took in the cluster.
    pub replaced: IntCounter,
    /// Deletions of which SQL never held the object.
    pub lost: IntCounter,
    /// Rows that were marked deleted, or archived in the same version, while the cluster showed the object alive.
    pub revived: IntCounter,
    /// Stored objects that did not fit their typed projection.
    pub problems: IntCounter,
    /// Texts from the cluster that are no objects.
    pub unreadable: IntCounter,
    /// Full lists.
    pub relists: IntCounter,
    /// Live rows whose object a list did not show.
    pub orphans: IntCounter,
    retries: IntCounterVec,
}

impl KindMetrics {
    /// The metrics of a kind, registered in `registry`.
    ///
    /// # Panics
    /// Where the registry shows a kind of this name already.
    pub fn new(kind: &str, registry: &Registry) -> Self {
        Self::build(&Family {
            kind,
            registry: Some(registry),
        })
    }

    fn build(family: &Family<'_>) -> Self {
        let written = |result| {
            let help = "Writes by result.";
            family.counter("kindex_ingester_written_total", help, Some(("result", result)))
        };
        let counter = |name, help| family.counter(name, help, None);
        Self {
            lag: family.histogram(
                "kindex_ingester_lag_seconds",
                "Time from the arrival of an event to its committed row.",
                LAG_SECONDS,
            ),
            batch_rows: family.histogram("kindex_ingester_batch_rows", "Writes per transaction.", BATCH_ROWS),
            events: counter("kindex_ingester_events_total", "Watch events received."),
            collapsed: counter(
                "kindex_ingester_collapsed_total",
                "Events of objects that were still queued, so that one write covers several events.",
            ),
            inserted: written("inserted"),
            updated: written("updated"),
            unchanged: written("unchanged"),
            superseded: written("superseded"),
            evictions: counter("kindex_ingester_evicted_total", "Objects evicted from the cluster."),
            replaced: counter(
                "kindex_ingester_replaced_total",
                "Archived objects replaced by an object that was created directly in the cluster under the same name.",
            ),
            lost: counter(
                "kindex_ingester_lost_total",
                "Deleted objects that SQL never held, because somebody else removed the finalizer before they were stored.",
            ),
            revived: counter(
                "kindex_ingester_revived_total",
                "Deleted rows, and rows archived in the same version, whose object is live in the cluster.",
            ),
            problems: counter(
                "kindex_ingester_projection_problems_total",
                "Stored objects with at least one column that could not be read.",
            ),
            unreadable: counter(
                "kindex_ingester_unreadable_total",
                "Items from the cluster that are not valid objects and are not stored.",
            ),
            relists: counter(
                "kindex_ingester_relists_total",
                "Full lists after a first start or a gap in the watch.",
            ),
            orphans: counter(
                "kindex_ingester_orphans_total",
                "Live rows whose object was missing from a full list.",
            ),
            retries: family.retries(),
        }
    }

    /// Counts what became of one write.
    pub fn count_written(&self, written: Written) {
        match written {
            Written::Inserted => self.inserted.inc(),
            Written::Updated => self.updated.inc(),
            Written::Unchanged => self.unchanged.inc(),
            Written::Superseded => self.superseded.inc(),
            Written::Replacing => {
                self.inserted.inc();
                self.replaced.inc();
            }
        }
    }

    /// Counts one more attempt for this cause.
    pub fn retry(&self, cause: &'static str) {
        self.retries.with_label_values(&[cause]).inc();
    }

    /// Attempts for this cause.
    pub fn retries(&self, cause: &'static str) -> u64 {
        self.retries.with_label_values(&[cause]).get()
    }

    /// Counts the time from an event's arrival to its row.
    pub fn observe_lag(&self, lag: Duration) {
        self.lag.observe(lag.as_secs_f64());
    }

    /// The mean time from an event's arrival to its row; `None` before the first.
    pub fn mean_lag(&self) -> Option<Duration> {
        let count = self.lag.get_sample_count();
        (count > 0).then(|| Duration::from_secs_f64(self.lag.get_sample_sum() / count as f64))
    }
}

/// Metrics that are not exported.
impl Default for KindMetrics {
    fn default() -> Self {
        Self::build(&Family {
            kind: "",
            registry: None,
        })
    }
}

/// Makes the metrics of one kind, which share the label `kind`.
struct Family<'a> {
    kind: &'a str,
    registry: Option<&'a Registry>,
}

impl Family<'_> {
    fn counter(&self, name: &str, help: &str, label: Option<(&str, &str)>) -> IntCounter {
        let opts = Opts::new(name, help).const_labels(self.labels(label));
        self.shown(IntCounter::with_opts(opts))
    }

    fn histogram(&self, name: &str, help: &str, bounds: &[f64]) -> Histogram {
        let opts = HistogramOpts::new(name, help)
            .const_labels(self.labels(None))
            .buckets(bounds.to_vec());
        self.shown(Histogram::with_opts(opts))
    }

    fn retries(&self) -> IntCounterVec {
        let opts = Opts::new(
            "kindex_ingester_retries_total",
            "Failed attempts that are retried, by cause.",
        );
        let retries = self.shown(IntCounterVec::new(opts.const_labels(self.labels(None)), &["cause"]));
        for cause in COMMON_CAUSES {
            retries.with_label_values(&[cause]);
        }
        retries
    }

    fn labels(&self, more: Option<(&str, &str)>) -> HashMap<String, String> {
        let labels = more.into_iter().chain([("kind", self.kind)]);
        labels
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    fn shown<M: Collector + Clone + 'static>(&self, metric: prometheus::Result<M>) -> M {
        let metric = metric.expect("names and labels are valid");
        if let Some(registry) = self.registry {
            let registered = registry.register(Box::new(metric.clone()));
            registered.expect("a kind is registered once");
        }
        metric
    }
}

#[cfg(test)]
mod tests {
    use prometheus::TextEncoder;

    use super::*;

    #[test]
    fn kinds_share_a_family_and_differ_in_a_label() {
        let registry = Registry::new();
        let [model, project] = ["Model", "Project"].map(|kind| KindMetrics::new(kind, &registry));
        model.count_written(Written::Inserted);
        model.count_written(Written::Replacing);
        project.retry("deadlock");
        let text = TextEncoder::new()
            .encode_to_string(&registry.gather())
            .expect("encodable");
        for line in [
            r#"kindex_ingester_written_total{kind="Model",result="inserted"} 2"#,
            r#"kindex_ingester_replaced_total{kind="Model"} 1"#,
            r#"kindex_ingester_written_total{kind="Project",result="inserted"} 0"#,
            r#"kindex_ingester_retries_total{cause="deadlock",kind="Project"} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        let families = text.matches("# TYPE kindex_ingester_written_total counter").count();
        assert_eq!(families, 1, "{text}");
    }

    #[test]
    fn lag_is_counted_in_seconds() {
        let metrics = KindMetrics::default();
        assert_eq!(metrics.mean_lag(), None);
        metrics.observe_lag(Duration::from_millis(250));
        metrics.observe_lag(Duration::from_millis(750));
        assert_eq!(metrics.mean_lag(), Some(Duration::from_millis(500)));
    }
}
