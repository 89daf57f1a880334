//! How the verbs are put together: over which cluster and database, beside which services, and with which limits.

use std::sync::Arc;

use jiff::Timestamp;
use kindex_model::kind::Registry;
use kindex_serve::watches::{WatchLimits, Watches};
use kindex_store::MetadataStorage;
use tokio_util::sync::CancellationToken;

use super::cluster::Upstream;
use super::events::Hubs;
use super::names::Names;
use super::rights::Rights;
use super::snapshot::Snapshots;
use super::watch::Feed;
use super::{ClusterAccess, Operations, Pace, Peers, RightsOf, Sizes, Storage};
use crate::figures::Figures;

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
        Ok(Self::over(registry, upstream, Storage::On { store, feed }, rights))
    }

    /// Over the cluster alone: nothing is guarded, deletions are Kubernetes' own, and lists and watches are the
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
            registry,
            upstream,
            sql_only: None,
            storage,
            rights: Rights::new(rights),
            peers: Peers::of(&registry),
            has_graph: false,
            outside: Vec::new(),
            clock: Timestamp::now,
            figures: Figures::default(),
            watches: Watches::new(WatchLimits::default()),
            snapshots: Snapshots::default(),
            names: Names::default(),
            sizes: Sizes::default(),
            pace: Pace::default(),
            hubs: Arc::new(Hubs::new(registry.kinds, Pace::default().events)),
            ending: CancellationToken::new(),
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
        self.has_graph = has_graph;
        self
    }

    /// The same with an API of the kinds that no cluster has: the objects are all there, and only there.
    #[must_use]
    pub fn with_sql_only(mut self, api: kube::Client) -> Self {
        self.sql_only = Some(Upstream::in_process(api));
        self
    }

    /// The same with another time of day.
    #[must_use]
    pub fn with_clock(mut self, clock: fn() -> Timestamp) -> Self {
        self.clock = clock;
        self
    }

    /// The same, following what changes in SQL at another pace.
    #[must_use]
    pub fn with_pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self.hubs = Arc::new(Hubs::new(self.registry.kinds, pace.events));
        self.followed_anew()
    }

    /// The same, reading so much at once.
    #[must_use]
    pub fn with_sizes(mut self, sizes: Sizes) -> Self {
        self.sizes = sizes;
        self.followed_anew()
    }

    fn followed_anew(mut self) -> Self {
        if let Storage::On { store, feed } = &mut self.storage {
            let (upstream, kinds) = (self.upstream.clone(), self.registry.kinds);
            *feed = Feed::start(store.clone(), upstream, kinds, self.pace, self.sizes.changes);
        }
        self
    }

    /// The same, counting here.
    #[must_use]
    pub fn with_figures(mut self, figures: Figures) -> Self {
        self.watches = Watches::metered(self.watches.limits(), figures.clone());
        self.figures = figures;
        self
    }

    /// The same, bearing such watches.
    #[must_use]
    pub fn with_watch_limits(mut self, limits: WatchLimits) -> Self {
        self.watches = Watches::metered(limits, self.figures.clone());
        self
    }
}
