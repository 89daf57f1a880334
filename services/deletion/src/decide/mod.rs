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

use crate::object::{Edge, Standing};
pub use known::{Archived, Claim, Left, Look, Named, Outside, Seen, Unplaced, Whereabouts};
pub use step::{Cause, Refused, Step, Wait, Why};

/// References that become rows in one step, at most.
const KEPT_AT_ONCE: usize = 200;

/// Decides on one object.
///
/// # Guarantees
/// Total. A phase is never recorded after a later one. `Free` is decided only of an object that is on its way out and
/// on which no reference is left; where it is deleted, it also owns nothing and has released all that it held.
pub fn decide(look: &Look<'_>) -> Step {
    if let Some(keep) = keep(look) {
        return keep;
    }
    match look.object.standing {
        Standing::Live | Standing::Requested if !look.object.guarded => Step::Guard,
        Standing::Live => decide_live(look),
        Standing::Requested => Step::Delete(Cause::Requested),
        Standing::Deleting => decide_deleting(look),
        Standing::Evicting => decide_evicting(look),
    }
}

/// The references of holders that left for the archive. As finalizers they would be more and more, and the cluster
/// limits the size of an object.
fn keep(look: &Look<'_>) -> Option<Step> {
    let absent = look.claims.iter().filter(|claim| claim.at == Whereabouts::Absent);
    let names: Vec<_> = absent.map(|claim| claim.name.clone()).take(KEPT_AT_ONCE).collect();
    (look.archived != Archived::Off && !names.is_empty()).then_some(Step::Keep(names))
}

/// The deletion of a target comes first, then references: new ones before old ones are released.
fn decide_live(look: &Look<'_>) -> Step {
    if let Some(cause) = cause(look) {
        return match look.object.immutable {
            true => Step::Request(cause),
            false => Step::Delete(cause),
        };
    }
    let (mut refused, mut unasked) = (Vec::new(), None);
    for (edge, named) in edges(look) {
        let why = match named {
            Named::Present { bears: true, .. } | Named::Archived { leaving: false } => continue,
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
            Named::Present { leaving: true, .. } | Named::Archived { leaving: true } => Why::Leaving,
            Named::Absent => Why::Absent,
            Named::Unknown => Why::Unknown,
            Named::Itself => Why::Itself,
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
    match look.bearers.iter().find(|bearer| !is_named(look, bearer)) {
        Some(former) if refused.is_empty() => Step::Release(former.clone()),
        Some(_) | None => Step::Rest(refused),
    }
}

/// What cascades goes from the first phase of its target on, what is owned only once its owner drains.
fn cause(look: &Look<'_>) -> Option<Cause> {
    edges(look).find_map(|(edge, named)| match named {
        Named::Present {
            seen,
            bears,
            leaving: true,
            phase: Some(phase),
        } if edge.cascades() || (edge.owned && *phase >= Phase::Draining) => Some(Cause::Target {
            reference: edge.reference,
            target: seen.clone(),
            held: *bears,
        }),
        Named::Present { .. }
        | Named::Archived { .. }
        | Named::Unasked
        | Named::Unknown
        | Named::Absent
        | Named::Itself => None,
    })
}

fn decide_deleting(look: &Look<'_>) -> Step {
    let recorded = look.object.phase;
    if let Some(wait) = holders(look) {
        return match recorded {
            None => Step::Record(Phase::Deleting),
            Some(_) => Step::Wait(wait),
        };
    }
    if !look.holders_unknown.is_empty() {
        return Step::Wait(Wait::Unknown(look.holders_unknown.clone()));
    }
    let owned = owned(look);
    match &look.archived {
        // While it drains, nobody comes who holds it otherwise: those that it owns are waited for first.
        Archived::Unasked if owned.is_none() || recorded < Some(Phase::Draining) => return Step::Sweep,
        Archived::Left { plain, .. } if !plain.is_empty() => {
            return match recorded {
                None => Step::Record(Phase::Deleting),
                Some(_) => Step::Wait(Wait::Archived(plain.clone())),
            };
        }
        Archived::Left { .. } | Archived::Unasked | Archived::Off => {}
    }
    let others = &look.object.others;
    if owned.is_some() || !others.is_empty() || look.outside != Outside::Gone {
        if recorded < Some(Phase::Draining) {
            return Step::Record(Phase::Draining);
        }
        if let Some(wait) = owned {
            return Step::Wait(wait);
        }
        if !others.is_empty() {
            return Step::Wait(Wait::Finalizers(others.iter().cloned().collect()));
        }
    }
    match &look.outside {
        Outside::Unconfirmed => return Step::CleanUp,
        Outside::Left(left) => return Step::Wait(Wait::Outside(left.clone())),
        Outside::Gone => {}
    }
    match look.bearers.first() {
        Some(_) if recorded < Some(Phase::Finalizing) => Step::Record(Phase::Finalizing),
        Some(bearer) => Step::Release(bearer.clone()),
        None if !look.targets_unknown.is_empty() => Step::Wait(Wait::Unknown(look.targets_unknown.clone())),
        None => free(look),
    }
}

/// An eviction deletes nothing and releases nothing: its users go on using what it refers to. It waits as long as
/// others in the cluster need it there.
fn decide_evicting(look: &Look<'_>) -> Step {
    let unplaced = look.unplaced.iter().filter(|other| other.owned);
    let unplaced: Vec<_> = unplaced.map(|other| other.holder.clone()).collect();
    if !look.claims.is_empty() || !unplaced.is_empty() {
        return Step::Wait(Wait::Holders(look.claims.clone(), unplaced));
    }
    if !look.holders_unknown.is_empty() {
        return Step::Wait(Wait::Unknown(look.holders_unknown.clone()));
    }
    match look.object.guarded {
        true => Step::Free { confirm: Vec::new() },
        false => Step::Rest(Vec::new()),
    }
}

fn free(look: &Look<'_>) -> Step {
    if !look.object.guarded {
        return Step::Rest(Vec::new());
    }
    let unconfirmed = edges(look).filter(|(_, named)| !takes_no_reference(named));
    Step::Free {
        confirm: unconfirmed.map(|(edge, _)| edge.target.clone()).collect(),
    }
}

/// An object with a phase has its deletion timestamp, after which a cluster refuses new finalizers.
fn takes_no_reference(named: &Named) -> bool {
    match named {
        Named::Itself => true,
        Named::Present { bears, phase, .. } => !bears && phase.is_some(),
        Named::Archived { .. } | Named::Unasked | Named::Unknown | Named::Absent => false,
    }
}

/// The references that keep the object in its first phase, and those who name it and are about to be deleted with it.
fn holders(look: &Look<'_>) -> Option<Wait> {
    let claims: Vec<_> = look.claims.iter().filter(|claim| !claim.owned).cloned().collect();
    let unplaced = look.unplaced.iter().filter(|other| other.cascades);
    let unplaced: Vec<_> = unplaced.map(|other| other.holder.clone()).collect();
    (!claims.is_empty() || !unplaced.is_empty()).then_some(Wait::Holders(claims, unplaced))
}

fn owned(look: &Look<'_>) -> Option<Wait> {
    let claims: Vec<_> = look.claims.iter().filter(|claim| claim.owned).cloned().collect();
    let unplaced = look.unplaced.iter().filter(|other| other.owned);
    let unplaced: Vec<_> = unplaced.map(|other| other.holder.clone()).collect();
    if !claims.is_empty() || !unplaced.is_empty() {
        return Some(Wait::Owned(claims, unplaced));
    }
    match &look.archived {
        Archived::Left { owned, .. } if !owned.is_empty() => Some(Wait::Archived(owned.clone())),
        Archived::Left { .. } | Archived::Unasked | Archived::Off => None,
    }
}

fn edges<'l>(look: &'l Look<'_>) -> impl Iterator<Item = (&'l Edge, &'l Named)> {
    look.object.edges.iter().zip(&look.named)
}

/// Whether a field names this very object, by its uid.
fn is_named(look: &Look<'_>, other: &Seen) -> bool {
    look.named.iter().any(|named| match named {
        Named::Present { seen, .. } => seen == other,
        Named::Archived { .. } | Named::Unasked | Named::Unknown | Named::Absent | Named::Itself => false,
    })
}
