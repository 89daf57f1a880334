//! The metrics of the deletion graph, each with its name and help text.

use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{IntCounterVec, IntGaugeVec, Opts, Registry};

use crate::cleanup_states::CallOutcome;
use crate::decide::Step;

/// What came of a notice for a web server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    /// The server has taken it.
    Sent,
    /// The server refuses it, or does not answer.
    Failed,
    /// It was not sent: too many waited, or the service stopped.
    Dropped,
}

impl Posted {
    const ALL: [Self; 3] = [Self::Sent, Self::Failed, Self::Dropped];

    fn word(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        }
    }
}

/// The metrics of one process. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    steps: IntCounterVec,
    failures: IntCounterVec,
    blocked: IntGaugeVec,
    longest_wait: IntGaugeVec,
    refused: IntGaugeVec,
    notices: IntCounterVec,
    vanished: IntCounterVec,
    cleanups: IntCounterVec,
    web_notices: IntCounterVec,
}

impl Default for Metrics {
    fn default() -> Self {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            IntCounterVec::new(Opts::new(name, help), labels).expect("a valid metric")
        };
        let gauge =
            |name: &str, help: &str| IntGaugeVec::new(Opts::new(name, help), &["kind"]).expect("a valid metric");
        let metrics = Self {
            steps: counter(
                "kindex_deletion_steps_total",
                "Steps that were carried out, by kind and step.",
                &["kind", "step"],
            ),
            failures: counter(
                "kindex_deletion_failures_total",
                "Steps that failed or could not change a holder, and are tried again, by kind.",
                &["kind"],
            ),
            blocked: gauge(
                "kindex_deletion_blocked",
                "Objects of the kind whose deletion waits for longer than the limit.",
            ),
            longest_wait: gauge(
                "kindex_deletion_longest_wait_seconds",
                "For how long the deletion of an object of the kind has waited for the same others, at most.",
            ),
            refused: gauge(
                "kindex_deletion_refused",
                "Objects of the kind with holders that the cluster refused to change, as of the last look at each.",
            ),
            notices: counter(
                "kindex_deletion_notices_total",
                "Notices about objects of the kind, one for each object and what it waits for, by reason.",
                &["kind", "reason"],
            ),
            vanished: counter(
                "kindex_deletion_references_vanished_total",
                "References, and finalizers of Kindex, that were taken off objects of the kind past the API.",
                &["kind"],
            ),
            cleanups: counter(
                "kindex_deletion_cleanups_total",
                "Cleanups of what objects of the kind have outside, by what came of them.",
                &["kind", "answer"],
            ),
            web_notices: counter(
                "kindex_deletion_web_notices_total",
                "Notices for the web server of --notify, by what came of them.",
                &["result"],
            ),
        };
        for result in Posted::ALL {
            metrics.posted(result, 0);
        }
        metrics
    }
}

impl Metrics {
    /// Shown by `registry`.
    ///
    /// # Panics
    /// Where the registry shows a deletion graph already.
    pub fn new(registry: &Registry) -> Self {
        let metrics = Self::default();
        let collectors: [Box<dyn Collector>; 9] = [
            Box::new(metrics.steps.clone()),
            Box::new(metrics.failures.clone()),
            Box::new(metrics.blocked.clone()),
            Box::new(metrics.longest_wait.clone()),
            Box::new(metrics.refused.clone()),
            Box::new(metrics.notices.clone()),
            Box::new(metrics.vanished.clone()),
            Box::new(metrics.cleanups.clone()),
            Box::new(metrics.web_notices.clone()),
        ];
        for collector in collectors {
            registry.register(collector).expect("one deletion graph a registry");
        }
        metrics
    }

    /// Shows the metrics of a kind before there is anything to count.
    pub(crate) fn begin(&self, kind: &str) {
        self.steps.with_label_values(&[kind, word(&Step::Adopt)]);
        self.failures.with_label_values(&[kind]);
        self.notices.with_label_values(&[kind, "DeletionBlocked"]);
        self.vanished.with_label_values(&[kind]);
        self.cleanups.with_label_values(&[kind, answer(&CallOutcome::Gone)]);
        self.blocked(kind, 0, Duration::ZERO);
        self.refused(kind, 0);
    }

    pub(crate) fn carried_out(&self, kind: &str, step: &Step) {
        self.steps.with_label_values(&[kind, word(step)]).inc();
    }

    pub(crate) fn failed(&self, kind: &str) {
        self.failures.with_label_values(&[kind]).inc();
    }

    /// How many failures were counted.
    #[cfg(test)]
    pub(crate) fn failures(&self, kind: &str) -> u64 {
        self.failures.with_label_values(&[kind]).get()
    }

    /// People are told of an object. What an event says already is not counted again.
    pub(crate) fn noticed(&self, kind: &str, reason: &str) {
        self.notices.with_label_values(&[kind, reason]).inc();
    }

    pub(crate) fn vanished(&self, kind: &str) {
        self.vanished.with_label_values(&[kind]).inc();
    }

    pub(crate) fn cleanup_called(&self, kind: &str, outcome: &CallOutcome) {
        self.cleanups.with_label_values(&[kind, answer(outcome)]).inc();
    }

    pub(crate) fn posted(&self, result: Posted, notices: u64) {
        self.web_notices.with_label_values(&[result.word()]).inc_by(notices);
    }

    pub(crate) fn blocked(&self, kind: &str, objects: usize, longest: Duration) {
        let shown = i64::try_from(objects).unwrap_or(i64::MAX);
        self.blocked.with_label_values(&[kind]).set(shown);
        let seconds = i64::try_from(longest.as_secs()).unwrap_or(i64::MAX);
        self.longest_wait.with_label_values(&[kind]).set(seconds);
    }

    pub(crate) fn refused(&self, kind: &str, objects: usize) {
        let shown = i64::try_from(objects).unwrap_or(i64::MAX);
        self.refused.with_label_values(&[kind]).set(shown);
    }

    /// Nobody looks at the objects any more: an alert would go on for ever.
    pub(crate) fn forget_refused(&self) {
        self.refused.reset();
    }
}

/// The name of a step in metrics and the log.
pub(crate) fn word(step: &Step) -> &'static str {
    match step {
        Step::Adopt => "guard",
        Step::Place { .. } => "place",
        Step::Release(_) => "release",
        Step::Request(_) => "request",
        Step::Delete(_) => "delete",
        Step::Record(..) => "record",
        Step::Free { .. } => "free",
        Step::Hold { .. } => "hold",
        Step::Keep(_) => "keep",
        Step::Sweep => "sweep",
        Step::CleanUp => "clean_up",
        Step::Wait(_) => "wait",
        Step::Rest(_) => "rest",
    }
}

fn answer(outcome: &CallOutcome) -> &'static str {
    match outcome {
        CallOutcome::Gone => "gone",
        CallOutcome::Pending(..) => "pending",
        CallOutcome::Failed(_) => "failed",
    }
}
