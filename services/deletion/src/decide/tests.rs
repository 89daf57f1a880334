//! Every cell of the decision, one test for each rule.

use kindex_model::reference::OnDelete;
use kindex_model::reference_name::ReferenceName;

use super::*;
use crate::fixture::{self, GROUP, key};
use crate::object::Object;

mod archive;

mod cause;

const NOTHING: Step = Step::Rest(Vec::new());

fn seen(kind: &str, name: &str) -> Seen {
    Seen {
        key: key(kind, name),
        uid: format!("uid-{name}"),
    }
}

fn claim(name: &str, owned: bool) -> Claim {
    let name = ReferenceName::new("Holder", GROUP, name);
    Claim {
        name: name.expect("a name"),
        at: Whereabouts::Unknown,
        owned,
    }
}

fn unplaced(name: &str, owned: bool, cascades: bool) -> Unplaced {
    Unplaced {
        holder: key("Holder", name),
        owned,
        cascades,
    }
}

fn edge(name: &'static str, owned: bool, on_delete: OnDelete) -> Edge {
    Edge {
        reference: name,
        target: key("Target", name),
        owned,
        on_delete,
    }
}

fn cascade(name: &'static str) -> Edge {
    edge(name, false, OnDelete::Cascade)
}

fn present(name: &str, bears: bool, leaving: bool, phase: Option<Phase>) -> Named {
    Named::Present {
        seen: seen("Target", name),
        bears,
        leaving,
        phase,
    }
}

fn placed(name: &str) -> Named {
    present(name, true, false, None)
}

fn going(name: &str, phase: Phase) -> Named {
    present(name, true, true, Some(phase))
}

fn object(standing: Standing) -> Object {
    Object {
        standing,
        requested: standing == Standing::Requested,
        ..fixture::live(key("Object", "o"), "uid-o")
    }
}

fn look(object: &Object) -> Look<'_> {
    Look {
        object,
        named: Vec::new(),
        bearers: Vec::new(),
        claims: Vec::new(),
        unplaced: Vec::new(),
        holders_unknown: Vec::new(),
        targets_unknown: Vec::new(),
        outside: Outside::Gone,
        archived: Archived::Off,
    }
}

/// A live object with these edges, and what each of them names.
fn live(edges: Vec<(Edge, Named)>) -> (Object, Vec<Named>) {
    let (edges, named) = edges.into_iter().unzip();
    let object = Object {
        edges,
        ..object(Standing::Live)
    };
    (object, named)
}

fn decide_named((object, named): &(Object, Vec<Named>)) -> Step {
    decide(&Look {
        named: named.clone(),
        ..look(object)
    })
}

fn deleting(phase: Option<Phase>) -> Object {
    Object {
        phase,
        ..object(Standing::Deleting)
    }
}

#[test]
fn every_object_is_guarded_before_anything_else() {
    for standing in [Standing::Live, Standing::Requested] {
        let bare = Object {
            guarded: false,
            ..object(standing)
        };
        assert_eq!(decide(&look(&bare)), Step::Guard);
    }
    assert_eq!(decide(&look(&object(Standing::Live))), NOTHING);
}

#[test]
fn what_is_requested_by_annotation_is_deleted_at_once() {
    let step = decide(&look(&object(Standing::Requested)));
    assert_eq!(step, Step::Delete(Cause::Requested));
}

#[test]
fn a_reference_is_placed_on_what_a_field_names() {
    let step = decide_named(&live(vec![
        (cascade("a"), placed("a")),
        (cascade("b"), present("b", false, false, None)),
    ]));
    let place = Step::Place {
        reference: "b",
        target: seen("Target", "b"),
    };
    assert_eq!(step, place);
    assert_eq!(decide_named(&live(vec![(cascade("a"), placed("a"))])), NOTHING);
}

#[test]
fn no_reference_is_placed_on_what_is_leaving_absent_unknown_or_the_object_itself() {
    let cases = [
        (present("a", false, true, None), Why::Leaving),
        (Named::Archived { leaving: true }, Why::Leaving),
        (Named::Absent, Why::Absent),
        (Named::Unknown, Why::Unknown),
        (Named::Itself, Why::Itself),
    ];
    for (named, why) in cases {
        let refused = Refused {
            reference: "a",
            target: key("Target", "a"),
            why,
        };
        let block = || edge("a", false, OnDelete::Block);
        assert_eq!(
            decide_named(&live(vec![(block(), named.clone())])),
            Step::Rest(vec![refused])
        );
        // It keeps no other one from being placed.
        let other = (cascade("b"), present("b", false, false, None));
        let step = decide_named(&live(vec![(block(), named), other]));
        assert!(matches!(step, Step::Place { reference: "b", .. }), "{step:?}");
    }
}

#[test]
fn the_old_target_is_released_after_the_new_one_is_held() {
    let (object, _) = live(vec![(cascade("new"), placed("new"))]);
    let moved = |named: Named| {
        decide(&Look {
            named: vec![named],
            bearers: vec![seen("Target", "new"), seen("Target", "old")],
            ..look(&object)
        })
    };
    assert!(matches!(moved(present("new", false, false, None)), Step::Place { .. }));
    assert!(matches!(moved(present("new", false, true, None)), Step::Rest(refused) if refused.len() == 1));
    assert_eq!(moved(placed("new")), Step::Release(seen("Target", "old")));
}

#[test]
fn a_target_that_was_created_anew_under_the_name_is_another_one() {
    let (object, _) = live(vec![(cascade("a"), placed("a"))]);
    let old = Seen {
        uid: "uid-before".to_owned(),
        ..seen("Target", "a")
    };
    let step = decide(&Look {
        named: vec![placed("a")],
        bearers: vec![seen("Target", "a"), old.clone()],
        ..look(&object)
    });
    assert_eq!(step, Step::Release(old));
}

#[test]
fn a_deletion_waits_while_a_reference_is_left() {
    let claims = vec![claim("h", false), claim("c", true)];
    let step = |phase| {
        decide(&Look {
            claims: claims.clone(),
            bearers: vec![seen("Target", "a")],
            ..look(&deleting(phase))
        })
    };
    assert_eq!(step(None), Step::Record(Phase::Deleting));
    // Even where a later phase was recorded: nothing goes back, and nothing goes on.
    for phase in Phase::ALL {
        let wait = Wait::Holders(vec![claim("h", false)], Vec::new());
        assert_eq!(step(Some(phase)), Step::Wait(wait));
    }
}

#[test]
fn a_deletion_waits_for_holders_that_go_with_it_and_not_for_those_that_were_refused() {
    let object = deleting(Some(Phase::Deleting));
    let step = |cascades| {
        decide(&Look {
            unplaced: vec![unplaced("h", false, cascades)],
            ..look(&object)
        })
    };
    assert_eq!(
        step(true),
        Step::Wait(Wait::Holders(Vec::new(), vec![key("Holder", "h")]))
    );
    assert_eq!(step(false), Step::Free { confirm: Vec::new() });
}

#[test]
fn nothing_drains_while_it_is_unknown_who_refers_to_it() {
    let unknown = vec!["holder".to_owned()];
    let object = deleting(None);
    let step = decide(&Look {
        holders_unknown: unknown.clone(),
        ..look(&object)
    });
    assert_eq!(step, Step::Wait(Wait::Unknown(unknown)));
}

#[test]
fn an_owner_drains_before_it_releases() {
    let step = |phase, claims, unplaced| {
        decide(&Look {
            claims,
            unplaced,
            bearers: vec![seen("Target", "a")],
            ..look(&deleting(phase))
        })
    };
    for phase in [None, Some(Phase::Deleting)] {
        assert_eq!(
            step(phase, vec![claim("c", true)], Vec::new()),
            Step::Record(Phase::Draining)
        );
    }
    let held = Wait::Owned(vec![claim("c", true)], Vec::new());
    assert_eq!(
        step(Some(Phase::Draining), vec![claim("c", true)], Vec::new()),
        Step::Wait(held)
    );
    let late = Wait::Owned(Vec::new(), vec![key("Holder", "c")]);
    let unplaced = vec![unplaced("c", true, false)];
    assert_eq!(step(Some(Phase::Draining), Vec::new(), unplaced), Step::Wait(late));
}

#[test]
fn nothing_is_released_before_the_cleanup_outside_is_confirmed() {
    let step = |phase, outside, others: &[&str]| {
        let object = Object {
            others: others.iter().map(|&other| other.to_owned()).collect(),
            ..deleting(phase)
        };
        decide(&Look {
            outside,
            bearers: vec![seen("Target", "a")],
            ..look(&object)
        })
    };
    let draining = Some(Phase::Draining);
    for left in [Left::Pending("m".to_owned()), Left::Failed("m".to_owned())] {
        let outside = Outside::Left(left.clone());
        assert_eq!(step(None, outside.clone(), &[]), Step::Record(Phase::Draining));
        assert_eq!(step(draining, outside, &[]), Step::Wait(Wait::Outside(left)));
    }
    assert_eq!(step(None, Outside::Unconfirmed, &[]), Step::Record(Phase::Draining));
    assert_eq!(step(draining, Outside::Unconfirmed, &[]), Step::CleanUp);
    assert_eq!(step(None, Outside::Gone, &["a.b/c"]), Step::Record(Phase::Draining));
    let others = Wait::Finalizers(vec!["a.b/c".to_owned()]);
    for outside in [Outside::Gone, Outside::Unconfirmed] {
        assert_eq!(step(draining, outside, &["a.b/c"]), Step::Wait(others.clone()));
    }
    assert_eq!(step(draining, Outside::Gone, &[]), Step::Record(Phase::Finalizing));
}

#[test]
fn nothing_is_cleaned_up_outside_before_holders_and_what_is_owned_are_gone() {
    let object = deleting(Some(Phase::Draining));
    for owned in [false, true] {
        let step = decide(&Look {
            outside: Outside::Unconfirmed,
            claims: vec![claim("h", owned)],
            ..look(&object)
        });
        assert!(
            matches!(step, Step::Wait(Wait::Holders(..) | Wait::Owned(..))),
            "{step:?}"
        );
    }
}

#[test]
fn all_references_are_released_before_the_object_is_freed() {
    let step = |phase, bearers, targets_unknown| {
        decide(&Look {
            bearers,
            targets_unknown,
            ..look(&deleting(phase))
        })
    };
    let both = || vec![seen("Target", "a"), seen("Target", "b")];
    for phase in [None, Some(Phase::Deleting), Some(Phase::Draining)] {
        assert_eq!(step(phase, both(), Vec::new()), Step::Record(Phase::Finalizing));
    }
    let finalizing = Some(Phase::Finalizing);
    assert_eq!(step(finalizing, both(), Vec::new()), Step::Release(seen("Target", "a")));
    let silent = vec!["region".to_owned()];
    assert_eq!(
        step(finalizing, both(), silent.clone()),
        Step::Release(seen("Target", "a")),
        "a service that is silent keeps no other from being released"
    );
    assert_eq!(
        step(finalizing, Vec::new(), silent.clone()),
        Step::Wait(Wait::Unknown(silent))
    );
    assert_eq!(
        step(finalizing, Vec::new(), Vec::new()),
        Step::Free { confirm: Vec::new() }
    );
}

#[test]
fn an_object_without_holders_or_anything_else_is_freed_at_once() {
    assert_eq!(decide(&look(&deleting(None))), Step::Free { confirm: Vec::new() });
    let bare = Object {
        guarded: false,
        ..deleting(None)
    };
    assert_eq!(decide(&look(&bare)), NOTHING);
}

#[test]
fn what_a_field_names_is_read_again_before_the_object_is_freed() {
    let object = Object {
        edges: vec![cascade("a"), cascade("b")],
        ..deleting(Some(Phase::Finalizing))
    };
    let step = decide(&Look {
        named: vec![Named::Absent, Named::Itself],
        ..look(&object)
    });
    assert!(matches!(step, Step::Free { confirm } if confirm == [key("Target", "a")]));
    for (phase, confirm) in [(None, vec![key("Target", "a")]), (Some(Phase::Deleting), Vec::new())] {
        let step = decide(&Look {
            named: vec![present("a", false, true, phase), Named::Itself],
            ..look(&object)
        });
        assert_eq!(step, Step::Free { confirm }, "{phase:?}");
    }
}
