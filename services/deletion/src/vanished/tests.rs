//! What goes with a trace and without one, whoever holds by it.

use std::collections::{BTreeMap, BTreeSet};

use kindex_model::deletion::Annotations;
use kindex_model::object::Metadata;
use kindex_model::reference::OnDelete;

use super::*;
use crate::fixture::{GROUP, key, live};
use crate::object::{Edge, KindName, Names, Released};

const HOLDER: &str = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
/// The version in which the network has the reference.
const BEFORE: u64 = 6;

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

fn name() -> ReferenceName {
    ReferenceName::new("Cluster", GROUP, HOLDER).expect("a name")
}

fn held() -> Object {
    Object {
        references: BTreeSet::from([name()]),
        ..object("Network", "n", BEFORE)
    }
}

fn bare() -> Object {
    object("Network", "n", 8)
}

/// The network without the reference, as an annotation explains it.
fn saying(version: u64, annotation: &str, value: String) -> Object {
    let metadata = Metadata {
        api_version: String::new(),
        uid: "n".into(),
        namespace: "default".to_owned(),
        name: "a".to_owned(),
        resource_version: ResourceVersion(version),
        creation_timestamp: None,
        deletion_timestamp: None,
        labels: BTreeMap::new(),
        annotations: BTreeMap::from([(annotation.to_owned(), value)]),
        finalizers: vec![format!("{GROUP}/deletion")],
    };
    let kind = KindName::new(GROUP, "Network");
    Object::read(kind, &metadata, &Names::of_service(GROUP), false, Vec::new())
}

/// A graph with this holder, if any, and what is suspected in it.
struct Stage {
    graph: Graph,
    vanished: Vanished,
    at: Instant,
}

impl Stage {
    fn new(holder: Option<Object>) -> Self {
        let mut graph = Graph::new(Vec::new());
        if let Some(holder) = holder {
            graph.apply(holder);
        }
        Self {
            graph,
            vanished: Vanished::default(),
            at: Instant::now(),
        }
    }

    fn compare(&mut self, known: &Object, now: Option<&Object>) {
        self.vanished.compare(&self.graph, known, now, self.at);
    }

    /// The step that takes the reference off is over.
    fn settle(&mut self, ended: Ended<'_>) {
        self.vanished.settle("n", &Lost::Reference(name()), ended);
    }

    /// What is reported in the end, of which object.
    fn judge(&mut self) -> Vec<(String, Notice)> {
        let judged = self.vanished.judge(&self.graph, self.at + JUDGED_AFTER).into_iter();
        let again = self.vanished.judge(&self.graph, self.at + JUDGED_AFTER * 2);
        assert!(again.is_empty(), "once");
        let judged = judged.map(|(object, notice)| (object.key.kind.kind.into_owned(), notice));
        judged.collect()
    }
}

/// What is reported if the reference goes, and the holder is `then` when it is judged.
fn reported(now: Option<&Object>, first: Object, then: Option<Object>) -> Vec<String> {
    let mut stage = Stage::new(Some(first));
    stage.compare(&held(), now);
    let early = stage.vanished.judge(&stage.graph, stage.at);
    assert!(early.is_empty(), "nothing is judged at once");
    match then {
        Some(mut then) => {
            then.version = ResourceVersion(7);
            stage.graph.apply(then);
        }
        None => {
            stage.graph.remove(&key("Cluster", "a"), HOLDER);
        }
    }
    stage.judge().into_iter().map(|(_, notice)| notice.message).collect()
}

#[test]
fn a_reference_that_goes_while_its_holder_names_the_object_is_reported() {
    let messages = reported(Some(&bare()), holder(None, true), Some(holder(None, true)));
    assert_eq!(
        messages,
        [format!(
            "somebody has taken off cluster.x.example.com/{HOLDER}, past the API, while cluster.x.example.com \
             default/a still names the object; it is placed again"
        )]
    );
    let deleting = Object {
        state: DeletionState::Deleting,
        ..bare()
    };
    let messages = reported(
        Some(&deleting),
        holder(None, true),
        Some(holder(Some(Phase::Draining), true)),
    );
    assert!(messages[0].ends_with("cannot be placed again"), "{messages:?}");
    assert_eq!(reported(None, holder(None, true), Some(holder(None, true))).len(), 1);
}

#[test]
fn what_a_holder_releases_itself_is_not_reported() {
    let now = &bare();
    let first = || holder(None, true);
    assert!(
        reported(Some(now), first(), Some(holder(None, false))).is_empty(),
        "moved"
    );
    let finalizing = holder(Some(Phase::Finalizing), true);
    assert!(reported(Some(now), first(), Some(finalizing)).is_empty(), "released");
    assert!(reported(Some(now), first(), None).is_empty(), "gone");
}

#[test]
fn a_reference_that_no_field_declares_is_reported_too() {
    let messages = reported(Some(&bare()), holder(None, false), Some(holder(None, false)));
    assert_eq!(messages.len(), 1);
    assert!(
        messages[0].ends_with("default/a may still use the object"),
        "{messages:?}"
    );
}

#[test]
fn references_that_stay_or_go_to_the_archive_are_not_reported() {
    assert!(reported(Some(&held()), holder(None, true), Some(holder(None, true))).is_empty());
    let evicting = Object {
        state: DeletionState::Evicting,
        ..bare()
    };
    assert!(reported(Some(&evicting), holder(None, true), Some(holder(None, true))).is_empty());
}

#[test]
fn a_reference_of_a_holder_that_nobody_has_seen_is_reported_unless_a_trace_is_left() {
    let recorded = Annotations::of(GROUP);
    let (named, by_api) = (name().to_string(), format!("{}@{BEFORE}", name()));
    let earlier = format!("{}@{}", name(), BEFORE - 1);
    for (now, is_reported) in [
        (bare(), true),
        (saying(8, &recorded.release, named), false),
        (saying(8, &recorded.released, by_api.clone()), false),
        (saying(8, &recorded.released, earlier), true),
    ] {
        let mut stage = Stage::new(None);
        stage.compare(&held(), Some(&now));
        let said = stage.judge();
        assert_eq!(said.len(), usize::from(is_reported), "{now:?}: {said:?}");
        let all_are = said.iter().all(|(_, notice)| notice.reason == "ReferenceVanished");
        assert!(all_are, "{said:?}");
    }
    // The API has released two; the version in between is reported late.
    let mut stage = Stage::new(None);
    stage.compare(&held(), Some(&bare()));
    let released = saying(7, &recorded.released, by_api).released;
    stage.vanished.explain("n", &released);
    assert!(stage.judge().is_empty());
}

#[test]
fn what_our_own_steps_take_off_is_not_reported() {
    let later = object("Network", "n", 9);
    for (now, written, is_reported) in [
        (Some(&bare()), &[8][..], false),
        (Some(&later), &[8][..], false),
        (None, &[7][..], false),
        // The answer to the write by which it goes may have the version before.
        (None, &[BEFORE][..], false),
        // Somebody else has taken it off: our write was refused, or came after that.
        (Some(&bare()), &[][..], true),
        (Some(&bare()), &[9][..], true),
        (Some(&bare()), &[BEFORE][..], true),
        (None, &[][..], true),
    ] {
        let mut stage = Stage::new(None);
        stage.vanished.expect("n", Lost::Reference(name()), stage.at);
        stage.compare(&held(), now);
        let due = stage.at + JUDGED_AFTER;
        let early = stage.vanished.judge(&stage.graph, due);
        assert!(early.is_empty(), "the step is under way, and may have done it");
        let versions: Vec<_> = written.iter().copied().map(ResourceVersion).collect();
        stage.settle(Ended::Known(&versions));
        assert_eq!(stage.judge().len(), usize::from(is_reported), "{now:?} {written:?}");
    }
}

/// Two processes may decide the same while one takes over from the other.
#[test]
fn what_went_after_an_overtaken_step_was_decided_is_not_reported() {
    for (decided_on, is_reported) in [(BEFORE - 1, false), (BEFORE, false), (BEFORE + 1, true)] {
        for now in [Some(&bare()), None] {
            let mut stage = Stage::new(None);
            stage.vanished.expect("n", Lost::Reference(name()), stage.at);
            stage.compare(&held(), now);
            stage.settle(Ended::Overtaken(ResourceVersion(decided_on)));
            let reported = stage.judge().len();
            assert_eq!(reported, usize::from(is_reported), "{now:?} {decided_on}");
        }
    }
}

/// Otherwise, a step that was refused hides for two minutes what others do.
#[test]
fn nothing_is_expected_of_a_step_any_more_once_its_outcome_is_known() {
    for ended in [
        Ended::Known(&[]),
        Ended::Known(&[ResourceVersion(7)]),
        Ended::Overtaken(ResourceVersion(7)),
        Ended::Done,
    ] {
        let mut stage = Stage::new(None);
        stage.vanished.expect("n", Lost::Reference(name()), stage.at);
        stage.settle(ended);
        stage.compare(
            &Object {
                version: ResourceVersion(7),
                ..held()
            },
            Some(&bare()),
        );
        assert_eq!(stage.judge().len(), 1, "{ended:?}");
    }
}

#[test]
fn a_step_of_which_nobody_knows_what_came_of_it_is_held_to_have_done_it_for_a_while() {
    let mut stage = Stage::new(None);
    stage.vanished.expect("n", Lost::Reference(name()), stage.at);
    stage.settle(Ended::Unclear);
    stage.compare(&held(), Some(&bare()));
    stage.compare(&held(), Some(&bare()));
    assert_eq!(stage.judge().len(), 1, "it was expected once");
    // Seen before the step ended.
    stage.vanished.expect("n", Lost::Reference(name()), stage.at);
    stage.compare(&held(), Some(&bare()));
    stage.settle(Ended::Unclear);
    assert!(stage.judge().is_empty());
    assert!(stage.vanished.expected.is_empty(), "that was it");
    // Seen while the step is tried again, which finds that nothing is left to do.
    stage.vanished.expect("n", Lost::Reference(name()), stage.at);
    stage.settle(Ended::Unclear);
    stage.vanished.expect("n", Lost::Reference(name()), stage.at);
    stage.compare(&held(), Some(&bare()));
    stage.settle(Ended::Known(&[]));
    assert!(stage.judge().is_empty());
    stage.vanished.expect("n", Lost::Reference(name()), stage.at);
    stage.settle(Ended::Unclear);
    let late = stage.at + EXPECTED_FOR;
    assert!(stage.vanished.judge(&stage.graph, late).is_empty());
    assert!(stage.vanished.expected.is_empty(), "not for ever");
}

/// Whoever drops a reference names it on the object, and the name may stay there.
#[test]
fn a_name_excuses_no_reference_that_was_placed_after_it() {
    let recorded = Annotations::of(GROUP);
    let named = |version: u64| saying(version, &recorded.release, name().to_string());
    let named_and_held = |version: u64| Object {
        references: held().references,
        ..named(version)
    };
    let mut stage = Stage::new(None);
    stage.compare(&held(), Some(&named_and_held(7)));
    stage.compare(&named_and_held(7), Some(&named(8)));
    assert!(stage.judge().is_empty(), "it was named before it went");
    stage.compare(&named(8), Some(&named_and_held(9)));
    stage.compare(&named_and_held(9), Some(&named(10)));
    assert_eq!(stage.judge().len(), 1, "the name is of the earlier one");
    stage.compare(&named(10), Some(&named_and_held(11)));
    stage.compare(
        &named_and_held(11),
        Some(&Object {
            version: ResourceVersion(12),
            ..held()
        }),
    );
    stage.compare(&held(), Some(&named_and_held(13)));
    stage.compare(&named_and_held(13), Some(&named(14)));
    assert!(stage.judge().is_empty(), "it is named anew");
    stage.compare(&named(14), Some(&named_and_held(15)));
    stage.compare(&named_and_held(15), None);
    assert!(
        stage.vanished.renewed.is_empty(),
        "no more than what is there is remembered"
    );
}

#[test]
fn the_own_finalizer_is_reported_where_it_goes_before_its_time() {
    let deleting = |has_deletion_finalizer: bool| Object {
        state: DeletionState::Deleting,
        has_deletion_finalizer,
        ..bare()
    };
    let known = Object {
        version: ResourceVersion(BEFORE),
        ..deleting(true)
    };
    for (now, is_expected, is_reported) in [
        (Some(deleting(false)), false, true),
        (None, false, true),
        (Some(deleting(false)), true, false),
        (None, true, false),
        (Some(deleting(true)), false, false),
    ] {
        let mut stage = Stage::new(None);
        if is_expected {
            stage.vanished.expect("n", Lost::DeletionFinalizer, stage.at);
        }
        stage.compare(&known, now.as_ref());
        if is_expected {
            let written = Ended::Known(&[ResourceVersion(8)]);
            stage.vanished.settle("n", &Lost::DeletionFinalizer, written);
        }
        let reasons: Vec<_> = stage.judge().into_iter().map(|(_, notice)| notice.reason).collect();
        let expected: &[&str] = if is_reported { &["FinalizerVanished"] } else { &[] };
        assert_eq!(reasons, expected, "{now:?} {is_expected}");
    }
    let mut stage = Stage::new(None);
    stage.compare(
        &bare(),
        Some(&Object {
            has_deletion_finalizer: false,
            ..bare()
        }),
    );
    assert!(stage.judge().is_empty(), "it stays, and gets the finalizer again");
}

#[test]
fn what_goes_with_its_last_reference_says_nothing_of_it() {
    let last = Object {
        state: DeletionState::Deleting,
        has_deletion_finalizer: false,
        ..held()
    };
    let mut stage = Stage::new(None);
    stage.compare(&last, None);
    assert!(stage.judge().is_empty(), "the API may have released it");
    let mut stage = Stage::new(Some(holder(None, true)));
    stage.compare(&last, None);
    assert_eq!(stage.judge().len(), 1, "a field names it");
}

#[test]
fn a_reference_that_goes_from_an_object_of_another_service_is_reported_on_its_holder() {
    let now = &bare();
    for (holder, reported) in [(holder(None, true), 1), (holder(None, false), 0)] {
        let mut stage = Stage::new(Some(holder));
        stage.vanished.compare_foreign(&stage.graph, &held(), now, stage.at);
        let said = stage.judge();
        assert_eq!(said.len(), reported, "{said:?}");
        let all_are = said.iter().all(|(kind, notice)| {
            kind == "Cluster" && notice.message.contains("network.x.example.com default/a, past the API")
        });
        assert!(all_are, "{said:?}");
    }
    let mut stage = Stage::new(None);
    stage.vanished.compare_foreign(&stage.graph, &held(), now, stage.at);
    assert!(stage.judge().is_empty(), "it is nobody's of ours");
}

/// As the API leaves a trace on an object of ours, its answers tell of one on an object of another service.
#[test]
fn what_the_api_of_another_service_has_released_is_not_reported() {
    let last = |version: u64| Released::elsewhere([format!("{}@{version}", name()).as_str()], false);
    let of_other = || Released::elsewhere(["cluster.x.example.com/u@8"], false);
    let of_both = || Released::elsewhere(["cluster.x.example.com/u@8", &format!("{}@7", name())], false);
    let (nothing, in_rows) = (Released::default, || Released::elsewhere([], true));
    for (before, after, is_reported) in [
        (nothing(), last(7), false),
        (last(3), last(7), false),
        (of_other(), last(7), false),
        (nothing(), of_both(), false),
        // That was the release of one before it.
        (last(7), last(7), true),
        (last(7), of_both(), true),
        (nothing(), of_other(), true),
        (nothing(), nothing(), true),
        // Nobody takes off a row by hand.
        (in_rows(), in_rows(), false),
        (nothing(), in_rows(), false),
        (in_rows(), nothing(), false),
    ] {
        let mut stage = Stage::new(Some(holder(None, true)));
        let (known, now) = (
            Object {
                released: before,
                ..held()
            },
            Object {
                released: after,
                ..bare()
            },
        );
        stage.vanished.compare_foreign(&stage.graph, &known, &now, stage.at);
        let said = stage.judge();
        assert_eq!(said.len(), usize::from(is_reported), "{known:?} {now:?}");
    }
}
