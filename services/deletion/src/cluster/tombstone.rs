//! The deletion of an archived object that others hold, one step at a time. Its state is in SQL alone: whatever ends
//! between two requests, the next reading goes on from there.

use jiff::Timestamp;
use kindex_kube_client::ClusterError;

use super::Cluster;
use super::archived::{Along, failed, has_its_name};
use crate::answers::Swept;
use crate::archive::tombstone::decide;
use crate::archive::{Among, Archive};
use crate::decide::{Archived, Seen, Step};
use crate::object::{KindName, Object};

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

fn is_free(swept: &Swept) -> bool {
    matches!(&swept.archived, Archived::Left { plain, owned } if plain.is_empty() && owned.is_empty())
}
