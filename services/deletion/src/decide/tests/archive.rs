//! The archive: what leaves for it, and who holds out of it.

use super::*;

#[test]
fn what_leaves_for_the_archive_releases_nothing_and_takes_nothing_along() {
    let object = Object {
        immutable: true,
        ..object(DeletionState::Evicting)
    };
    let evicting = Input {
        targets: vec![seen("Target", "a")],
        ..input(&object)
    };
    assert_eq!(decide(&evicting), Step::Free { confirm: Vec::new() });
    let owned = decide(&Input {
        missing: vec![missing("c", true, false)],
        ..evicting.clone()
    });
    assert_eq!(owned, Step::Wait(Wait::Holders(Vec::new(), vec![key("Holder", "c")])));
    let held = decide(&Input {
        references: vec![reference("h", false)],
        ..evicting.clone()
    });
    assert_eq!(held, Step::Wait(Wait::Holders(vec![reference("h", false)], Vec::new())));
    let unknown = decide(&Input {
        holders_unknown: vec!["holder".to_owned()],
        ..evicting
    });
    assert_eq!(unknown, Step::Wait(Wait::Unknown(vec!["holder".to_owned()])));
}

#[test]
fn what_names_an_archived_object_holds_it_by_a_row() {
    let step = |named| decide_named(&live(vec![(cascade("a"), named), (cascade("b"), placed("b"))]));
    let hold = Step::Hold {
        reference: "a",
        target: key("Target", "a"),
    };
    assert_eq!(step(Named::Unasked), hold);
    assert_eq!(step(Named::Archived { leaving: false }), NOTHING);
    // Whoever is leaving the cluster places nothing, and finds its rows by its own name.
    let object = Object {
        edges: vec![cascade("a")],
        ..deleting(None)
    };
    let leaves = Input {
        named: vec![Named::Unasked],
        ..input(&object)
    };
    let confirm = vec![key("Target", "a")];
    assert_eq!(decide(&leaves), Step::Free { confirm });
}

fn absent(name: &str) -> HeldReference {
    HeldReference {
        at: HolderLocation::Absent,
        ..reference(name, false)
    }
}

fn left(plain: &[&str], owned: &[&str]) -> Archived {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Archived::Remaining {
        plain: texts(plain),
        owned: texts(owned),
    }
}

#[test]
fn references_of_what_left_become_rows() {
    let references = || vec![absent("a"), reference("b", false), absent("c")];
    let kept = Step::Keep(vec![reference("a", false).name, reference("c", false).name]);
    for state in [DeletionState::Live, DeletionState::Evicting, DeletionState::Deleting] {
        let object = object(state);
        let step = |archived| {
            decide(&Input {
                references: references(),
                archived,
                ..input(&object)
            })
        };
        assert_eq!(step(Archived::Unasked), kept, "{state:?}");
        assert_eq!(step(left(&["x"], &[])), kept, "{state:?}");
        assert_ne!(step(Archived::Off), kept, "there is no archive");
    }
}

#[test]
fn the_archive_is_asked_once_nothing_in_the_cluster_holds_the_object() {
    let object = deleting(Some(Phase::Deleting));
    let unasked = Input {
        archived: Archived::Unasked,
        ..input(&object)
    };
    assert_eq!(decide(&unasked), Step::Sweep);
    let held = decide(&Input {
        references: vec![reference("a", false)],
        ..unasked.clone()
    });
    assert!(matches!(held, Step::Wait(Wait::Holders(..))), "{held:?}");
    let owner = Input {
        references: vec![reference("a", true)],
        ..unasked.clone()
    };
    assert_eq!(decide(&owner), Step::Sweep, "it does not drain before");
    let draining = deleting(Some(Phase::Draining));
    let owner = Input {
        object: &draining,
        ..owner
    };
    assert!(matches!(decide(&owner), Step::Wait(Wait::Owned(..))));
    let last = Input {
        references: Vec::new(),
        ..owner
    };
    assert_eq!(decide(&last), Step::Sweep);
}

#[test]
fn archived_holders_keep_the_object_in_the_phase_that_is_theirs() {
    let with = |phase, archived| {
        let object = deleting(phase);
        decide(&Input {
            archived,
            ..input(&object)
        })
    };
    let waits = |name: &str| Step::Wait(Wait::Archived(vec![name.to_owned()]));
    assert_eq!(with(None, left(&["a"], &[])), Step::Record(Phase::Deleting, Vec::new()));
    assert_eq!(with(Some(Phase::Deleting), left(&["a"], &["b"])), waits("a"));
    assert_eq!(
        with(Some(Phase::Deleting), left(&[], &["b"])),
        Step::Record(Phase::Draining, Vec::new())
    );
    assert_eq!(with(Some(Phase::Draining), left(&[], &["b"])), waits("b"));
    let nobody = with(Some(Phase::Draining), left(&[], &[]));
    assert!(matches!(nobody, Step::Free { .. }), "{nobody:?}");
}
