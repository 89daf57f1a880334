//! References that vanish from objects while their holders still use these: somebody has taken off a finalizer by hand.
//! Pure: holds who is suspected until all watches had the time to report why. References of other services' holders
//! cannot be judged, because nobody sees what these name.

use std::time::Duration;

use kindex_model::deletion::Phase;
use kindex_model::reference_name::ReferenceName;
use tokio::time::Instant;

use crate::decide::Seen;
use crate::graph::Graph;
use crate::notice::Notice;
use crate::object::{Object, Standing};

/// What a holder did before a reference went is known by then, whichever watch it comes by.
const JUDGED_AFTER: Duration = Duration::from_secs(5);

/// A reference that went, of a holder that was seen.
#[derive(Debug)]
struct Suspect {
    target: Object,
    holder: Seen,
    name: ReferenceName,
    since: Instant,
}

/// All that have to be judged.
#[derive(Debug, Default)]
pub struct Vanished {
    suspects: Vec<Suspect>,
}

impl Vanished {
    /// An object is about to be known as `now`, or as gone.
    pub fn compare(&mut self, graph: &Graph, known: &Object, now: Option<&Object>, at: Instant) {
        let is_evicted = |object: &Object| object.standing == Standing::Evicting;
        // The references of what is evicted are in SQL.
        if is_evicted(known) || now.is_some_and(is_evicted) {
            return;
        }
        let left = |name: &ReferenceName| now.is_some_and(|now| now.references.contains(name));
        for name in known.references.iter().filter(|name| !left(name)) {
            let holder = graph.find(name.uid()).and_then(|key| graph.get(key));
            let Some(holder) = holder.filter(|holder| uses(holder, known)) else {
                continue;
            };
            self.suspects.push(Suspect {
                target: now.unwrap_or(known).clone(),
                holder: Seen::of(holder),
                name: name.clone(),
                since: at,
            });
        }
    }

    /// Those whose holders, as is known by now, never released them: the objects, with what is to be reported.
    pub fn judge(&mut self, graph: &Graph, at: Instant) -> Vec<(Object, Notice)> {
        let is_due = |suspect: &mut Suspect| at.duration_since(suspect.since) >= JUDGED_AFTER;
        let due: Vec<_> = self.suspects.extract_if(.., is_due).collect();
        let found = due.into_iter().filter(|suspect| {
            let holder = graph.get(&suspect.holder.key);
            holder.is_some_and(|holder| holder.uid == suspect.holder.uid && uses(holder, &suspect.target))
        });
        found
            .map(|suspect| (suspect.target.clone(), notice(&suspect)))
            .collect()
    }
}

/// Whether a holder names an object and has not come to the phase in which it releases.
fn uses(holder: &Object, target: &Object) -> bool {
    holder.phase < Some(Phase::Finalizing) && holder.edges.iter().any(|edge| edge.target == target.key)
}

fn notice(suspect: &Suspect) -> Notice {
    let then = match suspect.target.standing {
        Standing::Live => "it is placed again",
        Standing::Requested | Standing::Deleting | Standing::Evicting => {
            "the object is being deleted, so that it cannot be placed again"
        }
    };
    Notice {
        reason: "ReferenceVanished",
        message: format!(
            "somebody has taken off {}, past the API, while {} still names the object; {then}",
            suspect.name, suspect.holder.key
        ),
        waits: false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kindex_model::object::ResourceVersion;
    use kindex_model::reference::OnDelete;

    use super::*;
    use crate::fixture::{key, live};
    use crate::object::Edge;

    const HOLDER: &str = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

    fn object(kind: &str, uid: &str, version: u64) -> Object {
        Object {
            version: ResourceVersion(version),
            ..live(key(kind, "a"), uid)
        }
    }

    fn holder(phase: Option<Phase>, names: bool) -> Object {
        let edge = Edge {
            reference: "network",
            target: key("Network", "a"),
            owned: false,
            on_delete: OnDelete::Block,
        };
        Object {
            phase,
            edges: names.then_some(edge).into_iter().collect(),
            ..object("Cluster", HOLDER, 5)
        }
    }

    fn held() -> Object {
        let name = ReferenceName::new("Cluster", "x.example.com", HOLDER).expect("a name");
        Object {
            references: BTreeSet::from([name]),
            ..object("Network", "n", 6)
        }
    }

    /// What is reported if the reference goes, and the holder is `then` when it is judged.
    fn reported(now: Option<Object>, first: Object, then: Option<Object>) -> Vec<String> {
        let mut graph = Graph::new(Vec::new());
        graph.apply(first);
        let (mut vanished, at) = (Vanished::default(), Instant::now());
        vanished.compare(&graph, &held(), now.as_ref(), at);
        assert!(vanished.judge(&graph, at).is_empty(), "nothing is judged at once");
        match then {
            Some(mut then) => {
                then.version = ResourceVersion(7);
                graph.apply(then);
            }
            None => {
                graph.remove(&key("Cluster", "a"), HOLDER);
            }
        }
        let judged = vanished.judge(&graph, at + JUDGED_AFTER);
        assert!(vanished.judge(&graph, at + JUDGED_AFTER * 2).is_empty(), "once");
        judged.into_iter().map(|(_, notice)| notice.message).collect()
    }

    #[test]
    fn a_reference_that_goes_while_its_holder_names_the_object_is_reported() {
        let now = object("Network", "n", 8);
        let messages = reported(Some(now.clone()), holder(None, true), Some(holder(None, true)));
        assert_eq!(
            messages,
            [format!(
                "somebody has taken off cluster.x.example.com/{HOLDER}, past the API, while cluster.x.example.com \
                 default/a still names the object; it is placed again"
            )]
        );
        let deleting = Object {
            standing: Standing::Deleting,
            ..now
        };
        let messages = reported(
            Some(deleting),
            holder(None, true),
            Some(holder(Some(Phase::Draining), true)),
        );
        assert!(messages[0].ends_with("cannot be placed again"), "{messages:?}");
        assert_eq!(reported(None, holder(None, true), Some(holder(None, true))).len(), 1);
    }

    #[test]
    fn what_a_holder_releases_itself_is_not_reported() {
        let now = || Some(object("Network", "n", 8));
        let first = || holder(None, true);
        assert!(reported(now(), first(), Some(holder(None, false))).is_empty(), "moved");
        let finalizing = holder(Some(Phase::Finalizing), true);
        assert!(reported(now(), first(), Some(finalizing)).is_empty(), "released");
        assert!(reported(now(), first(), None).is_empty(), "gone");
        assert!(
            reported(now(), holder(None, false), Some(first())).is_empty(),
            "named later"
        );
    }

    #[test]
    fn references_that_stay_or_go_to_the_archive_are_not_reported() {
        assert!(reported(Some(held()), holder(None, true), Some(holder(None, true))).is_empty());
        let evicting = Object {
            standing: Standing::Evicting,
            ..object("Network", "n", 8)
        };
        assert!(reported(Some(evicting), holder(None, true), Some(holder(None, true))).is_empty());
    }
}
