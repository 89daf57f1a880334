//! The ingester's status as gauges, which are read at scrape time. Counters are in [`metrics`](crate::metrics).

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use kindex_store::database_gauges::{gauge, vector};
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, GaugeVec};
use tokio::sync::watch;

use super::status::KindStatus;

/// A gauge that every kind has.
struct OfKind {
    name: &'static str,
    help: &'static str,
    read: fn(&KindStatus) -> f64,
}

const OF_KINDS: &[OfKind] = &[
    OfKind {
        name: "kindex_ingester_queue_depth",
        help: "Objects that wait only for a writer, the cluster or the database.",
        read: |kind| kind.pending.saturating_sub(kind.waiting) as f64,
    },
    OfKind {
        name: "kindex_ingester_waiting",
        help: "Objects that wait for deletionDelay, for finalizers of other programs, for what they own or for a \
               retry.",
        read: |kind| kind.waiting as f64,
    },
    OfKind {
        name: "kindex_ingester_quarantined",
        help: "Objects in quarantine, because the database refuses them.",
        read: |kind| kind.quarantined.len() as f64,
    },
    OfKind {
        name: "kindex_ingester_unrecorded",
        help: "Objects that are retried because the database refuses even their quarantine record.",
        read: |kind| kind.unrecorded as f64,
    },
    OfKind {
        name: "kindex_ingester_held_orphans",
        help: "Live rows without an object that stay open because there are more of them than the limit.",
        read: |kind| kind.held_orphans.map_or(0, |held| held.rows) as f64,
    },
    OfKind {
        name: "kindex_ingester_active",
        help: "1 while this replica works on the kind, 0 while another replica does.",
        read: |kind| f64::from(kind.active),
    },
    OfKind {
        name: "kindex_ingester_synced",
        help: "1 once SQL has been compared with the cluster, or the watch resumed, since startup.",
        read: |kind| f64::from(kind.synced),
    },
    OfKind {
        name: "kindex_ingester_failing",
        help: "1 while the last request to the cluster or the database has failed.",
        read: |kind| f64::from(kind.failing),
    },
    OfKind {
        name: "kindex_ingester_received_resource_version",
        help: "Newest resource version received.",
        read: |kind| kind.position.0 as f64,
    },
    OfKind {
        name: "kindex_ingester_settled_resource_version",
        help: "Resource version up to which everything is settled. A restart resumes here.",
        read: |kind| kind.settled.0 as f64,
    },
    OfKind {
        name: "kindex_ingester_unsettled_seconds",
        help: "Age of the oldest object that is not settled, except objects within their deletionDelay and objects \
               that wait for what they own; 0 if there is none.",
        read: |kind| kind.oldest_arrival.map_or(0.0, age),
    },
];

fn age(since: Timestamp) -> f64 {
    Timestamp::now().duration_since(since).as_secs_f64().max(0.0)
}

/// Shows the status of all kinds, and whether the database was reached.
pub(super) struct StatusGauges {
    kinds: Vec<watch::Receiver<KindStatus>>,
    database: watch::Receiver<Option<String>>,
    of_kinds: Vec<(&'static OfKind, GaugeVec)>,
    phase: GaugeVec,
    ready: Gauge,
    /// One scrape at a time: the series of a phase that is over are taken away.
    scraping: Mutex<()>,
}

impl StatusGauges {
    pub(super) fn new(kinds: Vec<watch::Receiver<KindStatus>>, database: watch::Receiver<Option<String>>) -> Self {
        let of_kinds = OF_KINDS
            .iter()
            .map(|gauge| (gauge, vector(gauge.name, gauge.help, &["kind"])));
        Self {
            kinds,
            database,
            of_kinds: of_kinds.collect(),
            phase: vector(
                "kindex_ingester_phase",
                "1 for the current phase of a kind. Other phases are absent.",
                &["kind", "phase"],
            ),
            ready: gauge(
                "kindex_database_ready",
                "1 once the database has responded and has the required tables.",
            ),
            scraping: Mutex::default(),
        }
    }

    fn collectors(&self) -> impl Iterator<Item = &dyn Collector> {
        let of_kinds = self.of_kinds.iter().map(|(_, vector)| vector as &dyn Collector);
        let others: [&dyn Collector; 2] = [&self.phase, &self.ready];
        of_kinds.chain(others)
    }

    fn update(&self) {
        self.phase.reset();
        for status in &self.kinds {
            let status = status.borrow();
            for (gauge, vector) in &self.of_kinds {
                vector.with_label_values(&[status.kind]).set((gauge.read)(&status));
            }
            self.phase.with_label_values(&[status.kind, status.phase]).set(1.0);
        }
        self.ready.set(f64::from(self.database.borrow().is_none()));
    }
}

impl Collector for StatusGauges {
    fn desc(&self) -> Vec<&Desc> {
        self.collectors().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let _alone = self.scraping.lock().unwrap_or_else(PoisonError::into_inner);
        self.update();
        self.collectors().flat_map(Collector::collect).collect()
    }
}
