//! The deletion of an archived object that others hold, one step at a time. Its state is in SQL alone: whatever ends
//! between two requests, the next reading goes on from there.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use kindex_kube_client::ClusterError;

use super::Cluster;
use super::archived::{Along, failed, has_its_name};
use crate::answers::Swept;
use crate::archive::tombstone::decide;
use crate::archive::{Among, Archive};
use crate::decide::{Archived, Seen, Step};
use crate::graph::path;
use crate::object::{Key, KindName, Object};

/// Tombstones that are looked at for one that waits for itself, and holders of each of them.
const REACHED_MAX: usize = 200;

/// What came of it.
pub(crate) struct Buried {
    /// The object as it was read.
    pub(crate) object: Object,
    /// What was done, or what it waits for.
    pub(crate) step: Step,
    /// Whether something changed, so that the next step may be due.
    pub(crate) moved: bool,
}

impl Cluster {
    /// Uids of a kind's tombstones, after one of them; none at the end.
    pub(crate) async fn tombstones(&self, kind: &KindName, after: &str) -> Result<Vec<String>, ClusterError> {
        match &self.archive {
            Some(archive) => archive.tombstones(kind, after).await.map_err(|error| failed(&error)),
            None => Ok(Vec::new()),
        }
    }

    /// Takes one tombstone a step further. Nothing where it is none any more, or the cluster has the object again.
    pub(crate) async fn bury(
        &self,
        kind: &KindName,
        uid: &str,
        now: Timestamp,
    ) -> Result<Option<Buried>, ClusterError> {
        let Some(archive) = self.archive.as_deref() else {
            return Ok(None);
        };
        let found = archive.tombstone(kind, uid).await;
        let Some(object) = found.map_err(|error| failed(&error))? else {
            return Ok(None);
        };
        let in_cluster = self.get(&object.key).await?;
        if in_cluster.as_ref().is_some_and(|found| found.uid == object.uid) {
            return Ok(None);
        }
        let target = Seen::of(&object);
        let is_named = in_cluster.is_none() && has_its_name(archive, &target).await?;
        let along = Along {
            target,
            phase: object.phase,
            among: if is_named { Among::All } else { Among::Rows },
        };
        let Some(swept) = along.sweep(self, archive, now).await? else {
            return Ok(None);
        };
        let holds = is_free(&swept) && self.holds(archive, &object).await?;
        let step = decide(&swept, holds);
        let wrote = if let Step::Record(phase) = &step {
            let written = archive.record(&object, *phase, now).await;
            written.map_err(|error| failed(&error))?
        } else if matches!(step, Step::Free { .. }) {
            self.end(archive, &object, now).await?
        } else {
            false
        };
        let moved = wrote || swept.goes_on;
        Ok(Some(Buried { object, step, moved }))
    }

    /// The objects around one of its references back to a tombstone, where there is such a path: tombstones that wait
    /// for each other.
    pub(crate) async fn cycle_of_tombstones(&self, object: &Object) -> Result<Option<Vec<Key>>, ClusterError> {
        let Some(archive) = self.archive.as_deref() else {
            return Ok(None);
        };
        let mut reached = BTreeMap::new();
        let mut next = VecDeque::from([Seen::of(object)]);
        while let Some(target) = next.pop_front().filter(|_| reached.len() < REACHED_MAX) {
            for holder in tombstones_that_hold(archive, &target).await? {
                if holder.uid == object.uid {
                    return Ok(Some(path(&reached, &object.key, target.key)));
                }
                if holder.key != object.key && !reached.contains_key(&holder.key) {
                    reached.insert(holder.key.clone(), target.key.clone());
                    next.push_back(holder);
                }
            }
        }
        Ok(None)
    }

    /// Whether it has rows on others, or names objects of other services.
    async fn holds(&self, archive: &dyn Archive, object: &Object) -> Result<bool, ClusterError> {
        let foreign = object
            .edges
            .iter()
            .any(|edge| self.peers.of(&edge.target.kind).is_some());
        Ok(foreign || archive.holds(&object.uid).await.map_err(|error| failed(&error))?)
    }

    /// Releases what it holds at other services, then ends it with all that it holds here.
    async fn end(&self, archive: &dyn Archive, object: &Object, now: Timestamp) -> Result<bool, ClusterError> {
        if let Some(name) = object.reference_name() {
            for edge in &object.edges {
                if let Some(peer) = self.peers.of(&edge.target.kind) {
                    peer.release(&edge.target, &name.to_string()).await?;
                }
            }
        }
        archive.end(object, now).await.map_err(|error| failed(&error))
    }
}

/// The holders of an object's rows that are tombstones themselves.
async fn tombstones_that_hold(archive: &dyn Archive, target: &Seen) -> Result<Vec<Seen>, ClusterError> {
    let (mut found, mut after, mut looked) = (Vec::new(), None, 0);
    loop {
        let page = archive.holders(target, Among::Rows, after.as_ref()).await;
        let page = page.map_err(|error| failed(&error))?;
        looked += page.holders.len();
        for holder in page.holders {
            let Some(key) = holder.key.filter(|_| holder.version.is_some()) else {
                continue;
            };
            let tombstone = archive.tombstone(&key.kind, &holder.uid).await;
            if tombstone.map_err(|error| failed(&error))?.is_some() {
                found.push(Seen { key, uid: holder.uid });
            }
        }
        after = page.next;
        if after.is_none() || looked >= REACHED_MAX {
            return Ok(found);
        }
    }
}

fn is_free(swept: &Swept) -> bool {
    matches!(&swept.archived, Archived::Left { plain, owned } if plain.is_empty() && owned.is_empty())
}
