//! Decisions of controllers with which something is wrong, and what they take for gone.

use kindex_model::deletion::Phase;

use crate::decide::{Archived, Cause, CleanupState, HolderLocation, Input, Named, Seen, Step, decide};
use crate::graph::Graph;
use crate::object::{DeletionState, Key};
use crate::simulation::Bug;
use crate::simulation::world::{Stored, World};

/// The decision, with the bug in it.
pub(super) fn decide_with(bug: Bug, mut input: Input<'_>, graph: &Graph) -> Step {
    let object = input.object;
    let live = object.state == DeletionState::Live && object.has_deletion_finalizer;
    let target = |seen: &Seen| {
        Step::Delete(Cause::Target {
            reference: "bug",
            target: seen.clone(),
            held: false,
        })
    };
    match bug {
        Bug::DrainWithReference => input
            .references
            .retain(|reference| reference.owned || reference.at == HolderLocation::Absent),
        Bug::DropLost => input.references.retain(|held| held.at != HolderLocation::NotFound),
        Bug::RecordAgain if object.state == DeletionState::Deleting && object.phase == Some(Phase::Deleting) => {
            return Step::Record(Phase::Deleting, Vec::new());
        }
        Bug::LeaveRequested if object.state == DeletionState::Requested => return Step::Rest(Vec::new()),
        Bug::FollowRefusal => {
            input.has_former = false;
            input.missing.iter_mut().for_each(|missing| missing.stays = false);
        }
        Bug::HoldNothing => forget_archived_targets(&mut input, graph),
        Bug::FinalizeWithOwned => input.missing.retain(|missing| !missing.owned),
        Bug::WaitForOwned => input.references.iter_mut().for_each(|held| held.owned = false),
        Bug::FreeWithoutSweep => {
            input.archived = Archived::Remaining {
                plain: Vec::new(),
                owned: Vec::new(),
            };
        }
        Bug::ReleaseEarly if object.state == DeletionState::Deleting && object.phase.is_some() => {
            if let Some(target) = input.targets.first() {
                return Step::Release(target.clone());
            }
        }
        Bug::AbsentIsDeleted if live && input.named.contains(&Named::Absent) => return target(&Seen::of(object)),
        Bug::EmptyFilter if live && object.edges.is_empty() => {
            let mut deleted = graph.objects().filter(|other| other.phase.is_some());
            if let Some(other) = deleted.next() {
                return target(&Seen::of(other));
            }
        }
        Bug::OldFirst if live => {
            let is_named = |target: &Seen| object.edges.iter().any(|edge| edge.target == target.key);
            if let Some(former) = input.targets.iter().find(|target| !is_named(target)) {
                return Step::Release(former.clone());
            }
        }
        Bug::CleanUpEarly if object.phase.is_some() && input.cleanup == CleanupState::Unconfirmed => {
            return Step::CleanUp;
        }
        Bug::OwnedAtOnce if live => {
            for named in &mut input.named {
                if let Named::Present { phase: Some(phase), .. } = named {
                    *phase = Phase::Draining;
                }
            }
        }
        Bug::ForgetAtPeer if object.is_leaving() => return forget_at_peer(input),
        _ => {}
    }
    decide(&input)
}

/// What live objects name, or named once, is as it is without the archive.
fn forget_archived_targets(input: &mut Input<'_>, graph: &Graph) {
    let of_cluster = graph.input(&input.object.key, CleanupState::Gone);
    let Input {
        named,
        has_former,
        missing,
        ..
    } = of_cluster.expect("it is there");
    (input.named, input.has_former, input.missing) = (named, has_former, missing);
}

/// The decision as if no other service held or had anything.
fn forget_at_peer(mut input: Input<'_>) -> Step {
    let own = &input.object.key.kind.group;
    let is_own = |key: &Key| key.kind.group == *own;
    input.targets.retain(|target| is_own(&target.key));
    match decide(&input) {
        Step::Free { confirm } => Step::Free {
            confirm: confirm.into_iter().filter(is_own).collect(),
        },
        step => step,
    }
}

/// Releases the rows of an object that goes.
pub(super) fn release_rows(world: &mut World, object: &Stored, bug: Bug) {
    let reference = object.reference();
    let rows = world.archives.references.iter();
    let held = rows
        .filter(|(_, name)| name.to_string() == reference)
        .map(|(held, _)| held.clone());
    let held: Vec<String> = held.filter(|_| bug == Bug::EndUnheld).collect();
    world.release_rows(object);
    for uid in held {
        if world.archives.is_archived(&uid) && !world.archives.is_held(&uid) {
            world.drop_row(&uid);
        }
    }
}

/// Whether what is still to be released, or read again, is taken for gone.
pub(super) fn counts_as_gone(world: &World, target: &Key, bug: Bug) -> bool {
    match bug {
        Bug::DownIsGone => world.servers.get(target).is_err(),
        Bug::SqlOnlyIsGone => world.services.is_sql_only(&target.kind),
        _ => false,
    }
}
