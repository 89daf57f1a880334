//! Archived objects that were restored: a new object of their name is in their place.

use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_query::Stored;

use super::SqlArchive;
use super::rows::failed;
use crate::archive::ArchiveError;
use crate::object::Object;

/// Restorations of one object in succession, the object having been archived again in between.
const RESTORATIONS_MAX: usize = 16;

impl SqlArchive {
    /// Whether the reference of a former holder stands in for that of the object which was restored from it. That one
    /// names the target and has not placed its own yet, and cannot if the target is being deleted by now.
    pub(super) async fn holds_for_restored(
        &self,
        target: &Object,
        kind: &Kind,
        former: &Stored,
    ) -> Result<bool, ArchiveError> {
        let Some(found) = self.restored(kind, former).await? else {
            return Ok(false);
        };
        let restored = self.kinds.read_stored(&self.registry.platform, kind, &found.object);
        let has_reference = restored
            .reference_name()
            .is_some_and(|name| target.references.contains(&name));
        let names = restored.edges.iter().any(|edge| edge.target == target.key);
        Ok(names && !has_reference)
    }

    /// The object that has the name of another one which was archived, and was restored from that, or from one that
    /// was. After too many restorations to look at, it counts as such: what it holds stays held.
    pub(super) async fn restored(&self, kind: &Kind, former: &Stored) -> Result<Option<Stored>, ArchiveError> {
        let metadata = &former.object.metadata;
        let found = self.store.get_by_name(kind, &metadata.namespace, &metadata.name).await;
        let found = found.map_err(failed)?;
        let mut from = found.as_ref().and_then(|found| self.restored_from(found));
        for _ in 0..RESTORATIONS_MAX {
            let Some(uid) = from else {
                return Ok(None);
            };
            if uid == metadata.uid {
                return Ok(found);
            }
            let before = self.store.get_by_id(kind, &uid).await.map_err(failed)?;
            from = before.as_ref().and_then(|before| self.restored_from(before));
        }
        Ok(found)
    }

    fn restored_from(&self, stored: &Stored) -> Option<Uid> {
        let annotations = &stored.object.metadata.annotations;
        let from = annotations.get(self.registry.platform.restored_from)?;
        Some(Uid::from(from.as_str()))
    }
}
