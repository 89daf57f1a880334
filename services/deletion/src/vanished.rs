//! References that go from objects without a trace, and Kindex's own finalizer where an object is still on its way:
//! somebody has taken it off by hand. Pure; holds who is suspected until all watches had the time to report why.
//!
//! The API says on the object which reference it releases, people name what they take off, and our own steps are known
//! here before they are carried out. A holder that has released what it had has come to its last phase, has moved, or
//! is gone.

use std::collections::BTreeMap;
use std::time::Duration;

use kindex_model::deletion::Phase;
use kindex_model::object::ResourceVersion;
use kindex_model::reference_name::ReferenceName;
use tokio::time::Instant;

use crate::decide::Seen;
use crate::graph::Graph;
use crate::notice::{About, Notice};
use crate::object::{Object, Standing};

/// What a holder did before a reference went is known by then, whichever watch it comes by.
const JUDGED_AFTER: Duration = Duration::from_secs(5);
/// For so long after its beginning, a step of ours may be what has taken something off.
const EXPECTED_FOR: Duration = Duration::from_secs(120);

/// A finalizer that may go from an object: a reference, or Kindex's own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lost {
    /// A reference.
    Reference(ReferenceName),
    /// That by which an object waits for its phases.
    Guard,
}

/// Something that went, and of which nothing has said why.
#[derive(Debug)]
struct Suspect {
    target: Object,
    /// The version in which it still had that.
    before: ResourceVersion,
    lost: Lost,
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
    /// By uid, what our own steps take off, and since when.
    expected: BTreeMap<(String, Lost), Instant>,
}

impl Vanished {
    /// A step of ours is about to take something off the object with this uid.
    pub fn expect(&mut self, uid: &str, lost: Lost, at: Instant) {
        self.expected.insert((uid.to_owned(), lost), at);
    }

    /// An object is about to be known as `now`, or as gone. What one that is gone said last, no watch reports.
    pub fn compare(&mut self, graph: &Graph, known: &Object, now: Option<&Object>, at: Instant) {
        let is_evicted = |object: &Object| object.standing == Standing::Evicting;
        // The references of what is archived are in SQL.
        if is_evicted(known) || now.is_some_and(is_evicted) {
            return;
        }
        let left = |name: &ReferenceName| now.is_some_and(|now| now.references.contains(name));
        for name in known.references.iter().filter(|name| !left(name)) {
            let holder = holder(graph, known, name, false);
            // Where the reference was all that kept the object, its release was the last that happened to it.
            let is_unclear = now.is_none() && !known.guarded && !holder.as_ref().is_some_and(|holder| holder.named);
            if !is_unclear {
                self.suspect(known, now, Lost::Reference(name.clone()), holder, at);
            }
        }
        let is_guarded = now.is_some_and(|now| now.guarded);
        if known.guarded && !is_guarded && known.standing == Standing::Deleting {
            self.suspect(known, now, Lost::Guard, None, at);
        }
    }

    /// The same of an object of another service: of its references, those that we have placed.
    pub fn compare_foreign(&mut self, graph: &Graph, known: &Object, now: &Object, at: Instant) {
        let lost = known.references.difference(&now.references);
        for name in lost {
            let holder = holder(graph, known, name, true);
            if holder.as_ref().is_some_and(|holder| holder.named) {
                self.suspect(known, Some(now), Lost::Reference(name.clone()), holder, at);
            }
        }
    }

    fn suspect(&mut self, known: &Object, now: Option<&Object>, lost: Lost, holder: Option<Holder>, at: Instant) {
        if self.expected.remove(&(known.uid.clone(), lost.clone())).is_some() {
            return;
        }
        let suspect = Suspect {
            target: now.unwrap_or(known).clone(),
            before: known.version,
            lost,
            holder,
            since: at,
        };
        if !now.is_some_and(|now| suspect.is_said_by(now)) {
            self.suspects.push(suspect);
        }
    }

    /// An object was seen, in whichever version: a release may be said in one that is older than what is known.
    pub fn explain(&mut self, object: &Object) {
        self.suspects.retain(|suspect| !suspect.is_said_by(object));
    }

    /// What nobody has released, as is known by now: the objects, with what is to be reported.
    pub fn judge(&mut self, graph: &Graph, at: Instant) -> Vec<(Object, Notice)> {
        self.expected
            .retain(|_, since| at.duration_since(*since) < EXPECTED_FOR);
        let is_due = |suspect: &mut Suspect| at.duration_since(suspect.since) >= JUDGED_AFTER;
        let due: Vec<_> = self.suspects.extract_if(.., is_due).collect();
        let found = due.into_iter().filter(|suspect| !suspect.is_released(graph));
        found.filter_map(|suspect| suspect.report(graph)).collect()
    }
}

impl Suspect {
    /// Whether the object says that the reference was released.
    fn is_said_by(&self, object: &Object) -> bool {
        match &self.lost {
            Lost::Reference(name) => object.uid == self.target.uid && object.released.says(name, self.before),
            Lost::Guard => false,
        }
    }

    /// Whether the holder has come to the phase in which it releases, names other objects, or is gone.
    fn is_released(&self, graph: &Graph) -> bool {
        let name = match &self.lost {
            Lost::Reference(name) => name,
            Lost::Guard => return false,
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
        let bearer = self.holder.as_ref().filter(|holder| holder.has_event);
        let bearer = bearer.map(|holder| graph.get(&holder.seen.key).cloned());
        let notice = notice(&self);
        Some((bearer.unwrap_or(Some(self.target))?, notice))
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
        (Lost::Guard, _) => (
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
    let then = match suspect.target.standing {
        Standing::Live => "it is placed again",
        Standing::Requested | Standing::Deleting | Standing::Evicting => {
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
