//! Objects from which others were moved, and which hold these still, as far as rows say so; and archived objects that
//! were moved themselves.

use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_query::{Life, Stored};

use super::SqlArchive;
use super::rows::failed;
use crate::archive::{ArchiveError, Holder};
use crate::kinds::name_of;
use crate::object::{DeletionState, Object};

impl SqlArchive {
    /// Whether one of the rows of an object is on what its fields may name, but do not, and is not being deleted. Of an
    /// object without rows, one statement says so.
    pub(super) async fn is_held_by_former(&self, holder: &Object) -> Result<bool, ArchiveError> {
        let Some(name) = holder.reference_name().map(|name| name.to_string()) else {
            return Ok(false);
        };
        let held = self.store.references_of_holder(&Uid::from(holder.uid.as_str())).await;
        for row in held.map_err(failed)?.into_iter().filter(|row| row.name == name) {
            let kind = self.kinds.all().find(|kind| kind.name == row.kind);
            let kind = kind.filter(|kind| self.kinds.may_name(&holder.key.kind, &name_of(kind)));
            let Some(kind) = kind else {
                continue;
            };
            let found = self.store.get_by_id(kind, &row.uid).await.map_err(failed)?;
            if let Some(found) = found
                && self.is_former(holder, kind, &found).await?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The same of an object that has a row of the holder. One in the cluster has it since the holder was archived. One
    /// that has just been restored has left it to the new object, which has the reference as a finalizer: who follows
    /// the cluster may not have seen that yet.
    async fn is_former(&self, holder: &Object, kind: &'static Kind, target: &Stored) -> Result<bool, ArchiveError> {
        let read = |stored: &Stored| self.kinds.read_stored(&self.registry.platform, kind, &stored.object);
        let former = match target.life {
            Life::Live | Life::Archived => read(target),
            Life::Deleted => {
                let restored = self.restored(kind, target).await?;
                let restored = restored.filter(|restored| restored.life == Life::Live);
                let restored = restored.map(|restored| read(&restored));
                let name = holder.reference_name();
                let has_reference = |object: &Object| name.is_some_and(|name| object.references.contains(&name));
                let Some(restored) = restored.filter(has_reference) else {
                    return Ok(false);
                };
                restored
            }
        };
        if holder.edges.iter().any(|edge| edge.target == former.key) {
            return Ok(false);
        }
        if target.life == Life::Archived {
            let uids = [target.object.metadata.uid.clone()];
            let deleted = self.store.tombstones(kind, &uids).await.map_err(failed)?;
            return Ok(deleted.is_empty());
        }
        Ok(!matches!(
            former.state,
            DeletionState::Requested | DeletionState::Deleting
        ))
    }

    /// Writes to a holder that it uses an object no more. Of one whose text has no form in the version of its kind,
    /// nobody knows what it names.
    pub(super) async fn detach_as_read(
        &self,
        holder: &Holder,
        former: &str,
        now: Timestamp,
    ) -> Result<bool, ArchiveError> {
        let (Some(key), Some(version)) = (&holder.key, holder.version) else {
            return Ok(false);
        };
        let kind = self.kind(&key.kind)?;
        let found = self.store.get_by_id(kind, &Uid::from(holder.uid.as_str())).await;
        let is_as_read =
            |found: &Stored| found.life == Life::Archived && found.object.metadata.resource_version == version;
        let Some(found) = found.map_err(failed)?.filter(is_as_read) else {
            return Ok(false);
        };
        let Ok(own) = self.own_form(kind, &found) else {
            return Ok(false);
        };
        let text = self.kinds.names.recorded.detach(own.text(), former);
        self.rewrite(kind, &found, text, now).await
    }
}
