//! The connections of a database and the calls that wait for it, as gauges that are read at scrape time.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, GaugeVec, Opts};

use crate::Database;

/// Shows one store.
pub struct DatabaseGauges {
    storage: Arc<dyn Database>,
    connections: GaugeVec,
    connections_max: Gauge,
    oldest_call: Gauge,
    /// One scrape at a time.
    scraping: Mutex<()>,
}

impl DatabaseGauges {
    /// To be registered once a registry.
    pub fn new(storage: Arc<dyn Database>) -> Self {
        Self {
            storage,
            connections: vector(
                "kindex_database_connections",
                "Open connections to the database, idle or used.",
                &["state"],
            ),
            connections_max: gauge("kindex_database_connections_max", "Maximum number of open connections."),
            oldest_call: gauge(
                "kindex_database_oldest_call_seconds",
                "How long the oldest call in flight has waited for the database; 0 if there is none.",
            ),
            scraping: Mutex::default(),
        }
    }

    fn collectors(&self) -> [&dyn Collector; 3] {
        [&self.connections, &self.connections_max, &self.oldest_call]
    }

    fn update(&self) {
        let oldest = self.storage.calls().oldest();
        self.oldest_call.set(oldest.as_secs_f64());
        let pool = self.storage.pool();
        let used = pool.open.saturating_sub(pool.idle);
        for (state, connections) in [("used", used), ("idle", pool.idle)] {
            self.connections.with_label_values(&[state]).set(connections.into());
        }
        self.connections_max.set(pool.max.into());
    }
}

impl Collector for DatabaseGauges {
    fn desc(&self) -> Vec<&Desc> {
        self.collectors().into_iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let _alone = self.scraping.lock().unwrap_or_else(PoisonError::into_inner);
        self.update();
        self.collectors().into_iter().flat_map(Collector::collect).collect()
    }
}

/// An unregistered gauge with labels.
///
/// # Panics
/// Where a name is none of Prometheus'.
pub fn vector(name: &str, help: &str, labels: &[&str]) -> GaugeVec {
    GaugeVec::new(Opts::new(name, help), labels).expect("names and labels are valid")
}

/// An unregistered gauge.
///
/// # Panics
/// Where the name is none of Prometheus'.
pub fn gauge(name: &str, help: &str) -> Gauge {
    Gauge::with_opts(Opts::new(name, help)).expect("names are valid")
}
