//! The metrics of the deletion graph, each with its name and help text.

use prometheus::core::Collector;
use prometheus::{IntCounterVec, IntGaugeVec, Opts, Registry};

use crate::decide::Step;

/// The figures of one process. Clones count together.
#[derive(Clone, Debug)]
pub struct Figures {
    steps: IntCounterVec,
    failures: IntCounterVec,
    blocked: IntGaugeVec,
}

impl Default for Figures {
    fn default() -> Self {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            IntCounterVec::new(Opts::new(name, help), labels).expect("a valid metric")
        };
        let blocked = Opts::new(
            "kindex_deletion_blocked",
            "Objects of the kind whose deletion waits for longer than the limit.",
        );
        Self {
            steps: counter(
                "kindex_deletion_steps_total",
                "Steps that were carried out, by kind and step.",
                &["kind", "step"],
            ),
            failures: counter(
                "kindex_deletion_failures_total",
                "Steps that failed and are tried again, by kind.",
                &["kind"],
            ),
            blocked: IntGaugeVec::new(blocked, &["kind"]).expect("a valid metric"),
        }
    }
}

impl Figures {
    /// Shown by `registry`.
    ///
    /// # Panics
    /// Where the registry shows a deletion graph already.
    pub fn new(registry: &Registry) -> Self {
        let figures = Self::default();
        let collectors: [Box<dyn Collector>; 3] = [
            Box::new(figures.steps.clone()),
            Box::new(figures.failures.clone()),
            Box::new(figures.blocked.clone()),
        ];
        for collector in collectors {
            registry.register(collector).expect("one deletion graph a registry");
        }
        figures
    }

    /// Shows the figures of a kind before there is anything to count.
    pub(crate) fn begin(&self, kind: &str) {
        self.steps.with_label_values(&[kind, word(&Step::Guard)]);
        self.failures.with_label_values(&[kind]);
        self.blocked(kind, 0);
    }

    pub(crate) fn carried_out(&self, kind: &str, step: &Step) {
        self.steps.with_label_values(&[kind, word(step)]).inc();
    }

    pub(crate) fn failed(&self, kind: &str) {
        self.failures.with_label_values(&[kind]).inc();
    }

    pub(crate) fn blocked(&self, kind: &str, objects: usize) {
        let shown = i64::try_from(objects).unwrap_or(i64::MAX);
        self.blocked.with_label_values(&[kind]).set(shown);
    }
}

fn word(step: &Step) -> &'static str {
    match step {
        Step::Guard => "guard",
        Step::Place { .. } => "place",
        Step::Release(_) => "release",
        Step::Request(_) => "request",
        Step::Delete(_) => "delete",
        Step::Record(_) => "record",
        Step::Free { .. } => "free",
        Step::CleanUp => "clean_up",
        Step::Wait(_) => "wait",
        Step::Rest(_) => "rest",
    }
}
