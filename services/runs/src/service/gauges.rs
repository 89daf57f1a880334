//! What the store holds, as gauges that are read at scrape time.

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, GaugeVec, Opts};

use crate::store::Store;

/// Shows one store.
pub(super) struct StoreGauges {
    store: Store,
    failing: Gauge,
    backlog: Gauge,
    backlog_max: Gauge,
    deferred: Gauge,
    tail: Gauge,
    queue: Gauge,
    queue_max: Gauge,
    held_max: Gauge,
    disk: Gauge,
    disk_free: Gauge,
    files: GaugeVec,
}

impl StoreGauges {
    pub(super) fn new(store: Store) -> Self {
        let gauge = |name: &str, help: &str| Gauge::with_opts(Opts::new(name, help)).expect("a valid name");
        let files = Opts::new("kindex_runs_file_bytes", "Size of the file of runs, and of its log.");
        Self {
            store,
            failing: gauge(
                "kindex_runs_failing",
                "1 since a transaction has failed, until another one writes.",
            ),
            backlog: gauge(
                "kindex_runs_backlog_points",
                "Points that are stored as batches and not compacted yet.",
            ),
            backlog_max: gauge(
                "kindex_runs_backlog_points_max",
                "Points that may wait for compaction. Beyond, batches are refused.",
            ),
            deferred: gauge(
                "kindex_runs_compaction_failing",
                "Runs whose compaction has failed and is retried later.",
            ),
            tail: gauge(
                "kindex_runs_tail_bytes",
                "Memory of the batches that are kept for readers.",
            ),
            queue: gauge(
                "kindex_runs_queue_bytes",
                "Memory of the requests that wait for the writer.",
            ),
            queue_max: gauge(
                "kindex_runs_queue_bytes_max",
                "Memory that requests may wait in. Beyond, they are refused.",
            ),
            held_max: gauge(
                "kindex_runs_held_bytes_max",
                "Bytes of batches that may be held. Beyond, they are refused.",
            ),
            disk: gauge(
                "kindex_runs_disk_bytes",
                "Size of the file system on which the runs are.",
            ),
            disk_free: gauge("kindex_runs_disk_free_bytes", "Free bytes of that file system."),
            files: GaugeVec::new(files, &["file"]).expect("a name and labels that are valid"),
        }
    }

    fn collectors(&self) -> [&dyn Collector; 11] {
        [
            &self.failing,
            &self.backlog,
            &self.backlog_max,
            &self.deferred,
            &self.tail,
            &self.queue,
            &self.queue_max,
            &self.held_max,
            &self.disk,
            &self.disk_free,
            &self.files,
        ]
    }

    fn all(&self) -> impl Iterator<Item = &dyn Collector> {
        self.collectors().into_iter().chain(self.store.meter().collectors())
    }
}

impl Collector for StoreGauges {
    fn desc(&self) -> Vec<&Desc> {
        self.all().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let (stats, disk) = (self.store.stats(), self.store.disk());
        let is_failing = self.store.health().borrow().is_some();
        self.failing.set(f64::from(u8::from(is_failing)));
        self.backlog.set(stats.backlog_points as f64);
        self.backlog_max.set(stats.backlog_points_max as f64);
        self.deferred.set(stats.deferred_runs as f64);
        self.tail.set(stats.tail_bytes as f64);
        self.queue.set(stats.queue_bytes as f64);
        self.queue_max.set(stats.queue_bytes_max as f64);
        self.held_max.set(stats.held_bytes_max as f64);
        self.disk.set(disk.size_bytes as f64);
        self.disk_free.set(disk.free_bytes as f64);
        for (file, bytes) in [("runs.db", disk.file_bytes), ("runs.db-wal", disk.log_bytes)] {
            self.files.with_label_values(&[file]).set(bytes as f64);
        }
        self.all().flat_map(Collector::collect).collect()
    }
}
