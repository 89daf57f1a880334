//! How far topics are fed: the metrics, each with its name and help text, and what is wrong now. Knows no server.

use std::sync::{Arc, Mutex, MutexGuard};

use prometheus::core::Collector;
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};
use tokio::time::Instant;

/// The metrics of one process. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    published: IntCounterVec,
    failures: IntCounterVec,
    lag: IntGaugeVec,
}

impl Default for Metrics {
    fn default() -> Self {
        let counter =
            |name: &str, help: &str| IntCounterVec::new(Opts::new(name, help), &["kind"]).expect("a valid metric");
        let lag = Opts::new(
            "kindex_nats_lag_seconds",
            "Seconds for which the stream of the kind may lack what the outbox has; 0 where others feed it.",
        );
        Self {
            published: counter(
                "kindex_nats_published_total",
                "Events of the kind that the NATS server has stored.",
            ),
            failures: counter(
                "kindex_nats_failures_total",
                "Attempts to feed the stream of the kind that failed and are tried again.",
            ),
            lag: IntGaugeVec::new(lag, &["kind"]).expect("a valid metric"),
        }
    }
}

impl Metrics {
    /// Shown by `registry`.
    ///
    /// # Panics
    /// Where the registry shows such metrics already.
    pub fn new(registry: &Registry) -> Self {
        let metrics = Self::default();
        let collectors: [Box<dyn Collector>; 3] = [
            Box::new(metrics.published.clone()),
            Box::new(metrics.failures.clone()),
            Box::new(metrics.lag.clone()),
        ];
        for collector in collectors {
            registry.register(collector).expect("one feeder a registry");
        }
        metrics
    }

    /// Those of a kind, shown from now on.
    pub fn of(&self, kind: &str) -> Progress {
        Progress(Arc::new(Topic {
            published: self.published.with_label_values(&[kind]),
            failures: self.failures.with_label_values(&[kind]),
            lag: self.lag.with_label_values(&[kind]),
            state: Mutex::default(),
        }))
    }
}

/// How far the topic of one kind is fed. Clones are the same topic.
#[derive(Clone, Debug)]
pub struct Progress(Arc<Topic>);

#[derive(Debug)]
struct Topic {
    published: IntCounter,
    failures: IntCounter,
    lag: IntGauge,
    state: Mutex<Option<FeedState>>,
}

/// While this process feeds the topic.
#[derive(Debug)]
struct FeedState {
    /// When the stream had everything, as far as is known.
    up_to_date: Instant,
    trouble: Option<String>,
}

impl Progress {
    pub(crate) fn begin(&self, now: Instant) {
        *self.state() = Some(FeedState {
            up_to_date: now,
            trouble: None,
        });
    }

    pub(crate) fn published(&self, events: usize) {
        self.0.published.inc_by(u64::try_from(events).unwrap_or(u64::MAX));
        if let Some(state) = &mut *self.state() {
            state.trouble = None;
        }
    }

    pub(crate) fn up_to_date(&self, now: Instant) {
        if let Some(state) = &mut *self.state() {
            state.up_to_date = now;
            state.trouble = None;
        }
    }

    pub(crate) fn failed(&self, trouble: String) {
        self.0.failures.inc();
        if let Some(state) = &mut *self.state() {
            state.trouble = Some(trouble);
        }
    }

    /// Shows the lag as it is now.
    pub(crate) fn show(&self, now: Instant) {
        let lag = self.state().as_ref().map(|state| now - state.up_to_date);
        let seconds = lag.unwrap_or_default().as_secs();
        self.0.lag.set(i64::try_from(seconds).unwrap_or(i64::MAX));
    }

    pub(crate) fn end(&self) {
        *self.state() = None;
        self.0.lag.set(0);
    }

    pub(crate) fn trouble(&self) -> Option<String> {
        self.state().as_ref().and_then(|state| state.trouble.clone())
    }

    fn state(&self) -> MutexGuard<'_, Option<FeedState>> {
        self.0.state.lock().expect("nobody panics with it")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn lag_grows_from_the_last_time_that_the_stream_had_everything() {
        let progress = Metrics::default().of("Run");
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let lag = |now| {
            progress.show(now);
            progress.0.lag.get()
        };
        assert_eq!(lag(later(9)), 0, "others feed it");
        progress.begin(start);
        progress.failed("away".to_owned());
        assert_eq!((lag(later(7)), progress.trouble()), (7, Some("away".to_owned())));
        progress.published(3);
        assert_eq!((lag(later(8)), progress.trouble()), (8, None), "there may be more");
        progress.up_to_date(later(9));
        assert_eq!(lag(later(10)), 1);
        progress.end();
        assert_eq!(lag(later(20)), 0);
        assert_eq!((progress.0.published.get(), progress.0.failures.get()), (3, 1));
    }
}
