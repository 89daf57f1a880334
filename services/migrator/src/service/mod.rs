//! Trigger and migrator as they run: on one cluster, in one process of several at a time. Which of them it is, somebody
//! else decides.

use std::collections::BTreeSet;

use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::cluster::Cluster;
use crate::cluster::settings::{Pace, WriteRate};
use crate::metrics::Metrics;
use crate::trigger::Settings;
use crate::wire::GroupResource;

mod schedule;

mod health;

mod rounds;

mod watches;

mod runs;

use health::PartFailures;

/// How a migrator is set.
#[derive(Clone, Debug)]
pub struct Options {
    /// The resources that the trigger looks at; all of discovery where there is none.
    pub wanted: BTreeSet<GroupResource>,
    /// Of the trigger.
    pub settings: Settings,
    /// Of each migration.
    pub pace: Pace,
    /// Of all migrations.
    pub rate: WriteRate,
    /// Migrations at a time, of different resources.
    pub parallel: usize,
    /// How objects are migrated.
    pub strategy: MigrationStrategy,
    /// The definitions of `migration.k8s.io`, as they are installed.
    pub manifests: Vec<Value>,
}

/// Who goes over the objects first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationStrategy {
    /// Kindex alone.
    Own,
    /// Kubernetes' own migrator. See [`crate::cluster::in_tree`].
    InTree,
}

/// Trigger and migrator of one cluster.
pub struct Migrator {
    cluster: Cluster,
    options: Options,
    metrics: Metrics,
    part_failures: PartFailures,
    /// There is something to look at.
    changed: Notify,
}

impl Migrator {
    /// A migrator that does nothing yet.
    pub fn new(cluster: Cluster, options: Options, metrics: Metrics) -> Self {
        Self {
            cluster,
            options,
            metrics,
            part_failures: PartFailures::default(),
            changed: Notify::new(),
        }
    }

    /// Works until stopped. It can be run again.
    ///
    /// # Guarantees
    /// Once it has returned, it writes nothing more. What was saved of a migration is where the next process goes on.
    pub async fn run(&self, stop: &CancellationToken) {
        let installed = stop.run_until_cancelled(rounds::install_definitions(self)).await;
        if installed.is_some() {
            let rounds = stop.run_until_cancelled(rounds::follow(self));
            let watches = stop.run_until_cancelled(watches::follow(self));
            tokio::join!(rounds, watches, runs::follow(self, stop));
        }
        self.part_failures.clear();
        self.metrics.last_reconciled.set(0.0);
    }

    /// Why it does not do its work now; nothing where it does, or waits for its turn.
    pub fn not_ready(&self) -> Vec<String> {
        self.part_failures.list()
    }
}
