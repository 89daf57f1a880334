//! Who waits for an object, archived or in the cluster: those that are leaving and that it holds, by rows or by fields.

use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_query::{Life, Stored};

use super::SqlArchive;
use super::rows::failed;
use crate::archive::ArchiveError;
use crate::decide::Seen;
use crate::object::{DeletionState, Object};

impl SqlArchive {
    /// Those on which it has rows.
    pub(super) async fn waiting_by_rows(&self, holder: &Seen) -> Result<Vec<Object>, ArchiveError> {
        let rows = self.store.references_of_holder(&Uid::from(holder.uid.as_str())).await;
        let mut waiting = Vec::new();
        for row in rows.map_err(failed)? {
            let kind = self.kinds.all().find(|kind| kind.name == row.kind);
            if let Some(kind) = kind
                && let Some(stored) = self.store.get_by_id(kind, &row.uid).await.map_err(failed)?
            {
                waiting.extend(self.leaving_object(kind, &stored).await?);
            }
        }
        Ok(waiting)
    }

    /// Those that its fields name. An archived object holds all that its fields name. One in the cluster holds by its
    /// references, and what it goes with waits for it without one, too.
    pub(super) async fn waiting_by_fields(&self, holder: &Seen) -> Result<Vec<Object>, ArchiveError> {
        let Some(kind) = self.kinds.get(&holder.key.kind) else {
            return Ok(Vec::new());
        };
        let stored = self.store.get_by_id(kind, &Uid::from(holder.uid.as_str())).await;
        let Some(stored) = stored.map_err(failed)?.filter(|stored| stored.life != Life::Deleted) else {
            return Ok(Vec::new());
        };
        let is_archived = stored.life == Life::Archived;
        let object = self.kinds.read_stored(&self.registry.platform, kind, &stored.object);
        let reference = object.reference_name();
        let has_reference = |target: &Object| reference.as_ref().is_some_and(|name| target.references.contains(name));
        let mut waiting = Vec::new();
        for edge in &object.edges {
            let named = &edge.target;
            let Some(kind) = self.kinds.get(&named.kind) else {
                continue;
            };
            let found = self.store.get_by_name(kind, &named.namespace, &named.name).await;
            let Some(found) = found.map_err(failed)? else {
                continue;
            };
            let target = self.leaving_object(kind, &found).await?;
            let target = target.filter(|target| target.uid != object.uid);
            let goes_with = edge.owned || edge.cascades();
            waiting.extend(target.filter(|target| is_archived || goes_with || has_reference(target)));
        }
        Ok(waiting)
    }

    /// The object of a row, if it is deleted and not gone yet.
    async fn leaving_object(&self, kind: &'static Kind, stored: &Stored) -> Result<Option<Object>, ArchiveError> {
        let object = self.kinds.read_stored(&self.registry.platform, kind, &stored.object);
        let leaves = match stored.life {
            Life::Deleted => false,
            Life::Live => object.state == DeletionState::Deleting,
            Life::Archived => {
                let uids = [Uid::from(object.uid.as_str())];
                let tombstones = self.store.tombstones(kind, &uids).await.map_err(failed)?;
                !tombstones.is_empty()
            }
        };
        Ok(leaves.then_some(object))
    }
}
