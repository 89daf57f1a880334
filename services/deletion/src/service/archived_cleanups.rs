//! The cleanups of archived objects, called beside the walk over tombstones: one that hangs keeps no other tombstone.

use std::collections::{BTreeMap, BTreeSet};

use kindex_kube_client::ClusterError;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::decide::Step;
use crate::figures::Figures;
use crate::object::KindName;
use crate::outside::{ArchivedOutsides, Said};

/// Calls of a kind that are under way or wait for their turn. Others begin with a later walk.
const CALLS_MAX: usize = 1_024;

/// A call that has ended.
struct Called {
    kind: KindName,
    uid: String,
    /// Nothing where its time was over, or had not come.
    said: Result<Option<Said>, ClusterError>,
}

/// The calls for one cluster.
pub(super) struct ArchivedCleanups {
    cluster: Cluster,
    figures: Figures,
    outsides: ArchivedOutsides,
    /// By kind, the uids of those whose call has not ended.
    called: BTreeMap<KindName, BTreeSet<String>>,
    calls: JoinSet<Called>,
}

impl ArchivedCleanups {
    /// Nothing was called yet.
    pub(super) fn new(cluster: Cluster, figures: Figures) -> Self {
        Self {
            cluster,
            figures,
            outsides: ArchivedOutsides::default(),
            called: BTreeMap::new(),
            calls: JoinSet::new(),
        }
    }

    /// What was said so far.
    pub(super) fn outsides(&self) -> &ArchivedOutsides {
        &self.outsides
    }

    /// Calls the cleanup of a tombstone, unless a call is under way.
    pub(super) fn call(&mut self, kind: &KindName, uid: &str) {
        let called = self.called.entry(kind.clone()).or_default();
        if called.len() >= CALLS_MAX || !called.insert(uid.to_owned()) {
            return;
        }
        let (cluster, kind, uid) = (self.cluster.clone(), kind.clone(), uid.to_owned());
        self.calls.spawn(async move {
            let said = cluster.clean_up_archived(&kind, &uid).await;
            Called { kind, uid, said }
        });
    }

    /// Notes what has come of those that have ended.
    pub(super) fn take_ended(&mut self) {
        while let Some(ended) = self.calls.try_join_next() {
            self.note(ended.expect("a panic of a cleanup is caught"));
        }
    }

    fn note(&mut self, called: Called) {
        let Called { kind, uid, said } = called;
        if let Some(called) = self.called.get_mut(&kind) {
            called.remove(&uid);
        }
        match said {
            Ok(Some(said)) => {
                if let Said::Failed(why) = &said {
                    self.figures.failed(&kind.kind);
                    tracing::warn!(%kind, uid, why, "The cleanup of an archived object is tried again");
                }
                self.figures.carried_out(&kind.kind, &Step::CleanUp);
                self.figures.said(&kind.kind, &said);
                self.outsides.said(&uid, said, Instant::now());
            }
            // It is decided on again.
            Ok(None) => {}
            Err(error) => {
                self.figures.failed(&kind.kind);
                tracing::warn!(%kind, uid, %error, "An archived object cannot be read for its cleanup");
            }
        }
    }

    /// The walk has come to this tombstone.
    pub(super) fn found(&mut self, uid: &str) {
        self.outsides.found(uid);
    }

    /// The walk has come to all that there are.
    pub(super) fn end_walk(&mut self) {
        self.outsides.end_walk();
    }

    /// Ends the calls that are under way: what has come of them is asked again.
    pub(super) async fn end(&mut self) {
        self.calls.shutdown().await;
    }
}
