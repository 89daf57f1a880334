//! Which archived objects that are deleted with another one cannot be deleted at once.

use std::collections::BTreeSet;

use kindex_model::object::Uid;
use kindex_store::ReadVersion;

use super::SqlArchive;
use super::rows::failed;
use crate::archive::{ArchiveError, Holder, HolderPosition, HolderScope};
use crate::decide::Seen;
use crate::object::KindName;

impl SqlArchive {
    /// Leaves those out that are tombstones: they go by their own deletion.
    pub(super) async fn leave_tombstones(
        &self,
        kind: &KindName,
        objects: &mut Vec<(&Holder, ReadVersion)>,
    ) -> Result<(), ArchiveError> {
        let uids: Vec<Uid> = objects.iter().map(|(_, read)| read.uid.clone()).collect();
        let waiting = self.store.tombstones(self.kind(kind)?, &uids).await.map_err(failed)?;
        let waiting: BTreeSet<Uid> = waiting.into_iter().map(|tombstone| tombstone.uid).collect();
        objects.retain(|(_, read)| !waiting.contains(&read.uid));
        Ok(())
    }

    /// Whether another object may name this one, with a reference or without. The one with which it goes waits for it
    /// in any case. Where a field has no column, all objects would have to be read: its own deletion does that once.
    pub(super) async fn is_named(&self, holder: &Holder, with: &Seen) -> Result<bool, ArchiveError> {
        let Some(key) = &holder.key else {
            return Ok(false);
        };
        if self
            .kinds
            .referrers(&key.kind)
            .any(|(_, field)| field.columns.is_empty())
        {
            return Ok(true);
        }
        let target = Seen {
            key: key.clone(),
            uid: holder.uid.clone(),
        };
        let mut after = Some((0, None));
        while let Some((at, token)) = after.take() {
            let page = self.naming(&target, HolderScope::All, at, token.as_deref()).await?;
            let mut others = page.holders.iter().filter(|other| other.uid != holder.uid);
            if others.any(|other| other.uid != with.uid) {
                return Ok(true);
            }
            if let Some(HolderPosition::Naming(at, token)) = page.next {
                after = Some((at, token));
            }
        }
        Ok(false)
    }
}
