//! The rules of final objects that users delete: the Deleting annotation tells a deletion from an eviction. Reads the
//! cluster and SQL, never an ingester.

use kindex_query::Life;

use super::cluster::{Departure, SimCluster};
use super::database::SimRow;
use super::object::SimObject;
use super::thing::DELETING;

/// An object that had the annotation when it was deleted is not archived once an ingester lets it go. One that got it
/// later has its references until they are released.
pub(crate) fn what_a_user_deletes_is_not_archived(
    departure: &Departure,
    row: Option<&SimRow>,
    cluster: &SimCluster,
) -> Result<(), String> {
    let object = &departure.object;
    if cluster.lost.contains_key(&object.uid) {
        return Ok(());
    }
    if object.is_annotated(DELETING) && !departure.references.is_empty() {
        return Err(format!(
            "{} was archived while others used it, but a user deletes it",
            object.uid
        ));
    }
    let mut revisions = cluster.revisions.get(&object.uid).into_iter().flatten();
    let deletion = revisions.find(|revision| revision.deleted_at.is_some());
    let was_marked = deletion.is_some_and(|revision| revision.is_annotated(DELETING));
    if was_marked && row.is_some_and(|row| row.life() == Life::Archived) {
        return Err(format!("{} was archived, but a user deleted it", object.uid));
    }
    Ok(())
}

/// Whether a restoration has brought an object back on its way to the archive, after its row was closed. An ingester
/// takes it for one that was deleted in the archive, whose references hold nothing any more.
pub(crate) fn came_back_closed(object: &SimObject, row: &SimRow, kind_immutable: bool, cluster: &SimCluster) -> bool {
    let is_evicting = object.deleted_at.is_some() && !object.is_annotated(DELETING) && object.is_final(kind_immutable);
    is_evicting && row.life() == Life::Deleted && cluster.lost.contains_key(&object.uid)
}
