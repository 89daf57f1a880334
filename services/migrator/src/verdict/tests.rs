//! Every reason by itself, and what outweighs it.

use jiff::Timestamp;

use super::*;
use crate::migration::{Cause, Target};

const GROUP: &str = "traps.dev";

fn hash(version: &str) -> Hash {
    Hash::of(GROUP, version, "Trial")
}

fn definition(uid: &str, generation: i64) -> Definition {
    Definition {
        uid: uid.to_owned(),
        generation,
    }
}

fn state(persisted: &[Encoding]) -> State {
    State {
        persisted: persisted.to_vec(),
        current: Encoding::Known(hash("v2")),
        heartbeat: None,
        definition: Some(definition("u", 2)),
    }
}

fn migration(progress: Progress) -> Ended {
    Ended {
        migration: Migration {
            name: "m".to_owned(),
            uid: "m-uid".to_owned(),
            target: Target {
                hash: Some(hash("v2")),
                definition: Some(definition("u", 2)),
            },
            progress,
        },
        why: String::new(),
        refused: 0,
        first_refused: None,
    }
}

/// After a flip from v1 to v2: v1 may still be stored.
fn flipped() -> Stored {
    Stored {
        definition: definition("u", 2),
        versions: vec![("v1".to_owned(), true), ("v2".to_owned(), true)],
        storage: "v2".to_owned(),
        hash: hash("v2"),
        stored_versions: vec!["v1".to_owned(), "v2".to_owned()],
        state: Some(state(&[Encoding::Known(hash("v1")), Encoding::Known(hash("v2"))])),
        migrations: Vec::new(),
    }
}

fn by_cluster(stored: &Stored) -> Vec<Reason> {
    against(&Question {
        version: "v1",
        hash: &hash("v1"),
        cluster: Side::Answered(Some(stored)),
        rows: Side::Answered(Rows::default()),
    })
}

fn with(migrations: &[Ended]) -> Vec<Reason> {
    let listed = [Reason::StoredVersions, Reason::Persisted];
    let reasons = by_cluster(&Stored {
        migrations: migrations.to_vec(),
        ..flipped()
    });
    let rest = reasons.strip_prefix(&listed[..]);
    rest.map_or_else(Vec::new, <[Reason]>::to_vec)
}

#[test]
fn a_verified_migration_is_enough_whatever_is_listed() {
    let verified = Stored {
        migrations: vec![
            migration(Progress::Failed {
                since: Timestamp::UNIX_EPOCH,
                cause: Cause::Refused,
            }),
            migration(Progress::Succeeded),
        ],
        ..flipped()
    };
    assert_eq!(by_cluster(&verified), []);
    let unknown = Stored {
        state: Some(state(&[Encoding::Unknown])),
        ..verified
    };
    assert_eq!(by_cluster(&unknown), []);
}

#[test]
fn what_the_cluster_lists_nowhere_needs_no_migration() {
    let pruned = Stored {
        stored_versions: vec!["v2".to_owned()],
        state: Some(state(&[Encoding::Known(hash("v2"))])),
        ..flipped()
    };
    assert_eq!(by_cluster(&pruned), []);
    // Who takes the state away takes away the proof.
    for proves_nothing in [None, Some(state(&[])), Some(state(&[Encoding::Known(hash("v3"))]))] {
        let bare = Stored {
            state: proves_nothing,
            ..pruned.clone()
        };
        assert_eq!(by_cluster(&bare), [Reason::NoState, Reason::NeverMigrated]);
    }
}

#[test]
fn each_place_that_lists_the_version_is_named() {
    let only = |stored_versions: &[&str], persisted: &[Encoding]| {
        by_cluster(&Stored {
            stored_versions: stored_versions.iter().map(|version| (*version).to_owned()).collect(),
            state: Some(state(persisted)),
            ..flipped()
        })
    };
    let (v1, v2) = (Encoding::Known(hash("v1")), Encoding::Known(hash("v2")));
    let never = Reason::NeverMigrated;
    assert_eq!(
        only(&["v1", "v2"], std::slice::from_ref(&v2)),
        [Reason::StoredVersions, never.clone()]
    );
    assert_eq!(only(&["v2"], &[v1, v2]), [Reason::Persisted, never.clone()]);
    assert_eq!(only(&["v2"], &[Encoding::Unknown]), [Reason::Unknown, never]);
}

#[test]
fn a_migration_that_verified_nothing_of_this_is_named_with_why() {
    assert_eq!(with(&[]), [Reason::NeverMigrated]);
    assert_eq!(with(&[migration(Progress::Pending)]), [Reason::Pending("m".to_owned())]);
    assert_eq!(with(&[migration(Progress::Running)]), [Reason::Running("m".to_owned())]);

    let target = |hash: Option<Hash>, definition: Option<Definition>| {
        let mut ended = migration(Progress::Succeeded);
        ended.migration.target = Target { hash, definition };
        with(&[ended])
    };
    let name = || "m".to_owned();
    assert_eq!(
        target(Some(hash("v1")), Some(definition("u", 2))),
        [Reason::OtherTarget(name())]
    );
    assert_eq!(target(None, Some(definition("u", 2))), [Reason::OtherTarget(name())]);
    assert_eq!(
        target(Some(hash("v2")), Some(definition("u", 1))),
        [Reason::Redefined(name())]
    );
    assert_eq!(target(Some(hash("v2")), None), [Reason::Redefined(name())]);
    assert_eq!(
        target(Some(hash("v2")), Some(definition("other", 2))),
        [Reason::Recreated(name())]
    );
}

#[test]
fn refused_objects_are_counted_and_the_first_is_named() {
    let first = Refused {
        object: "default/a".to_owned(),
        why: "denied".to_owned(),
    };
    let failed = Ended {
        why: "three are refused".to_owned(),
        refused: 3,
        first_refused: Some(first.clone()),
        ..migration(Progress::Failed {
            since: Timestamp::UNIX_EPOCH,
            cause: Cause::Refused,
        })
    };
    let reasons = with(&[failed]);
    let expected = [
        Reason::Failed {
            name: "m".to_owned(),
            why: "three are refused".to_owned(),
        },
        Reason::ObjectsRefused {
            count: 3,
            first: Some(first),
        },
    ];
    assert_eq!(reasons, expected);
    assert_eq!(
        reasons[1].to_string(),
        "3 objects cannot be written, such as default/a: denied"
    );
}

#[test]
fn what_is_stored_or_disputed_now_stands_even_against_a_verified_migration() {
    let verified = Stored {
        migrations: vec![migration(Progress::Succeeded)],
        ..flipped()
    };
    let back = Stored {
        storage: "v1".to_owned(),
        ..verified.clone()
    };
    assert_eq!(by_cluster(&back), [Reason::IsStorage]);
    let divided = Stored {
        state: Some(State {
            current: Encoding::Unknown,
            ..state(&[Encoding::Known(hash("v2"))])
        }),
        ..verified
    };
    assert_eq!(by_cluster(&divided), [Reason::Divided]);
}

#[test]
fn a_side_that_was_not_asked_stands_against_it_unless_it_is_left_out() {
    let asked = |cluster, rows| {
        against(&Question {
            version: "v1",
            hash: &hash("v1"),
            cluster,
            rows,
        })
    };
    let rows = Rows {
        archived: 2,
        ..Rows::default()
    };
    assert_eq!(
        asked(Side::Unasked, Side::Unasked),
        [Reason::ClusterNotAsked, Reason::SqlNotAsked]
    );
    assert_eq!(asked(Side::LeftOut, Side::LeftOut), []);
    assert_eq!(asked(Side::Answered(None), Side::LeftOut), [Reason::NotInstalled]);
    assert_eq!(asked(Side::LeftOut, Side::Answered(rows)), [Reason::Rows(rows)]);
    assert_eq!(asked(Side::LeftOut, Side::Answered(Rows::default())), []);
    let said = |rows| Reason::Rows(rows).to_string();
    let live = Rows {
        live: 3,
        ..Rows::default()
    };
    assert_eq!(said(live), "SQL has rows in it: 3 live, 0 archived, 0 deleted");
    assert_eq!(
        said(rows),
        "SQL has rows in it: 0 live, 2 archived, 0 deleted (`kindex versions convert` converts the archived and \
         deleted ones)"
    );
    assert_eq!(
        said(Rows { refused: 1, ..rows }),
        "SQL has rows in it: 0 live, 2 archived, 0 deleted (1 could not be converted: `kindex versions convert \
         --dry-run` lists them)"
    );
}

fn known(versions: &[&str]) -> Known<'static> {
    Known {
        group: GROUP,
        kind: "Trial",
        api_versions: versions.iter().map(|version| format!("{GROUP}/{version}")).collect(),
    }
}

#[test]
fn a_release_takes_over_what_it_knows_all_versions_of() {
    let rows = BTreeMap::from([(
        "traps.dev/v1".to_owned(),
        Rows {
            live: 1,
            ..Rows::default()
        },
    )]);
    let gaps = |versions: &[&str], stored: &Stored| {
        gaps(&known(versions), Side::Answered(Some(stored)), Side::Answered(&rows))
    };
    assert_eq!(gaps(&["v1", "v2"], &flipped()), []);
    assert_eq!(gaps(&["v1"], &flipped()), [Gap::Version("v2".to_owned())]);
    let of_rows = Gap::Rows {
        api_version: "traps.dev/v1".to_owned(),
        rows: rows["traps.dev/v1"],
    };
    assert_eq!(gaps(&["v2"], &flipped()), [Gap::Version("v1".to_owned()), of_rows]);
}

#[test]
fn a_hash_that_a_release_does_not_know_is_named_once() {
    let odd = Hash::shown("8aSe+NMegvE=").expect("not empty");
    let with = |persisted: &[Encoding]| {
        let stored = Stored {
            state: Some(state(persisted)),
            ..flipped()
        };
        gaps(&known(&["v1", "v2"]), Side::Answered(Some(&stored)), Side::LeftOut)
    };
    let current = Encoding::Known(hash("v2"));
    assert_eq!(with(&[Encoding::Known(odd.clone()), current]), [Gap::Hash(odd)]);
    assert_eq!(with(&[Encoding::Unknown]), [Gap::Unknown]);
}

#[test]
fn what_nobody_could_see_is_no_yes() {
    let seen = |versions: &[&str], stored: Option<&Stored>| {
        gaps(
            &known(versions),
            Side::Answered(stored),
            Side::Answered(&BTreeMap::new()),
        )
    };
    assert_eq!(seen(&["v1", "v2"], None), [Gap::NotInstalled]);
    assert_eq!(seen(&[], None), [Gap::Undeclared, Gap::NotInstalled]);
    for proves_nothing in [None, Some(state(&[])), Some(state(&[Encoding::Known(hash("v1"))]))] {
        let stored = Stored {
            state: proves_nothing,
            ..flipped()
        };
        assert_eq!(seen(&["v1", "v2"], Some(&stored)), [Gap::NoState]);
    }
    let divided = Stored {
        state: Some(State {
            current: Encoding::Unknown,
            ..state(&[Encoding::Unknown])
        }),
        ..flipped()
    };
    assert_eq!(seen(&["v1", "v2"], Some(&divided)), [Gap::Divided, Gap::Unknown]);
    let none_known = gaps(&known(&[]), Side::LeftOut, Side::LeftOut);
    assert_eq!(none_known, [Gap::Undeclared]);
}

#[test]
fn nothing_is_known_of_a_side_that_was_not_asked() {
    let gaps = gaps(&known(&["v1", "v2"]), Side::Unasked, Side::Unasked);
    assert_eq!(gaps, [Gap::ClusterNotAsked, Gap::SqlNotAsked]);
}
