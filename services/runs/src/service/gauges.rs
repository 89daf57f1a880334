//! What the store holds, as gauges that are read at scrape time.

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, Opts};

use crate::store::Store;

/// Shows one store.
pub(super) struct StoreGauges {
    store: Store,
    backlog: Gauge,
    tail: Gauge,
    queue: Gauge,
}

impl StoreGauges {
    pub(super) fn new(store: Store) -> Self {
        let gauge = |name: &str, help: &str| Gauge::with_opts(Opts::new(name, help)).expect("a valid name");
        Self {
            store,
            backlog: gauge(
                "kindex_runs_backlog_points",
                "Points that are stored as batches and not compacted yet.",
            ),
            tail: gauge(
                "kindex_runs_tail_bytes",
                "Memory of the batches that are kept for readers.",
            ),
            queue: gauge(
                "kindex_runs_queue_bytes",
                "Memory of the requests that wait for the writer.",
            ),
        }
    }

    fn gauges(&self) -> [&Gauge; 3] {
        [&self.backlog, &self.tail, &self.queue]
    }
}

impl Collector for StoreGauges {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges().into_iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let figures = self.store.figures();
        self.backlog.set(figures.backlog_points as f64);
        self.tail.set(figures.tail_bytes as f64);
        self.queue.set(figures.queue_bytes as f64);
        self.gauges().into_iter().flat_map(Collector::collect).collect()
    }
}
