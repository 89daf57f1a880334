//! What archived holders have left on objects from which they were moved, request by request: it is released once these
//! are deleted. Who these holders are, the sweeps know that have read them.

use std::collections::BTreeSet;

use super::{Progress, Task};
use crate::archive::Holder;
use crate::object::Key;
use crate::simulation::Bug;
use crate::simulation::world::{World, was_moved_from};

/// Of a holder of the same service: it is written, and its row is released.
pub(super) const ROW_REQUESTS: usize = 2;
/// At another service, the version of the object is read before these.
pub(super) const PEER_REQUESTS: usize = 3;

/// Whether an archived holder, as it was read, was moved from an object that has its reference.
pub(super) fn was_moved(holder: &Holder, former: &Key) -> bool {
    let may_be = holder.version.is_some() && holder.reference.is_some();
    may_be && was_moved_from(&holder.edges, former)
}

/// Those of these holders that were.
pub(super) fn moved_from(holders: &[Holder], former: &Key) -> Vec<Holder> {
    let moved = holders.iter().filter(|holder| was_moved(holder, former));
    moved.cloned().collect()
}

/// Writes to the next of these holders, and then releases its row on an object of its service. Whether there was one.
pub(super) fn release_row(
    world: &mut World,
    (former, uid): (&Key, &str),
    moved: &[Holder],
    at: usize,
    gone: &mut BTreeSet<String>,
    bug: Bug,
) -> bool {
    let Some(holder) = moved.get(at / ROW_REQUESTS) else {
        return false;
    };
    if at.is_multiple_of(ROW_REQUESTS) {
        if world.detach_archived(holder, former, bug != Bug::ReleaseMovedUndetached) {
            gone.insert(holder.uid.clone());
        }
    } else if let Some(name) = holder.reference.clone().filter(|_| gone.contains(&holder.uid)) {
        world.servers.version += 1;
        world.archives.references.remove(&(uid.to_owned(), name));
    }
    true
}

/// Reads in which version an object of another service is, writes to the next holder of a sweep that was moved from
/// there, and then releases its reference in that version. A service that does not answer is asked again.
pub(super) fn release_at_peer(world: &mut World, task: &mut Task, at: usize, bug: Bug) -> Progress {
    let holder = &mut task.moved[at / PEER_REQUESTS];
    match at % PEER_REQUESTS {
        0 => {
            let found = world.find_object(&task.key);
            let is_another = found.is_some_and(|found| found.object.uid != task.uid);
            match world.version_of(&task.key) {
                Ok(version) if !is_another => task.read = version,
                Ok(_) | Err(_) => return Progress::Again,
            }
        }
        1 => {
            if world.detach_archived(holder, &task.key, bug != Bug::ReleaseMovedUndetached) {
                holder.version = None;
            }
        }
        _ => {
            let version = task.read.filter(|_| bug != Bug::ReleaseMovedAnyVersion);
            if let Some(name) = holder.reference.clone().filter(|_| holder.version.is_none())
                && world.release_at(&task.key, &name.to_string(), version).is_ok()
            {
                holder.reference = None;
            }
        }
    }
    Progress::Next
}
