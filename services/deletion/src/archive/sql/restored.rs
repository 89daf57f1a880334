//! Archived objects that were restored: a new object of their name is in their place.

use kindex_model::kind::Kind;
use kindex_query::Stored;

use super::SqlArchive;
use super::rows::failed;
use crate::archive::ArchiveError;
use crate::object::Object;

impl SqlArchive {
    /// Whether the reference of a former holder stands in for that of the object which was restored from it. That one
    /// names the target and has not placed its own yet, and cannot if the target is being deleted by now.
    pub(super) async fn holds_for_restored(
        &self,
        target: &Object,
        kind: &Kind,
        former: &Stored,
    ) -> Result<bool, ArchiveError> {
        let metadata = &former.object.metadata;
        let found = self.store.get_by_name(kind, &metadata.namespace, &metadata.name).await;
        let Some(found) = found.map_err(failed)? else {
            return Ok(false);
        };
        let platform = &self.registry.platform;
        let from = found.object.metadata.annotations.get(platform.restored_from);
        if from.is_none_or(|uid| **uid != *metadata.uid.0) {
            return Ok(false);
        }
        let restored = self.kinds.read_stored(platform, kind, &found.object);
        let bears = restored
            .reference_name()
            .is_some_and(|name| target.references.contains(&name));
        let names = restored.edges.iter().any(|edge| edge.target == target.key);
        Ok(names && !bears)
    }
}
