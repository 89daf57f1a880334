//! The one next step of one object in the graph, as a pure, total function of what is known of it.
//!
//! Every object decides on itself alone. The holder of a reference places, moves and releases it, and deletes itself
//! when a target is deleted that it cannot outlive; so each write depends on the version of the object whose fields
//! decided it. A deletion counts for others from the moment its first phase is recorded: whether an object is deleted
//! or leaves for the archive is judged once, by its own decision.

use kindex_model::deletion::Phase;
use kindex_model::reference_name::ReferenceName;

use crate::object::{Edge, Key, Object, Standing};

#[cfg(test)]
mod tests;

/// References that become rows in one step, at most.
const KEPT_AT_ONCE: usize = 200;

/// An object as it was seen. A write on it depends on uid and version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Where it is.
    pub key: Key,
    /// Who it is.
    pub uid: String,
}

impl Seen {
    /// This object.
    pub fn of(object: &Object) -> Self {
        Self {
            key: object.key.clone(),
            uid: object.uid.clone(),
        }
    }
}

/// What is known of the object that an edge names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// Not all objects of its kind were read yet.
    Unknown,
    /// There is none of that name. That is no deletion: nothing follows from it.
    Absent,
    /// The object itself.
    Itself,
    /// It is there.
    Present {
        /// Which one.
        seen: Seen,
        /// Whether it bears the reference.
        bears: bool,
        /// Whether it is leaving, so that no reference can be placed on it.
        leaving: bool,
        /// The phase that is recorded on it.
        phase: Option<Phase>,
    },
}

/// A reference on the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Whose it is.
    pub name: ReferenceName,
    /// Where that holder is.
    pub at: Whereabouts,
    /// Whether the object owns that holder.
    pub owned: bool,
}

/// Where the holder of a reference is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// It was seen there.
    Seen(Key),
    /// Not all objects of its kind were read, its kind is of another service, or nobody is sure.
    Unknown,
    /// All objects of its kind were read, and it is none of them: it is worth asking whether it is archived.
    Absent,
    /// Whoever can know of it was asked twice, and it is nowhere. That releases nothing.
    NotFound,
}

/// What is known of the holders that are not in the cluster: they are archived, and hold by rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Archived {
    /// There is no archive.
    #[default]
    Off,
    /// Nobody has asked since the object has lost a holder in the cluster.
    Unasked,
    /// Those that are left, as people know them; some of them, where they are many.
    Left {
        /// They hold it in its first phase.
        plain: Vec<String>,
        /// They hold it while it drains, since it owns them.
        owned: Vec<String>,
    },
}

/// An object whose field names this one, which does not bear its reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaced {
    /// Where it is.
    pub holder: Key,
    /// Whether this object owns it.
    pub owned: bool,
    /// Whether it is deleted as soon as this one is.
    pub cascades: bool,
}

/// What a service has for the object outside of the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outside {
    /// Nothing, or nothing any more: a read from outside has said so.
    #[default]
    Gone,
    /// Something may be there, and it is time to ask. That includes a cleanup whose outcome is open.
    Unconfirmed,
    /// Something may be there, and it is not yet time to ask again.
    Left(Left),
}

/// What the cleanup of an object said last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// What it waits for.
    Pending(String),
    /// Why it failed.
    Failed(String),
}

/// Everything that a decision depends on.
#[derive(Clone, Debug)]
pub struct Look<'a> {
    /// The object.
    pub object: &'a Object,
    /// What each of its edges names, in their order.
    pub named: Vec<Named>,
    /// The objects that bear its reference, whether a field names them or not. As long as it stays, those alone that
    /// its fields may name: other references were placed by others, in its name.
    pub bearers: Vec<Seen>,
    /// The references on it.
    pub claims: Vec<Claim>,
    /// Those who name it without one.
    pub unplaced: Vec<Unplaced>,
    /// Of the kinds that may refer to it, those that were not read yet.
    pub holders_unknown: Vec<String>,
    /// Of the kinds that it may refer to, those that were not read yet, or whose service does not answer.
    pub targets_unknown: Vec<String>,
    /// What it has outside.
    pub outside: Outside,
    /// Who holds it out of the archive.
    pub archived: Archived,
}

/// Why an object is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its Deleting annotation asks for it.
    Requested,
    /// An object is deleted that it refers to, or that owns it. If it does not hold that one, that one is read again
    /// before: it has to be this very object, on its way out, with a phase.
    Target {
        /// Name of the reference.
        reference: &'static str,
        /// That object.
        target: Seen,
        /// Whether it bears the reference. As long as it does, it cannot have gone, and another one have its name.
        held: bool,
    },
}

/// Why a reference cannot be placed. Nothing changes until its target or the field does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Name of the reference.
    pub reference: &'static str,
    /// What the field names.
    pub target: Key,
    /// What stands against it.
    pub why: Why,
}

/// What stands against a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The target is on its way out.
    Leaving,
    /// There is no such object.
    Absent,
    /// It is not known whether there is one.
    Unknown,
    /// It is the object itself.
    Itself,
}

/// What an object that is on its way out waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// References, and those who name it and are about to go.
    Holders(Vec<Claim>, Vec<Key>),
    /// What it owns.
    Owned(Vec<Claim>, Vec<Key>),
    /// Holders that are archived.
    Archived(Vec<String>),
    /// The cleanup by controllers that have finalizers on it.
    Finalizers(Vec<String>),
    /// What it has outside.
    Outside(Left),
    /// Kinds that were not read yet, or services that do not answer.
    Unknown(Vec<String>),
}

/// One step. Those that write depend on the version of the object that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The finalizer of the graph is added.
    Guard,
    /// Its reference is placed on another object, unless that one is leaving by then.
    Place {
        /// Name of the reference.
        reference: &'static str,
        /// On which one.
        target: Seen,
    },
    /// Its reference is taken off another object. That this one is gone, or does not bear it, is success.
    Release(Seen),
    /// The Deleting annotation is set, because without it the deletion would look like an eviction.
    Request(Cause),
    /// It is deleted: it gets a deletion timestamp, and stays until its phases are through.
    Delete(Cause),
    /// The phase is recorded.
    Record(Phase),
    /// These references become rows, where their holders are archived, and are then taken off.
    Keep(Vec<ReferenceName>),
    /// Those of its holders that are archived are read, and deleted where they go with it in this phase.
    Sweep,
    /// What it has outside is cleaned up.
    CleanUp,
    /// The finalizer of the graph is removed, the last step. What a field names is read again before, unless it leaves
    /// and takes no reference any more: nothing may be left behind on it.
    Free {
        /// To be read again.
        confirm: Vec<Key>,
    },
    /// Nothing, until what it waits for changes.
    Wait(Wait),
    /// Nothing, until something changes.
    Rest(Vec<Refused>),
}

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
    let mut refused = Vec::new();
    for (edge, named) in edges(look) {
        let why = match named {
            Named::Present { bears: true, .. } => continue,
            Named::Present {
                leaving: false, seen, ..
            } => {
                return Step::Place {
                    reference: edge.reference,
                    target: seen.clone(),
                };
            }
            Named::Present { leaving: true, .. } => Why::Leaving,
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
        Named::Present { .. } | Named::Unknown | Named::Absent | Named::Itself => None,
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
        Named::Unknown | Named::Absent => false,
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
        Named::Unknown | Named::Absent | Named::Itself => false,
    })
}
