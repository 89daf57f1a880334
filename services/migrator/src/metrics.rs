//! The metrics of the migrator, each with its name and help text.

use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{Gauge, Histogram, HistogramOpts, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

use crate::run::Verdict;
use crate::run::answer::Written;
use crate::trigger::Finding;

/// From a resource without objects to a million of them at the usual rate.
const RUN_SECONDS: &[f64] = &[1.0, 10.0, 60.0, 600.0, 3_600.0, 21_600.0, 86_400.0];
/// From one small object to a page of large ones.
const CONVERSION_SECONDS: &[f64] = &[0.000_1, 0.001, 0.01, 0.1, 1.0, 10.0];

/// What becomes of an object.
const OUTCOMES: &[&str] = &["rewritten", "unchanged", "conflict", "gone", "refused"];
/// How a ConversionReview is answered.
const RESULTS: &[&str] = &["converted", "failed", "unreadable"];

/// The metrics of one process. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    objects: IntCounterVec,
    runs: IntCounterVec,
    run_seconds: Histogram,
    findings: IntGaugeVec,
    conversions: IntCounterVec,
    conversion_seconds: Histogram,
    /// Migrations under way.
    pub running: IntGauge,
    /// When the trigger last reconciled everything, in seconds since 1970.
    pub last_reconciled: Gauge,
}

impl Metrics {
    /// Shown by `registry`.
    ///
    /// # Panics
    /// Where the registry shows a migrator already.
    pub fn new(registry: &Registry) -> Self {
        let metrics = Self::default();
        let collectors: [Box<dyn Collector>; 8] = [
            Box::new(metrics.objects.clone()),
            Box::new(metrics.runs.clone()),
            Box::new(metrics.run_seconds.clone()),
            Box::new(metrics.findings.clone()),
            Box::new(metrics.conversions.clone()),
            Box::new(metrics.conversion_seconds.clone()),
            Box::new(metrics.running.clone()),
            Box::new(metrics.last_reconciled.clone()),
        ];
        for collector in collectors {
            registry.register(collector).expect("one migrator a registry");
        }
        metrics
    }

    /// Counts what became of an object.
    pub(crate) fn written(&self, written: &Written) {
        let outcome = match written {
            Written::Rewritten => "rewritten",
            Written::Unchanged => "unchanged",
            Written::Conflict => "conflict",
            Written::Gone => "gone",
            Written::Refused { .. } => "refused",
        };
        self.objects.with_label_values(&[outcome]).inc();
    }

    /// Counts a migration that ended, by the reason of its condition, after it was at work in this process for so long.
    pub(crate) fn ended(&self, reason: &str, after: Duration) {
        self.runs.with_label_values(&[reason]).inc();
        self.run_seconds.observe(after.as_secs_f64());
    }

    /// Shows of how many resources this was found.
    pub(crate) fn found(&self, finding: Finding, resources: usize) {
        let shown = i64::try_from(resources).unwrap_or(i64::MAX);
        self.findings.with_label_values(&[finding.word()]).set(shown);
    }

    /// Counts an answer to a ConversionReview.
    pub(crate) fn converted(&self, result: &str, after: Duration) {
        self.conversions.with_label_values(&[result]).inc();
        self.conversion_seconds.observe(after.as_secs_f64());
    }
}

/// Metrics that nobody sees.
impl Default for Metrics {
    fn default() -> Self {
        let counters = |name: &str, help: &str, label: &str, values: &[&str]| {
            let counters = IntCounterVec::new(Opts::new(name, help), &[label]).expect("names are valid");
            values
                .iter()
                .for_each(|value| counters.with_label_values(&[value]).reset());
            counters
        };
        let histogram = |name: &str, help: &str, buckets: &[f64]| {
            let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
            Histogram::with_opts(options).expect("names are valid")
        };
        let findings = Opts::new(
            "kindex_migrator_findings",
            "Resources of which discovery shows something that keeps them from being migrated, by what it is.",
        );
        let findings = IntGaugeVec::new(findings, &["finding"]).expect("names are valid");
        for finding in Finding::ALL {
            findings.with_label_values(&[finding.word()]).set(0);
        }
        Self {
            objects: counters(
                "kindex_migrator_objects_total",
                "Objects that migrations have been through, each pass counted.",
                "outcome",
                OUTCOMES,
            ),
            runs: counters(
                "kindex_migrator_runs_total",
                "Storage version migrations that ended, by the reason of their condition.",
                "reason",
                Verdict::REASONS,
            ),
            run_seconds: histogram(
                "kindex_migrator_run_seconds",
                "How long this process worked on a migration that ended.",
                RUN_SECONDS,
            ),
            findings,
            conversions: counters(
                "kindex_migrator_conversions_total",
                "ConversionReviews answered, by result.",
                "result",
                RESULTS,
            ),
            conversion_seconds: histogram(
                "kindex_migrator_conversion_seconds",
                "Time to convert the objects of one ConversionReview.",
                CONVERSION_SECONDS,
            ),
            running: IntGauge::new("kindex_migrator_running", "Storage version migrations under way.")
                .expect("names are valid"),
            last_reconciled: Gauge::new(
                "kindex_migrator_last_look_timestamp_seconds",
                "When the trigger last looked at discovery, in seconds since 1970; 0 on a replica that waits.",
            )
            .expect("names are valid"),
        }
    }
}
