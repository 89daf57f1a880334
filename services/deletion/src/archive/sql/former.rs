//! Archived objects from which others were moved, and which hold these still.

use kindex_model::object::Uid;
use kindex_query::Life;

use super::SqlArchive;
use super::rows::failed;
use crate::archive::ArchiveError;
use crate::kinds::name_of;
use crate::object::Object;

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
            let Some(found) = found.filter(|found| found.life == Life::Archived) else {
                continue;
            };
            let read = self.kinds.read_stored(&self.registry.platform, kind, &found.object);
            if holder.edges.iter().any(|edge| edge.target == read.key) {
                continue;
            }
            let deleted = self.store.tombstones(kind, &[row.uid]).await.map_err(failed)?;
            if deleted.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
