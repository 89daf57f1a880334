//! References that go from objects without a trace, and Kindex's own finalizer where an object is still on its way:
//! somebody has taken it off by hand. Pure; holds who is suspected until all watches had the time to report why.
//!
//! The API says on the object which reference it releases, and says so in its answers to other services. People name
//! what they take off, and our own steps are known here before they are carried out, with the versions that they have
//! made after that. A holder that has released what it had has come to its last phase, has moved, or is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kindex_model::deletion::Phase;
use kindex_model::object::ResourceVersion;
use kindex_model::reference_name::ReferenceName;
use tokio::time::Instant;

use crate::decide::Seen;
use crate::graph::Graph;
use crate::notice::{About, Notice};
use crate::object::{DeletionState, Object, Released};

/// What a holder did before a reference went is known by then, whichever watch it comes by.
const JUDGED_AFTER: Duration = Duration::from_secs(5);
/// For so long after its beginning, a step of which nobody knows what came of it may be what has taken something off.
const EXPECTED_FOR: Duration = Duration::from_secs(120);

/// A finalizer that may go from an object: a reference, or Kindex's own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lost {
    /// A reference.
    Reference(ReferenceName),
    /// That by which an object waits for its phases.
    DeletionFinalizer,
}

/// What has come of a step of ours that takes something off an object.
#[derive(Clone, Copy, Debug)]
pub enum Ended<'a> {
    /// It has written the object in these versions, and did not where there are none.
    Known(&'a [ResourceVersion]),
    /// It is done, in a version that nobody says: the object is of another service.
    Done,
    /// It was decided on this version, and others have written since. What is off since then was taken off by a process
    /// that had decided the same, as happens when one takes over from another.
    Overtaken(ResourceVersion),
    /// Nobody knows whether it has taken effect, or will.
    Unclear,
}

/// A step of ours that is about to take something off, or may have done so.
#[derive(Debug)]
struct Expected {
    since: Instant,
    in_flight: bool,
    /// Whether an earlier one may have taken effect.
    is_unclear: bool,
}

/// Something that went, and of which nothing has said why.
#[derive(Debug)]
struct Suspect {
    target: Arc<Object>,
    /// The version in which it still had that.
    before: ResourceVersion,
    /// The one in which it had not; `None` where it is gone.
    after: Option<ResourceVersion>,
    lost: Lost,
    /// Whether it was placed when somebody had named it already, to take off an earlier one.
    is_renewed: bool,
    /// The holder of a reference, if it was seen.
    holder: Option<Holder>,
    since: Instant,
}

/// Who is known to hold an object.
#[derive(Debug)]
struct Holder {
    seen: Seen,
    /// Whether a field named the object when the reference went.
    named: bool,
    /// Whether the event is on the holder: the object is of another service, which reports its own.
    has_event: bool,
}

/// All that have to be judged.
#[derive(Debug, Default)]
pub struct Vanished {
    suspects: Vec<Suspect>,
    /// By uid, what our own steps take off.
    expected: BTreeMap<(String, Lost), Expected>,
    /// By uid, what was placed when somebody had named it already, as long as it is named.
    renewed: BTreeSet<(String, Lost)>,
}

impl Vanished {
    /// A step of ours is about to take something off the object with this uid.
    pub fn expect(&mut self, uid: &str, lost: Lost, at: Instant) {
        let expected = self.expected.entry((uid.to_owned(), lost)).or_insert(Expected {
            since: at,
            in_flight: true,
            is_unclear: false,
        });
        (expected.since, expected.in_flight) = (at, true);
    }

    /// The step is over, and the object was seen as far as it was read or written. Only what went by a write of ours is
    /// ours: what somebody else takes off meanwhile is not.
    pub fn settle(&mut self, uid: &str, lost: &Lost, ended: Ended<'_>) {
        let of = (uid.to_owned(), lost.clone());
        let expected = self.expected.remove(&of);
        let was_unclear = expected.as_ref().is_some_and(|expected| expected.is_unclear);
        let before = self.suspects.len();
        let is_ours = |suspect: &Suspect| was_unclear || ended.explains(suspect);
        self.suspects
            .retain(|suspect| !suspect.is_of(uid, lost) || !is_ours(suspect));
        let is_open = matches!(ended, Ended::Unclear) && self.suspects.len() == before;
        if let Some(expected) = expected.filter(|_| is_open) {
            let open = Expected {
                in_flight: false,
                is_unclear: true,
                ..expected
            };
            self.expected.insert(of, open);
        }
    }

    /// An object is about to be known as `now`, or as gone. What one that is gone said last, no watch reports.
    pub fn compare(&mut self, graph: &Graph, known: &Object, now: Option<&Object>, at: Instant) {
        self.compare_names(known, now);
        let is_evicting = |object: &Object| object.state == DeletionState::Evicting;
        // The references of what is archived are in SQL.
        if is_evicting(known) || now.is_some_and(is_evicting) {
            return;
        }
        let mut lost = Vec::new();
        let left = |name: &ReferenceName| now.is_some_and(|now| now.references.contains(name));
        for name in known.references.iter().filter(|name| !left(name)) {
            let holder = holder(graph, known, name, false);
            // Where the reference was all that kept the object, its release was the last that happened to it.
            let is_unclear =
                now.is_none() && !known.has_deletion_finalizer && !holder.as_ref().is_some_and(|holder| holder.named);
            if !is_unclear {
                lost.push((Lost::Reference(name.clone()), holder));
            }
        }
        let has_deletion_finalizer = now.is_some_and(|now| now.has_deletion_finalizer);
        if known.has_deletion_finalizer && !has_deletion_finalizer && known.state == DeletionState::Deleting {
            lost.push((Lost::DeletionFinalizer, None));
        }
        self.suspect((known, now), lost, at);
    }

    /// The same of an object of another service: of its references, those that we have placed. What the API of
    /// that service has released, nobody has taken off by hand.
    pub fn compare_foreign(&mut self, graph: &Graph, known: &Object, now: &Object, at: Instant) {
        let mut lost = Vec::new();
        for name in known.references.difference(&now.references) {
            let holder = holder(graph, known, name, true);
            let is_released = now.released.reports_release_since(&known.released, name);
            if !is_released && holder.as_ref().is_some_and(|holder| holder.named) {
                lost.push((Lost::Reference(name.clone()), holder));
            }
        }
        self.suspect((known, Some(now)), lost, at);
    }

    /// A name speaks of the reference that was there when it was written, and of none that is placed after that.
    fn compare_names(&mut self, known: &Object, now: Option<&Object>) {
        let is_named = |lost: &Lost| now.is_some_and(|now| lost.is_named_by(now));
        self.renewed.retain(|(uid, lost)| *uid != known.uid || is_named(lost));
        if !known.released.names_any() {
            return;
        }
        let placed = now
            .into_iter()
            .flat_map(|now| now.references.difference(&known.references));
        for name in placed {
            let lost = Lost::Reference(name.clone());
            if lost.is_named_by(known) && is_named(&lost) {
                self.renewed.insert((known.uid.clone(), lost));
            }
        }
    }

    fn suspect(&mut self, (known, now): (&Object, Option<&Object>), lost: Vec<(Lost, Option<Holder>)>, at: Instant) {
        if lost.is_empty() {
            return;
        }
        let target = Arc::new(now.unwrap_or(known).clone());
        for (lost, holder) in lost {
            let of = (known.uid.clone(), lost);
            // A step of which nothing more is known may have done it, once.
            if self.expected.get(&of).is_some_and(|expected| !expected.in_flight) {
                self.expected.remove(&of);
                continue;
            }
            let suspect = Suspect {
                target: target.clone(),
                before: known.version,
                after: now.map(|now| now.version),
                is_renewed: self.renewed.contains(&of),
                lost: of.1,
                holder,
                since: at,
            };
            if !now.is_some_and(|now| suspect.is_said_by(&now.uid, &now.released)) {
                self.suspects.push(suspect);
            }
        }
    }

    /// The object with this uid was seen, in whichever version: a release may be said in one that is older than what is
    /// known.
    pub fn explain(&mut self, uid: &str, released: &Released) {
        self.suspects.retain(|suspect| !suspect.is_said_by(uid, released));
    }

    /// What was placed on an object that is not known any more is not remembered: no watch says what becomes of it.
    pub fn forget_unknown(&mut self, graph: &Graph) {
        self.renewed.retain(|(uid, _)| graph.find(uid).is_some());
    }

    /// What nobody has released, as is known by now: the objects, with what is to be reported. What a step under way
    /// may have taken off is judged once that is over.
    pub fn judge(&mut self, graph: &Graph, at: Instant) -> Vec<(Object, Notice)> {
        self.expected
            .retain(|_, expected| at.duration_since(expected.since) < EXPECTED_FOR);
        let expected = &self.expected;
        let is_due = |suspect: &mut Suspect| {
            at.duration_since(suspect.since) >= JUDGED_AFTER && !expected.contains_key(&suspect.of())
        };
        let due: Vec<_> = self.suspects.extract_if(.., is_due).collect();
        let found = due.into_iter().filter(|suspect| !suspect.is_released(graph));
        found.filter_map(|suspect| suspect.report(graph)).collect()
    }
}

impl Lost {
    /// Whether somebody names it on the object, to take it off by hand.
    fn is_named_by(&self, object: &Object) -> bool {
        match self {
            Self::Reference(name) => object.released.names(name),
            Self::DeletionFinalizer => false,
        }
    }
}

impl Ended<'_> {
    /// Whether the step has taken off what is missed. An API server may answer the write by which an object goes with
    /// the version before.
    fn explains(self, suspect: &Suspect) -> bool {
        match self {
            Self::Known(versions) => versions.iter().any(|version| match suspect.after {
                Some(after) => suspect.before < *version && *version <= after,
                None => suspect.before <= *version,
            }),
            Self::Overtaken(decided_on) => decided_on <= suspect.before,
            Self::Done | Self::Unclear => true,
        }
    }
}

impl Suspect {
    fn of(&self) -> (String, Lost) {
        (self.target.uid.clone(), self.lost.clone())
    }

    fn is_of(&self, uid: &str, lost: &Lost) -> bool {
        self.target.uid == uid && self.lost == *lost
    }

    /// Whether the object with this uid says that the reference was released.
    fn is_said_by(&self, uid: &str, released: &Released) -> bool {
        let name = match &self.lost {
            Lost::Reference(name) if *uid == *self.target.uid => name,
            Lost::Reference(_) | Lost::DeletionFinalizer => return false,
        };
        let is_named = !self.is_renewed && released.names(name);
        is_named || released.reports_release(name, self.before)
    }

    /// Whether the holder has come to the phase in which it releases, names other objects, or is gone.
    fn is_released(&self, graph: &Graph) -> bool {
        let name = match &self.lost {
            Lost::Reference(name) => name,
            Lost::DeletionFinalizer => return false,
        };
        let Some(holder) = &self.holder else {
            return graph.has_gone(name.uid());
        };
        let found = graph.get(&holder.seen.key);
        let found = found.filter(|found| found.uid == holder.seen.uid && found.phase < Some(Phase::Finalizing));
        found.is_none_or(|found| found.is_freed() || (holder.named && !names(found, &self.target)))
    }

    /// The object whose event it is, and what that says.
    fn report(self, graph: &Graph) -> Option<(Object, Notice)> {
        let subject = self.holder.as_ref().filter(|holder| holder.has_event);
        let subject = subject.map(|holder| graph.get(&holder.seen.key).cloned());
        let notice = notice(&self);
        Some((
            subject.unwrap_or_else(|| Some(Arc::unwrap_or_clone(self.target)))?,
            notice,
        ))
    }
}

/// The holder of a reference, if it is known here.
fn holder(graph: &Graph, target: &Object, name: &ReferenceName, has_event: bool) -> Option<Holder> {
    let holder = graph.find(name.uid()).and_then(|key| graph.get(key))?;
    Some(Holder {
        seen: Seen::of(holder),
        named: names(holder, target),
        has_event,
    })
}

fn names(holder: &Object, target: &Object) -> bool {
    holder.edges.iter().any(|edge| edge.target == target.key)
}

fn notice(suspect: &Suspect) -> Notice {
    let (reason, message) = match (&suspect.lost, &suspect.holder) {
        (Lost::DeletionFinalizer, _) => (
            "FinalizerVanished",
            "somebody has taken off the finalizer by which the deletion waits for its phases: nothing that the object \
             holds is released, and nothing that it has is cleaned up"
                .to_owned(),
        ),
        (Lost::Reference(name), None) => (
            "ReferenceVanished",
            format!("somebody has taken off {name}, past the API; its holder may still use the object"),
        ),
        (Lost::Reference(name), Some(holder)) => ("ReferenceVanished", of_holder(suspect, name, holder)),
    };
    Notice {
        reason,
        message,
        roots: String::new(),
        about: About::Other,
    }
}

fn of_holder(suspect: &Suspect, name: &ReferenceName, holder: &Holder) -> String {
    let then = match suspect.target.state {
        DeletionState::Live => "it is placed again",
        DeletionState::Requested | DeletionState::Deleting | DeletionState::Evicting => {
            "the object is being deleted, so that it cannot be placed again"
        }
    };
    match (holder.has_event, holder.named) {
        (true, _) => format!(
            "somebody has taken off {name} from {}, past the API, while a field still names that; {then}",
            suspect.target.key
        ),
        (false, true) => format!(
            "somebody has taken off {name}, past the API, while {} still names the object; {then}",
            holder.seen.key
        ),
        (false, false) => format!(
            "somebody has taken off {name}, past the API; {} may still use the object",
            holder.seen.key
        ),
    }
}

#[cfg(test)]
mod tests;
