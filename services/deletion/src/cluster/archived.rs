//! The steps that concern holders in the archive. Both write to the archive before they write to the cluster: a process
//! that ends in between leaves a reference in two places, and never in none.

use jiff::Timestamp;
use kindex_kube_client::ClusterError;
use kindex_model::reference_name::ReferenceName;

use super::Cluster;
use super::outcome::{Outcome, Task, read, written};
use crate::answers::Swept;
use crate::archive::{Archive, ArchiveError, Fate, Holder, Place, fate};
use crate::decide::{Archived, Seen};

/// After so many pages, a sweep that has deleted something leaves the rest to the next one.
const PAGES_MAX: usize = 64;
/// Holders that a sweep names.
const NAMED_MAX: usize = 8;

pub(super) fn failed(error: &ArchiveError) -> ClusterError {
    ClusterError::Retryable {
        cause: "archive",
        retry_after: None,
        message: error.to_string(),
    }
}

/// Keeps references as rows, then takes them off in the version of the object in which they were seen.
pub(super) async fn keep(
    cluster: &Cluster,
    archive: &dyn Archive,
    task: &Task,
    names: &[ReferenceName],
    now: Timestamp,
    outcome: &mut Outcome,
) -> Result<(), ClusterError> {
    let places = archive.keep(&Seen::of(&task.object), names, now).await;
    let places = places.map_err(|error| failed(&error))?;
    let mut off = Vec::new();
    for (name, place) in names.iter().zip(places) {
        match place {
            Place::Archived | Place::Deleted => off.push(name.to_string()),
            Place::Unknown => outcome.missing.push(name.clone()),
        }
    }
    if off.is_empty() {
        return Ok(());
    }
    let finalizers = task.object.finalizers.iter();
    let left: Vec<_> = finalizers.filter(|one| !off.contains(*one)).cloned().collect();
    written(cluster.set_finalizers(&task.object, &left).await, outcome)
}

/// Reads who holds the object out of the archive, and deletes those that go with it in the phase that is recorded.
pub(super) async fn sweep(
    cluster: &Cluster,
    archive: &dyn Archive,
    task: &Task,
    now: Timestamp,
    outcome: &mut Outcome,
) -> Result<(), ClusterError> {
    let target = Seen::of(&task.object);
    // A deletion that has begun never ends otherwise. Still, nothing is deleted on the word of a watch.
    let phase = match read(cluster, &target, outcome).await? {
        Some(found) if found.is_leaving() => found.phase,
        Some(_) | None => return Ok(()),
    };
    let (mut plain, mut owned) = (Vec::new(), Vec::new());
    let (mut after, mut deleted, mut pages) = (None, false, 0);
    loop {
        let page = archive.holders(&target, after.as_ref()).await;
        let page = page.map_err(|error| failed(&error))?;
        let fates = page
            .holders
            .iter()
            .map(|holder| (fate(holder, &target.key, phase), holder));
        let (going, staying): (Vec<_>, Vec<_>) = fates.partition(|(fate, _)| *fate == Fate::Goes);
        let going: Vec<&Holder> = going.into_iter().map(|(_, holder)| holder).collect();
        let gone = match going.is_empty() {
            true => Vec::new(),
            false => archive.delete(&going, now).await.map_err(|error| failed(&error))?,
        };
        deleted |= !gone.is_empty();
        let left = going.iter().filter(|holder| !gone.contains(&holder.uid));
        plain.extend(left.map(ToString::to_string));
        for (fate, holder) in staying {
            match fate {
                Fate::IsOwned => owned.push(holder.to_string()),
                Fate::Goes | Fate::Holds => plain.push(holder.to_string()),
            }
        }
        for names in [&mut plain, &mut owned] {
            names.sort_unstable();
            names.dedup();
            names.truncate(NAMED_MAX);
        }
        (after, pages) = (page.next, pages + 1);
        if after.is_none() || (deleted && pages >= PAGES_MAX) {
            break;
        }
    }
    let goes_on = after.is_some();
    if goes_on && plain.is_empty() {
        plain.push("more objects in the archive".to_owned());
    }
    outcome.swept = Some(Swept {
        phase,
        archived: Archived::Left { plain, owned },
        goes_on: goes_on || deleted,
    });
    Ok(())
}
