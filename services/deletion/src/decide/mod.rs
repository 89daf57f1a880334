//! The one next step of one object in the graph, as a pure, total function of what is known of it.
//!
//! Every object decides on itself alone. The holder of a reference places, moves and releases it, and deletes itself
//! when a target is deleted that it cannot outlive; so each write depends on the version of the object whose fields
//! decided it. A deletion counts for others from the moment its first phase is recorded: whether an object is deleted
//! or leaves for the archive is judged once, by its own decision.

mod known;

mod step;

#[cfg(test)]
mod tests;

use kindex_model::deletion::Phase;

use crate::object::{DeletionState, Edge};
pub use known::{
    Archived, CleanupState, FoundHolder, HeldReference, HolderLocation, Input, MissingReference, Named, Remaining, Seen,
};
pub use step::{Cause, RefusalReason, Refused, Step, Wait};

/// References that become rows in one step, at most.
const KEPT_AT_ONCE: usize = 200;

/// Decides on one object.
///
/// # Guarantees
/// Total. A phase is never recorded after a later one. `Free` is decided only of an object that is leaving the cluster
/// and on which no reference is left; where it is deleted, it also owns nothing and has released all that it held.
pub fn decide(input: &Input<'_>) -> Step {
    if let Some(keep) = keep(input) {
        return keep;
    }
    match input.object.state {
        DeletionState::Live | DeletionState::Requested if !input.object.has_deletion_finalizer => Step::Adopt,
        DeletionState::Live => decide_live(input),
        DeletionState::Requested => Step::Delete(Cause::Requested),
        DeletionState::Deleting => decide_deleting(input),
        DeletionState::Evicting => decide_evicting(input),
    }
}

/// The references of holders that left for the archive. As finalizers they would be more and more, and the cluster
/// limits the size of an object.
fn keep(input: &Input<'_>) -> Option<Step> {
    let absent = input
        .references
        .iter()
        .filter(|reference| reference.at == HolderLocation::Absent);
    let names: Vec<_> = absent
        .map(|reference| reference.name.clone())
        .take(KEPT_AT_ONCE)
        .collect();
    (input.archived != Archived::Off && !names.is_empty()).then_some(Step::Keep(names))
}

/// The deletion of a target comes first, then references: new ones before old ones are released.
fn decide_live(input: &Input<'_>) -> Step {
    if let Some(cause) = cause(input) {
        return match input.object.immutable {
            true => Step::Request(cause),
            false => Step::Delete(cause),
        };
    }
    let (mut refused, mut unasked) = (Vec::new(), None);
    for (edge, named) in edges(input) {
        let why = match named {
            Named::Present {
                has_reference: true, ..
            }
            | Named::Archived { leaving: false } => continue,
            Named::Present {
                leaving: false, seen, ..
            } => {
                return Step::Place {
                    reference: edge.reference,
                    target: seen.clone(),
                };
            }
            // What is in the cluster goes first: the archive may be away.
            Named::Unasked => {
                unasked.get_or_insert(edge);
                continue;
            }
            Named::Present { leaving: true, .. } | Named::Archived { leaving: true } => RefusalReason::Leaving,
            Named::Absent => RefusalReason::Absent,
            Named::Unknown => RefusalReason::Unknown,
            Named::Itself => RefusalReason::Itself,
        };
        refused.push(Refused {
            reference: edge.reference,
            target: edge.target.clone(),
            why,
        });
    }
    if let Some(edge) = unasked {
        return Step::Hold {
            reference: edge.reference,
            target: edge.target.clone(),
        };
    }
    // While a new target is not held, the object may still use the old one.
    match input.targets.iter().find(|target| !is_named(input, target)) {
        Some(former) if refused.is_empty() => Step::Release(former.clone()),
        Some(_) | None => Step::Rest(refused),
    }
}

/// What cascades goes from the first phase of its target on, what is owned only once its owner drains. A target that
/// was being deleted when the object was moved there takes no reference, and does not cascade to the object either: its
/// former target still holds what it held.
fn cause(input: &Input<'_>) -> Option<Cause> {
    edges(input).find_map(|(edge, named)| match named {
        Named::Present {
            seen,
            has_reference,
            leaving: true,
            phase: Some(phase),
        } if (*has_reference || has_no_former(input)) && goes_in(edge, *phase) => Some(Cause::Target {
            reference: edge.reference,
            target: seen.clone(),
            held: *has_reference,
        }),
        Named::Present { .. }
        | Named::Archived { .. }
        | Named::Unasked
        | Named::Unknown
        | Named::Absent
        | Named::Itself => None,
    })
}

/// Whether no former target holds the object. Nothing follows from absence: one that is not known yet may hold it.
fn has_no_former(input: &Input<'_>) -> bool {
    !input.has_former && input.targets_unknown.is_empty()
}

fn goes_in(edge: &Edge, phase: Phase) -> bool {
    edge.cascades() || (edge.owned && phase >= Phase::Draining)
}

fn decide_deleting(input: &Input<'_>) -> Step {
    let recorded = input.object.phase;
    if let Some(wait) = holders(input) {
        return match recorded {
            None => Step::Record(
                Phase::Deleting,
                plain_references(input)
                    .map(|reference| reference.name.clone())
                    .collect(),
            ),
            Some(_) => Step::Wait(wait),
        };
    }
    if !input.holders_unknown.is_empty() {
        return Step::Wait(Wait::Unknown(input.holders_unknown.clone()));
    }
    let owned = owned(input);
    match &input.archived {
        // While it drains, nobody comes who holds it otherwise: those that it owns are waited for first.
        Archived::Unasked if owned.is_none() || recorded < Some(Phase::Draining) => return Step::Sweep,
        Archived::Remaining { plain, .. } if !plain.is_empty() => {
            return match recorded {
                None => Step::Record(Phase::Deleting, Vec::new()),
                Some(_) => Step::Wait(Wait::Archived(plain.clone())),
            };
        }
        Archived::Remaining { .. } | Archived::Unasked | Archived::Off => {}
    }
    let others = &input.object.others;
    if owned.is_some() || !others.is_empty() || input.cleanup != CleanupState::Gone {
        if recorded < Some(Phase::Draining) {
            return Step::Record(Phase::Draining, Vec::new());
        }
        if let Some(wait) = owned {
            return Step::Wait(wait);
        }
        if !others.is_empty() {
            return Step::Wait(Wait::Finalizers(others.iter().cloned().collect()));
        }
    }
    match &input.cleanup {
        CleanupState::Unconfirmed => return Step::CleanUp,
        CleanupState::Remaining(left) => return Step::Wait(Wait::Cleanup(left.clone())),
        CleanupState::Gone => {}
    }
    match input.targets.first() {
        Some(_) if recorded < Some(Phase::Finalizing) => Step::Record(Phase::Finalizing, Vec::new()),
        Some(target) => Step::Release(target.clone()),
        None if !input.targets_unknown.is_empty() => Step::Wait(Wait::Unknown(input.targets_unknown.clone())),
        None => free(input),
    }
}

/// An eviction deletes nothing and releases nothing: its users go on using what it refers to. It waits as long as
/// others in the cluster need it there.
fn decide_evicting(input: &Input<'_>) -> Step {
    let missing = input.missing.iter().filter(|other| other.owned);
    let missing: Vec<_> = missing.map(|other| other.holder.clone()).collect();
    if !input.references.is_empty() || !missing.is_empty() {
        return Step::Wait(Wait::Holders(input.references.clone(), missing));
    }
    if !input.holders_unknown.is_empty() {
        return Step::Wait(Wait::Unknown(input.holders_unknown.clone()));
    }
    match input.object.has_deletion_finalizer {
        true => Step::Free { confirm: Vec::new() },
        false => Step::Rest(Vec::new()),
    }
}

fn free(input: &Input<'_>) -> Step {
    if !input.object.has_deletion_finalizer {
        return Step::Rest(Vec::new());
    }
    let unconfirmed = edges(input).filter(|(_, named)| !takes_no_reference(named));
    Step::Free {
        confirm: unconfirmed.map(|(edge, _)| edge.target.clone()).collect(),
    }
}

/// An object with a phase has its deletion timestamp, after which a cluster refuses new finalizers.
fn takes_no_reference(named: &Named) -> bool {
    match named {
        Named::Itself => true,
        Named::Present {
            has_reference, phase, ..
        } => !has_reference && phase.is_some(),
        Named::Archived { .. } | Named::Unasked | Named::Unknown | Named::Absent => false,
    }
}

/// The references that keep the object in its first phase.
fn plain_references<'l>(input: &'l Input<'_>) -> impl Iterator<Item = &'l HeldReference> {
    input.references.iter().filter(|reference| !reference.owned)
}

/// These references, and those who name the object and are about to be deleted with it.
fn holders(input: &Input<'_>) -> Option<Wait> {
    let references: Vec<_> = plain_references(input).cloned().collect();
    let missing = input.missing.iter().filter(|other| other.cascades && !other.stays);
    let missing: Vec<_> = missing.map(|other| other.holder.clone()).collect();
    (!references.is_empty() || !missing.is_empty()).then_some(Wait::Holders(references, missing))
}

fn owned(input: &Input<'_>) -> Option<Wait> {
    let references: Vec<_> = input
        .references
        .iter()
        .filter(|reference| reference.owned)
        .cloned()
        .collect();
    let missing = input.missing.iter().filter(|other| other.owned && !other.stays);
    let missing: Vec<_> = missing.map(|other| other.holder.clone()).collect();
    if !references.is_empty() || !missing.is_empty() {
        return Some(Wait::Owned(references, missing));
    }
    match &input.archived {
        Archived::Remaining { owned, .. } if !owned.is_empty() => Some(Wait::Archived(owned.clone())),
        Archived::Remaining { .. } | Archived::Unasked | Archived::Off => None,
    }
}

fn edges<'l>(input: &'l Input<'_>) -> impl Iterator<Item = (&'l Edge, &'l Named)> {
    input.object.edges.iter().zip(&input.named)
}

/// Whether a field names this very object, by its uid.
fn is_named(input: &Input<'_>, other: &Seen) -> bool {
    input.named.iter().any(|named| match named {
        Named::Present { seen, .. } => seen == other,
        Named::Archived { .. } | Named::Unasked | Named::Unknown | Named::Absent | Named::Itself => false,
    })
}
