//! How the verbs are put together: over which cluster and database, beside which services, and with which limits.

use std::sync::Arc;

use jiff::Timestamp;
use kindex_model::kind::{Kind, Registry};
use kindex_serve::watches::{WatchLimits, Watches};
use kindex_store::MetadataStorage;
use tokio_util::sync::CancellationToken;

use super::cluster::Upstream;
use super::events::Hubs;
use super::names::Names;
use super::rights::Rights;
use super::snapshot::Snapshots;
use super::tombstones::Graph;
use super::watch::Feed;
use super::{Backends, ClusterAccess, Operations, Pace, Peers, RightsOf, Sizes, Storage, Streams, Suffix};
use crate::metrics::Metrics;

impl Operations {
    /// Over the cluster of this configuration and this database, with these rights. Follows what changes in the
    /// database until it is dropped.
    ///
    /// # Assumptions
    /// Runs inside a Tokio runtime.
    ///
    /// # Errors
    /// A configuration of which no client can be made.
    pub fn new(
        registry: Registry,
        cluster: impl Into<ClusterAccess>,
        store: Arc<dyn MetadataStorage>,
        rights: RightsOf,
    ) -> Result<Self, kube::Error> {
        let upstream = Arc::new(Upstream::new(cluster.into(), rights)?);
        let (pace, changes) = (Pace::default(), Sizes::default().changes);
        let feed = Feed::start(store.clone(), upstream.clone(), registry.kinds, pace, changes);
        let names = Names::default();
        Ok(Self::over(
            registry,
            upstream,
            Storage::On { store, feed, names },
            rights,
        ))
    }

    /// Over the cluster alone: nothing gets a finalizer, deletions are Kubernetes' own, and lists and watches are the
    /// cluster's. What needs a database is refused with this reason.
    ///
    /// # Errors
    /// A configuration of which no client can be made.
    pub fn without_storage(
        registry: Registry,
        cluster: impl Into<ClusterAccess>,
        reason: &str,
        rights: RightsOf,
    ) -> Result<Self, kube::Error> {
        let upstream = Arc::new(Upstream::new(cluster.into(), rights)?);
        let reason = reason.to_owned();
        Ok(Self::over(registry, upstream, Storage::Off { reason }, rights))
    }

    fn over(registry: Registry, upstream: Arc<Upstream>, storage: Storage, rights: RightsOf) -> Self {
        Self {
            rights: Rights::new(rights, upstream.clone()),
            backends: Backends {
                registry,
                upstream,
                sql_only: None,
                storage,
                graph: Graph::default(),
                clock: Timestamp::now,
                suffixes: rand::random,
            },
            peers: Peers::of(&registry),
            streams: Streams {
                watches: Watches::new(WatchLimits::default()),
                hubs: Arc::new(Hubs::new(registry.kinds, Pace::default().events)),
                pace: Pace::default(),
                metrics: Metrics::default(),
                ending: CancellationToken::new(),
            },
            snapshots: Snapshots::default(),
            sizes: Sizes::default(),
        }
    }

    /// The same with the other services here.
    #[must_use]
    pub fn with_peers(mut self, peers: Peers) -> Self {
        self.peers = peers;
        self
    }

    /// The same where `kindex deletion` ends the deletions of tombstones, or does not: then an archived object goes
    /// with the last reference on it, and what others name by fields alone is not asked for.
    #[must_use]
    pub fn with_graph(mut self, has_graph: bool) -> Self {
        self.backends.graph.is_there = has_graph;
        self
    }

    /// The same where `kindex deletion` cleans up what objects of these kinds have outside.
    #[must_use]
    pub fn with_outside(mut self, kinds: impl IntoIterator<Item = &'static Kind>) -> Self {
        self.backends.graph.outside = kinds.into_iter().collect();
        self
    }

    /// The same with an API of the kinds that no cluster has: the objects are all there, and only there.
    #[must_use]
    pub fn with_sql_only(mut self, api: kube::Client) -> Self {
        self.backends.sql_only = Some(Upstream::in_process(api));
        self
    }

    /// The same with another time of day.
    #[must_use]
    pub fn with_clock(mut self, clock: fn() -> Timestamp) -> Self {
        self.backends.clock = clock;
        self
    }

    /// The same with other ends of generated names.
    #[must_use]
    pub fn with_suffixes(mut self, suffixes: fn() -> Suffix) -> Self {
        self.backends.suffixes = suffixes;
        self
    }

    /// The same, following what changes in SQL at another pace.
    #[must_use]
    pub fn with_pace(mut self, pace: Pace) -> Self {
        self.streams.pace = pace;
        self.streams.hubs = Arc::new(Hubs::new(self.backends.registry.kinds, pace.events));
        self.followed_anew()
    }

    /// The same, reading so much at once.
    #[must_use]
    pub fn with_sizes(mut self, sizes: Sizes) -> Self {
        self.sizes = sizes;
        self.followed_anew()
    }

    fn followed_anew(mut self) -> Self {
        let (pace, changes) = (self.streams.pace, self.sizes.changes);
        let (upstream, kinds) = (self.backends.upstream.clone(), self.backends.registry.kinds);
        if let Storage::On { store, feed, .. } = &mut self.backends.storage {
            *feed = Feed::start(store.clone(), upstream, kinds, pace, changes);
        }
        self
    }

    /// The same, counting here.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Metrics) -> Self {
        self.streams.watches = Watches::metered(self.streams.watches.limits(), metrics.clone());
        self.streams.metrics = metrics;
        self
    }

    /// The same, with such watches.
    #[must_use]
    pub fn with_watch_limits(mut self, limits: WatchLimits) -> Self {
        self.streams.watches = Watches::metered(limits, self.streams.metrics.clone());
        self
    }
}
