//! Objects that finalizers of others keep from leaving the cluster: SQL holds their last text, whoever lets go
//! when.

use std::time::Duration;

use kindex_kube_client::ClusterError;
use kindex_model::object::Uid;
use kindex_query::Life;
use kindex_runtime::message::{Effect, EffectDone, Input, Output};
use kindex_runtime::settings::Settings;
use kindex_sim::thing::{DELETING, FOREIGN_FINALIZER, IMMUTABLE};
use kindex_store::{RowState, RowWrite};

use super::bench::{Bench, Thing, effects_of, live, thing, write_of};

fn held(version: u64) -> Thing {
    Thing {
        held: true,
        deleted: true,
        ..thing("a", version)
    }
}

/// After we let it go.
fn let_go(version: u64) -> Thing {
    Thing {
        has_finalizer: false,
        ..held(version)
    }
}

fn row(version: u64, life: Life) -> RowState {
    RowState {
        life,
        ..live("a", version)
    }
}

/// The one text that is written, by version, and the row's life.
fn stored(outputs: &[Output]) -> Option<(u64, Life)> {
    outputs.iter().find_map(|output| match output {
        Output::Write(_, writes) => match &writes[..] {
            [
                RowWrite::Store {
                    version: object, life, ..
                },
            ] => Some((object.metadata.resource_version.0, *life)),
            _ => None,
        },
        _ => None,
    })
}

fn commit(bench: &mut Bench, outputs: &[Output]) -> Vec<Output> {
    let (ticket, _) = write_of(outputs).expect("a write");
    bench.written(ticket, 1)
}

/// Tells of the object, whose row is as it says, and commits what is written.
fn follow(bench: &mut Bench, thing: &Thing, row: Option<RowState>) -> (Option<(u64, Life)>, Vec<Output>) {
    let read = bench.applied(thing);
    let outputs = bench.rows(&read, row.into_iter().collect());
    match stored(&outputs) {
        Some(stored) => (Some(stored), commit(bench, &outputs)),
        None => (None, outputs),
    }
}

fn done(bench: &mut Bench, done: EffectDone) -> Vec<Output> {
    bench.step(Input::Effect(Uid::from("a"), done))
}

#[test]
fn what_others_write_before_they_let_go_is_stored_before_the_release() {
    let mut bench = Bench::watching(Settings::default());
    let (written, after) = follow(&mut bench, &held(5), Some(row(4, Life::Live)));
    assert_eq!(written, Some((5, Life::Live)));
    assert!(effects_of(&after).is_empty(), "others hold it: {after:?}");
    let status = bench.controller.status();
    assert_eq!((status.pending, status.held), (1, 1));
    assert!(status.is_caught_up() && status.oldest_arrival.is_none(), "{status:?}");

    let (written, after) = follow(&mut bench, &held(6), Some(row(5, Life::Live)));
    assert_eq!(written, Some((6, Life::Live)));
    assert!(effects_of(&after).is_empty(), "{after:?}");

    let alone = Thing { held: false, ..held(7) };
    let (written, after) = follow(&mut bench, &alone, Some(row(6, Life::Live)));
    assert_eq!(written, Some((7, Life::Deleted)), "the final version");
    assert!(
        matches!(&effects_of(&after)[..], [Effect::SetFinalizers { finalizers, .. }] if finalizers.is_empty()),
        "{after:?}"
    );
}

#[test]
fn a_marked_object_that_others_hold_has_its_last_text_in_the_life_that_the_mark_asks_for() {
    for (annotation, life) in [(DELETING, Life::Deleted), (IMMUTABLE, Life::Archived)] {
        let mut bench = Bench::watching(Settings::default());
        let marked = |thing: Thing| Thing {
            annotations: vec![annotation],
            ..thing
        };
        let there = Thing {
            deleted: false,
            ..marked(held(5))
        };
        let (written, delete) = follow(&mut bench, &there, None);
        assert_eq!(written, Some((5, life)));
        assert!(matches!(&effects_of(&delete)[..], [Effect::Delete(_)]), "{delete:?}");
        let outputs = done(&mut bench, EffectDone::Deleted(Ok(Some(marked(held(6)).object()))));
        assert_eq!(stored(&outputs), Some((6, life)), "others may keep it there");
        assert!(effects_of(&commit(&mut bench, &outputs)).is_empty());

        let (written, after) = follow(&mut bench, &marked(held(7)), Some(row(6, life)));
        assert_eq!(written, Some((7, life)));
        assert!(effects_of(&after).is_empty(), "{after:?}");
        let alone = Thing {
            held: false,
            ..marked(held(8))
        };
        let (written, after) = follow(&mut bench, &alone, Some(row(7, life)));
        assert_eq!(written, Some((8, life)));
        assert!(
            matches!(&effects_of(&after)[..], [Effect::SetFinalizers { .. }]),
            "{after:?}"
        );
    }
}

#[test]
fn who_wants_to_be_last_as_well_is_released_after_the_wait_and_followed_to_the_end() {
    let wait = Duration::from_secs(600);
    let mut bench = Bench::watching(Settings {
        finalizer_wait: wait,
        ..Settings::default()
    });
    follow(&mut bench, &held(5), Some(row(4, Life::Live)));
    let released = bench.wait();
    assert_eq!(bench.elapsed, wait);
    let effects = effects_of(&released);
    assert!(
        matches!(&effects[..], [Effect::SetFinalizers { finalizers, .. }] if finalizers == &[FOREIGN_FINALIZER]),
        "{effects:?}"
    );
    let read = done(&mut bench, EffectDone::FinalizersSet(Ok(let_go(6).object())));
    let write = bench.rows(&read, vec![row(5, Life::Live)]);
    assert_eq!(
        stored(&write),
        Some((6, Life::Live)),
        "it is there as long as others hold it"
    );
    commit(&mut bench, &write);
    assert_eq!(bench.controller.status().pending, 0);

    let (written, _) = follow(&mut bench, &let_go(7), Some(row(6, Life::Live)));
    assert_eq!(written, Some((7, Life::Live)));
    let read = bench.gone(&let_go(8));
    let write = bench.rows(&read, vec![row(7, Life::Live)]);
    assert_eq!(stored(&write), Some((8, Life::Deleted)));
}

#[test]
fn a_last_write_that_the_delete_event_overtakes_reaches_rows_that_are_not_live() {
    for life in [Life::Deleted, Life::Archived] {
        let mut bench = Bench::watching(Settings::default());
        let last = |version| Thing {
            annotations: vec![IMMUTABLE],
            ..let_go(version)
        };
        let read = bench.applied(&last(6));
        bench.gone(&last(7));
        let read = bench.rows(&read, vec![row(5, life)]);
        let write = bench.rows(&read, vec![row(5, life)]);
        assert_eq!(stored(&write), Some((7, life)), "{write:?}");
    }
}

#[test]
fn a_last_write_that_comes_before_the_answer_to_our_release_is_stored() {
    let mut bench = Bench::watching(Settings {
        finalizer_wait: Duration::ZERO,
        ..Settings::default()
    });
    let (_, released) = follow(&mut bench, &held(5), Some(row(4, Life::Deleted)));
    assert!(
        matches!(&effects_of(&released)[..], [Effect::SetFinalizers { .. }]),
        "{released:?}"
    );
    bench.applied(&let_go(6));
    bench.applied(&let_go(7));
    bench.gone(&let_go(8));
    let read = done(&mut bench, EffectDone::FinalizersSet(Ok(let_go(6).object())));
    let write = bench.rows(&read, vec![row(5, Life::Deleted)]);
    assert_eq!(stored(&write), Some((8, Life::Deleted)), "{write:?}");
}

#[test]
fn the_end_of_an_object_that_we_released_costs_no_work() {
    let mut bench = Bench::watching(Settings::default());
    let alone = Thing { held: false, ..held(5) };
    let (_, released) = follow(&mut bench, &alone, Some(row(4, Life::Live)));
    assert!(
        matches!(&effects_of(&released)[..], [Effect::SetFinalizers { .. }]),
        "{released:?}"
    );
    let bare = Thing {
        has_finalizer: false,
        ..alone.clone()
    };
    done(&mut bench, EffectDone::FinalizersSet(Ok(bare.object())));
    let gone = Thing { version: 6, ..alone };
    assert!(bench.gone(&gone).is_empty(), "the echo of our release");
    assert_eq!(bench.controller.status().pending, 0);
}

#[test]
fn a_last_write_that_the_watch_tells_after_the_cluster_said_gone_is_stored() {
    let mut bench = Bench::watching(Settings {
        finalizer_wait: Duration::ZERO,
        ..Settings::default()
    });
    follow(&mut bench, &held(5), Some(row(4, Life::Deleted)));
    let not_found = ClusterError::NotFound("name-a".to_owned());
    let read = done(&mut bench, EffectDone::FinalizersSet(Err(not_found)));
    bench.applied(&let_go(7));
    bench.gone(&let_go(8));
    let read = bench.rows(&read, vec![row(5, Life::Deleted)]);
    let write = bench.rows(&read, vec![row(5, Life::Deleted)]);
    assert_eq!(stored(&write), Some((8, Life::Deleted)), "{write:?}");
}

#[test]
fn a_last_write_that_is_pending_when_the_cluster_says_gone_is_stored() {
    let mut bench = Bench::watching(Settings {
        finalizer_wait: Duration::ZERO,
        ..Settings::default()
    });
    follow(&mut bench, &held(5), Some(row(4, Life::Deleted)));
    bench.applied(&let_go(6));
    let not_found = ClusterError::NotFound("name-a".to_owned());
    let read = done(&mut bench, EffectDone::FinalizersSet(Err(not_found)));
    let write = bench.rows(&read, vec![row(5, Life::Deleted)]);
    assert_eq!(stored(&write), Some((6, Life::Deleted)), "{write:?}");
}
