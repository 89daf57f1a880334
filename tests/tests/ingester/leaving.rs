//! How objects leave the cluster: what is done in which order, and what is not done.

use std::time::Duration;

use kindex_kube_client::{ClusterCause, ClusterError};
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::projection::content_hash;
use kindex_query::Life;
use kindex_runtime::message::{Effect, EffectDone, Input, Output};
use kindex_runtime::settings::Settings;
use kindex_sim::thing::{DELETING, FINALIZER, IMMUTABLE};
use kindex_store::{RowState, RowWrite};

use super::bench::{Bench, Thing, away, effects_of, live, settled, thing, write_of};

pub(super) fn leaving(annotation: &'static str) -> Thing {
    Thing {
        annotations: vec![annotation],
        ..thing("a", 5)
    }
}

/// Answers the effect on the object.
pub(super) fn done(bench: &mut Bench, done: EffectDone) -> Vec<Output> {
    bench.step(Input::Effect(Uid::from("a"), done))
}

/// Stores the object and gives what follows the commit.
fn commit(bench: &mut Bench, thing: &Thing) -> Vec<Output> {
    let read = bench.applied(thing);
    let write = bench.no_rows(&read);
    assert!(effects_of(&write).is_empty(), "an effect before the commit: {write:?}");
    let (ticket, _) = write_of(&write).expect("a write first");
    bench.written(ticket, 1)
}

#[test]
fn the_finalizer_stays_while_the_database_is_away() {
    let mut bench = Bench::watching(Settings::default());
    let deleted = Thing {
        deleted: true,
        ..thing("a", 5)
    };
    let mut read = bench.applied(&deleted);
    for _ in 0..5 {
        let (ticket, _) = write_of(&bench.no_rows(&read)).expect("a write");
        let after = bench.step(Input::Written(ticket, Err(away())));
        assert!(effects_of(&after).is_empty());
        read = bench.wait();
        assert!(effects_of(&read).is_empty());
    }
    let (ticket, _) = write_of(&bench.no_rows(&read)).expect("a write");
    let released = effects_of(&bench.written(ticket, 1));
    assert!(matches!(&released[..], [Effect::SetFinalizers { finalizers, .. }] if finalizers.is_empty()));
}

#[test]
fn a_marked_object_is_stored_then_deleted_on_conditions_then_released() {
    for annotation in [DELETING, IMMUTABLE] {
        let mut bench = Bench::watching(Settings::default());
        let marked = leaving(annotation);
        let delete = effects_of(&commit(&mut bench, &marked));
        let [Effect::Delete(target)] = &delete[..] else {
            panic!("{delete:?}");
        };
        assert_eq!((&*target.uid.0, target.resource_version.0), ("a", 5));
        let terminating = Thing {
            version: 6,
            deleted: true,
            ..marked
        };
        let release = done(&mut bench, EffectDone::Deleted(Ok(Some(terminating.object()))));
        assert!(
            write_of(&release).is_none(),
            "our own delete brings nothing new to store"
        );
        let release = effects_of(&release);
        let [Effect::SetFinalizers { target, finalizers }] = &release[..] else {
            panic!("{release:?}");
        };
        assert_eq!((target.resource_version.0, finalizers.len()), (6, 0));
        let gone = Thing {
            version: 7,
            has_finalizer: false,
            ..terminating
        };
        done(&mut bench, EffectDone::FinalizersSet(Ok(gone.object())));
        assert_eq!(bench.controller.status().pending, 0);
        assert_eq!(bench.metrics.evictions.get(), u64::from(annotation == IMMUTABLE));
    }
}

#[test]
fn a_write_in_between_makes_the_delete_fail_and_is_stored_before_the_next() {
    let mut bench = Bench::watching(Settings::default());
    commit(&mut bench, &leaving(IMMUTABLE));
    let conflict = ClusterError::Conflict("it is at 6".to_owned());
    assert!(done(&mut bench, EffectDone::Deleted(Err(conflict))).is_empty());
    let asked = bench.wait();
    assert!(matches!(effects_of(&asked)[..], [Effect::Get(_)]), "{asked:?}");
    let newer = Thing {
        version: 6,
        ..leaving(IMMUTABLE)
    };
    let read = done(&mut bench, EffectDone::Got(Ok(Some(newer.object()))));
    let write = bench.no_rows(&read);
    let (_, writes) = write_of(&write).expect("the write in between is stored");
    assert_eq!(writes, [(Uid::from("a"), 6)]);
}

/// The deletion that a refused delete of ours met: what the row says in the end.
fn life_after_a_refused_delete(row: Option<RowState>) -> Life {
    let mut bench = Bench::watching(Settings::default());
    let marked = leaving(IMMUTABLE);
    let read = bench.applied(&marked);
    let mut delete = bench.rows(&read, row.clone().into_iter().collect());
    if let Some((ticket, _)) = write_of(&delete) {
        delete = bench.written(ticket, 1);
    }
    assert!(matches!(effects_of(&delete)[..], [Effect::Delete(_)]), "{delete:?}");
    let conflict = ClusterError::Conflict("it is at 6".to_owned());
    done(&mut bench, EffectDone::Deleted(Err(conflict)));
    bench.wait();
    let terminating = Thing {
        version: 6,
        deleted: true,
        ..marked
    };
    let read = done(&mut bench, EffectDone::Got(Ok(Some(terminating.object()))));
    let archived = RowState {
        life: Life::Archived,
        ..live("a", 5)
    };
    let outputs = bench.rows(&read, vec![row.unwrap_or(archived)]);
    let life = outputs.iter().find_map(|output| match output {
        Output::Write(_, writes) => match writes[..] {
            [RowWrite::Store { life, .. }] => Some(life),
            _ => None,
        },
        _ => None,
    });
    life.expect("the final version is stored")
}

#[test]
fn an_eviction_that_another_ingester_or_an_earlier_life_began_is_not_taken_for_somebodys_deletion() {
    let archived = RowState {
        life: Life::Archived,
        hash: Some(content_hash(&leaving(IMMUTABLE).object())),
        ..live("a", 5)
    };
    assert_eq!(
        life_after_a_refused_delete(Some(archived)),
        Life::Archived,
        "an earlier life"
    );
    assert_eq!(
        life_after_a_refused_delete(None),
        Life::Archived,
        "another ingester, which found our row and was faster"
    );
}

#[test]
fn an_effect_of_unknown_outcome_is_asked_for_and_not_repeated() {
    let mut bench = Bench::watching(Settings::default());
    commit(&mut bench, &leaving(DELETING));
    let timeout = ClusterError::Retryable {
        cause: ClusterCause::Timeout,
        retry_after: Some(Duration::from_secs(7)),
        message: "no answer".to_owned(),
    };
    assert!(done(&mut bench, EffectDone::Deleted(Err(timeout))).is_empty());
    let asked = bench.wait();
    assert!(
        bench.elapsed >= Duration::from_secs(7),
        "as long as the server asked for"
    );
    assert!(matches!(effects_of(&asked)[..], [Effect::Get(_)]), "{asked:?}");
}

fn unserved() -> ClusterError {
    ClusterError::Unserved {
        in_other_version: false,
        message: "the cluster serves no things.sim.kindex".to_owned(),
    }
}

/// As if an object were gone because one of several API servers does not know its CRD yet.
#[test]
fn an_object_whose_kind_is_not_served_is_asked_for_until_the_cluster_says_what_has_become_of_it() {
    let mut bench = Bench::watching(Settings::default());
    commit(&mut bench, &leaving(DELETING));
    assert!(done(&mut bench, EffectDone::Deleted(Err(unserved()))).is_empty());
    let asked = bench.wait();
    assert!(matches!(effects_of(&asked)[..], [Effect::Get(_)]), "{asked:?}");
    assert!(done(&mut bench, EffectDone::Got(Err(unserved()))).is_empty());
    let again = bench.wait();
    assert!(matches!(effects_of(&again)[..], [Effect::Get(_)]), "{again:?}");
    assert_eq!(bench.controller.status().pending, 1);
}

/// As if an object of which nobody can say what has become of it, until its CRD is there again, were late for ever.
#[test]
fn an_object_waits_for_its_crd_without_being_late() {
    let mut bench = Bench::watching(Settings::default());
    commit(&mut bench, &leaving(DELETING));
    done(&mut bench, EffectDone::Deleted(Err(unserved())));
    let doubted = bench.controller.status();
    assert!(
        !doubted.is_caught_up() && doubted.oldest_arrival.is_some(),
        "the kind is watched: {doubted:?}"
    );
    let said = doubted.last_error.expect("it is said once");
    assert_eq!(said, "bench/name-a: the cluster serves no things.sim.kindex");
    bench.step(Input::Watch(Err(unserved())));
    let waits = bench.controller.status();
    assert!(waits.is_caught_up() && waits.oldest_arrival.is_none(), "{waits:?}");
    assert_eq!((waits.pending, waits.without_crd), (1, 1));
    while !bench.wait().iter().any(|output| matches!(output, Output::Probe)) {}
    bench.step(Input::Probed(Ok(ResourceVersion(5))));
    let served = bench.controller.status();
    assert!(
        !served.is_caught_up() && served.oldest_arrival.is_some(),
        "it is asked for: {served:?}"
    );
}

#[test]
fn the_deletion_delay_keeps_the_object_and_its_live_row() {
    let delay = Duration::from_secs(10);
    let mut bench = Bench::watching(Settings {
        deletion_delay: delay,
        ..Settings::default()
    });
    let after = commit(&mut bench, &leaving(DELETING));
    assert!(effects_of(&after).is_empty(), "{after:?}");
    let again = bench.wait();
    assert_eq!(bench.elapsed, delay);
    assert!(
        write_of(&again).is_some(),
        "stored as deleted when the time has come: {again:?}"
    );
}

#[test]
fn only_where_asked_does_an_object_get_our_finalizer() {
    for adopt in [false, true] {
        let mut bench = Bench::watching(Settings {
            adopt_finalizers: adopt,
            ..Settings::default()
        });
        let bare = Thing {
            has_finalizer: false,
            ..thing("a", 5)
        };
        let effects = effects_of(&commit(&mut bench, &bare));
        match &effects[..] {
            [] => assert!(!adopt),
            [Effect::SetFinalizers { finalizers, .. }] => assert_eq!(finalizers, &[FINALIZER]),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn stopping_begins_nothing_new_and_waits_for_what_is_under_way() {
    let mut bench = Bench::watching(Settings::default());
    let read = bench.applied(&thing("a", 5));
    bench.applied(&thing("b", 6));
    bench.step(Input::Stop);
    assert!(!bench.controller.is_drained());
    let (ticket, _) = write_of(&bench.no_rows(&read)).expect("what was begun is ended");
    assert!(bench.written(ticket, 1).is_empty());
    let last = bench.checkpoints.last();
    assert_eq!(last, Some(&settled(5)), "up to what is settled, and no further");
    assert!(bench.controller.is_drained());
}
