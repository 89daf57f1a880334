//! Clusters that come back from a backup: how they are recognized, and what is done before
//! they are listed.

use kindex_kube_client::{ClusterError, WatchEvent};
use kindex_model::checkpoint::Checkpoint;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::projection::content_hash;
use kindex_query::Life;
use kindex_runtime::message::{Effect, EffectDone, Input, Output, Saved};
use kindex_runtime::settings::Settings;
use kindex_sim::thing::KEPT_THING;
use kindex_store::{CheckpointOutcome, RowState};

use super::bench::{Bench, Thing, away, effects_of, live, restoring, settled, thing, write_of};
use super::gaps::listing;

fn loaded(checkpoint: Checkpoint) -> Bench {
    let mut bench = Bench::new(Settings::default());
    bench.step(Input::Start);
    let saved = Saved {
        checkpoint: Some(checkpoint),
        quarantined: Vec::new(),
    };
    assert!(matches!(bench.step(Input::Loaded(Ok(saved)))[..], [Output::Probe]));
    bench
}

#[test]
fn a_cluster_older_than_sql_is_marked_and_rows_beyond_it_lose_their_version() {
    let mut bench = loaded(settled(70));
    let outputs = bench.step(Input::Probed(Ok(ResourceVersion(50))));
    assert_eq!(bench.checkpoints, [restoring(50)], "marked, for a crash in between");
    assert!(matches!(outputs[..], [Output::Scan { after: None, .. }]), "{outputs:?}");
    let outputs = bench.step(Input::Scanned(Ok(vec![live("a", 50), live("b", 51)])));
    let [Output::Rewind(uids)] = &outputs[..] else {
        panic!("{outputs:?}");
    };
    assert_eq!(uids, &[Uid::from("b")]);
    let outputs = bench.step(Input::Rewound(Ok(())));
    assert!(matches!(outputs[..], [Output::List { .. }]), "{outputs:?}");
}

#[test]
fn a_row_newer_than_its_object_in_a_restored_cluster_is_asked_for_and_the_cluster_wins() {
    let mut bench = loaded(settled(70));
    bench.step(Input::Probed(Ok(ResourceVersion(50))));
    bench.step(Input::Scanned(Ok(Vec::new())));
    bench.page(&[thing("a", 40)], 50);
    let outputs = bench.step(Input::PageRows(Ok(vec![live("a", 45)])));
    assert!(matches!(effects_of(&outputs)[..], [Effect::Get(_)]), "{outputs:?}");
    let answer = EffectDone::Got(Ok(Some(thing("a", 40).object())));
    let read = bench.step(Input::Effect(Uid::from("a"), answer));
    let outputs = bench.rows(&read, vec![live("a", 45)]);
    assert!(matches!(effects_of(&outputs)[..], [Effect::Rewind]), "{outputs:?}");
}

#[test]
fn a_mark_found_at_the_start_says_when_time_split() {
    let mut bench = loaded(restoring(50));
    bench.step(Input::Probed(Ok(ResourceVersion(80))));
    assert_eq!(bench.checkpoints, [restoring(50)], "the cluster has gone on since");
    let outputs = bench.step(Input::Scanned(Ok(vec![live("a", 60)])));
    assert!(matches!(outputs[..], [Output::Rewind(_)]), "{outputs:?}");
}

fn refused(mark: u64) -> Option<CheckpointOutcome> {
    Some(CheckpointOutcome::Refused(restoring(mark)))
}

/// It began without a position and has never seen the cluster as it was before.
#[test]
fn an_ingester_that_is_refused_to_save_over_a_mark_marks_by_itself_and_corrects_rows() {
    let mut bench = listing(Settings::default());
    bench.page(&[], 60);
    bench.step(Input::Scanned(Ok(Vec::new())));
    bench.saving = refused(50);
    let outputs = bench.step(Input::Probed(Ok(ResourceVersion(60))));
    assert!(matches!(outputs[..], [Output::Watch(_), Output::Probe]), "{outputs:?}");
    assert_eq!(
        (&bench.checkpoints[..], &bench.known_marks[..]),
        (&[settled(60)][..], &[None][..])
    );
    let outputs = bench.step(Input::Probed(Ok(ResourceVersion(61))));
    assert_eq!(
        bench.checkpoints,
        [settled(60), restoring(49)],
        "the other one learns that there are two"
    );
    assert_eq!(bench.known_marks[1], Some(ResourceVersion(50)));
    assert!(matches!(outputs[..], [Output::Scan { .. }]), "{outputs:?}");
    let outputs = bench.step(Input::Scanned(Ok(vec![live("a", 49), live("b", 70)])));
    assert!(
        matches!(&outputs[..], [Output::Rewind(uids)] if uids == &[Uid::from("b")]),
        "{outputs:?}"
    );
    let outputs = bench.step(Input::Rewound(Ok(())));
    assert!(matches!(outputs[..], [Output::List { .. }]), "{outputs:?}");
}

#[test]
fn of_two_ingesters_that_find_one_restoration_the_second_marks_below_the_first() {
    let mut bench = loaded(settled(70));
    bench.saving = refused(50);
    let outputs = bench.step(Input::Probed(Ok(ResourceVersion(50))));
    assert_eq!(bench.checkpoints, [restoring(50), restoring(49)]);
    assert_eq!(bench.known_marks, [None, Some(ResourceVersion(50))]);
    assert!(matches!(outputs[..], [Output::Scan { .. }]), "{outputs:?}");
}

#[test]
fn an_ingester_that_corrects_rows_goes_by_the_mark_of_another_one_and_makes_none() {
    let mut bench = loaded(settled(70));
    bench.step(Input::Probed(Ok(ResourceVersion(50))));
    bench.step(Input::Scanned(Ok(Vec::new())));
    bench.page(&[], 60);
    bench.step(Input::Scanned(Ok(Vec::new())));
    bench.saving = refused(49);
    bench.step(Input::Probed(Ok(ResourceVersion(60))));
    bench.step(Input::Probed(Ok(ResourceVersion(60))));
    assert_eq!(bench.checkpoints, [restoring(50), settled(60), restoring(49)]);
    assert_eq!(
        bench.known_marks,
        [None, Some(ResourceVersion(50)), Some(ResourceVersion(49))]
    );
    let outputs = bench.step(Input::Scanned(Ok(vec![live("a", 50)])));
    assert!(matches!(outputs[..], [Output::Rewind(_)]), "{outputs:?}");
}

#[test]
fn an_ingester_that_stops_leaves_a_mark_alone_that_it_did_not_know() {
    let mut bench = Bench::watching(Settings::default());
    for version in [9, 10] {
        bench.step(Input::Watch(Ok(WatchEvent::Bookmark(ResourceVersion(version)))));
    }
    bench.saving = refused(50);
    bench.step(Input::Stop);
    assert_eq!(bench.checkpoints, [9, 10].map(settled), "nothing follows the refusal");
    assert!(bench.controller.is_drained());
}

#[test]
fn no_watch_is_opened_from_a_version_that_the_cluster_may_not_have() {
    let mut bench = Bench::watching(Settings::default());
    bench.step(Input::Watch(Ok(WatchEvent::Bookmark(ResourceVersion(9)))));
    let outputs = bench.step(Input::WatchEnded);
    assert!(matches!(outputs[..], [Output::Probe]), "{outputs:?}");
    bench.step(Input::Probed(Ok(ResourceVersion(8))));
    assert_eq!(bench.checkpoints.last(), Some(&restoring(8)), "it was restored");
}

#[test]
fn a_list_older_than_any_received_version_is_of_a_restored_cluster() {
    let mut bench = Bench::watching(Settings::default());
    bench.step(Input::Watch(Ok(WatchEvent::Bookmark(ResourceVersion(9)))));
    let expired = ClusterError::Expired("too old".to_owned());
    bench.step(Input::Watch(Err(expired)));
    bench.page(&[thing("a", 5)], 8);
    assert_eq!(bench.checkpoints.last(), Some(&restoring(8)));
}

#[test]
fn an_answer_that_came_while_the_list_was_under_way_makes_the_list_no_older() {
    let mut bench = listing(Settings::default());
    bench.page(&[thing("a", 5)], 20);
    bench.step(Input::PageRows(Ok(vec![live("a", 5)])));
    assert!(bench.checkpoints.is_empty(), "no restoration: {:?}", bench.checkpoints);
}

/// Watches a cluster that told version 20, and has sent the release of an object at version 5.
fn releasing() -> Bench {
    let mut bench = Bench::watching(Settings::default());
    let leaving = Thing {
        deleted: true,
        ..thing("a", 5)
    };
    let read = bench.applied(&leaving);
    bench.step(Input::Watch(Ok(WatchEvent::Bookmark(ResourceVersion(20)))));
    let (ticket, _) = write_of(&bench.no_rows(&read)).expect("the final version");
    let outputs = bench.written(ticket, 1);
    assert!(
        matches!(effects_of(&outputs)[..], [Effect::SetFinalizers { .. }]),
        "{outputs:?}"
    );
    bench
}

fn released(bench: &mut Bench, version: u64) -> Vec<Output> {
    let left = Thing {
        has_finalizer: false,
        deleted: true,
        ..thing("a", version)
    };
    let done = EffectDone::FinalizersSet(Ok(left.object()));
    bench.step(Input::Effect(Uid::from("a"), done))
}

#[test]
fn a_write_that_makes_an_old_version_shows_a_restoration_that_nothing_else_shows() {
    let mut bench = releasing();
    let outputs = released(&mut bench, 8);
    assert!(matches!(outputs[..], [Output::Probe]), "{outputs:?}");
    bench.step(Input::Probed(Ok(ResourceVersion(30))));
    let before_the_write = restoring(7);
    assert_eq!(bench.checkpoints.last(), Some(&before_the_write));
}

#[test]
fn a_write_is_not_compared_with_versions_received_after_it_was_sent() {
    let mut bench = releasing();
    bench.step(Input::Watch(Ok(WatchEvent::Bookmark(ResourceVersion(30)))));
    let outputs = released(&mut bench, 21);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Probe)));
    let mut bench = releasing();
    let outputs = released(&mut bench, 5);
    assert!(
        !outputs.iter().any(|output| matches!(output, Output::Probe)),
        "a write that changed nothing made no version"
    );
}

/// Another text of a version.
fn contradiction(thing: &Thing) -> Thing {
    Thing {
        has_finalizer: !thing.has_finalizer,
        ..thing.clone()
    }
}

/// A live row that holds it.
fn contradicting(uid: &str, version: u64) -> RowState {
    let other = contradiction(&thing(uid, version));
    RowState {
        hash: Some(content_hash(&other.object())),
        ..live(uid, version)
    }
}

#[test]
fn a_list_stores_what_a_row_contradicts_under_the_same_version() {
    let mut bench = listing(Settings::default());
    bench.page(&[thing("same", 5), thing("other", 5)], 20);
    let outputs = bench.step(Input::PageRows(Ok(vec![live("same", 5), contradicting("other", 5)])));
    let (ticket, writes) = write_of(&outputs).expect("a write");
    assert_eq!(writes, [(Uid::from("other"), 5)]);
    // The database was away: the row is read once more, and still another one.
    bench.step(Input::Written(ticket, Err(away())));
    let read = bench.wait();
    let outputs = bench.rows(&read, vec![contradicting("other", 5)]);
    assert!(write_of(&outputs).is_some(), "{outputs:?}");
}

#[test]
fn a_closed_row_that_contradicts_a_list_is_asked_for() {
    let mut bench = listing(Settings::default());
    bench.page(&[thing("a", 5)], 20);
    let closed = RowState {
        life: Life::Deleted,
        ..contradicting("a", 5)
    };
    let outputs = bench.step(Input::PageRows(Ok(vec![closed])));
    assert!(matches!(effects_of(&outputs)[..], [Effect::Get(_)]), "{outputs:?}");
}

#[test]
fn an_event_that_a_row_contradicts_under_the_same_version_is_asked_for_and_the_cluster_wins() {
    for (answer, stored) in [(thing("a", 5), true), (contradiction(&thing("a", 5)), false)] {
        let mut bench = Bench::watching(Settings::default());
        let read = bench.applied(&thing("a", 5));
        let outputs = bench.rows(&read, vec![contradicting("a", 5)]);
        assert!(matches!(effects_of(&outputs)[..], [Effect::Get(_)]), "{outputs:?}");
        let answer = EffectDone::Got(Ok(Some(answer.object())));
        let read = bench.step(Input::Effect(Uid::from("a"), answer));
        let outputs = bench.rows(&read, vec![contradicting("a", 5)]);
        assert_eq!(write_of(&outputs).is_some(), stored, "{outputs:?}");
    }
}

#[test]
fn a_row_that_is_newer_than_its_object_and_older_than_the_list_is_of_a_time_that_was_lost() {
    let mut bench = listing(Settings::default());
    bench.page(&[thing("lost", 5), thing("later", 5)], 20);
    let outputs = bench.step(Input::PageRows(Ok(vec![live("lost", 7), live("later", 21)])));
    let [Effect::Get(name)] = &effects_of(&outputs)[..] else {
        panic!("somebody may have seen more than the list: {outputs:?}");
    };
    assert_eq!(name.name, "name-lost");
    let answer = EffectDone::Got(Ok(Some(thing("lost", 5).object())));
    let read = bench.step(Input::Effect(Uid::from("lost"), answer));
    let outputs = bench.rows(&read, vec![live("lost", 7)]);
    assert!(matches!(effects_of(&outputs)[..], [Effect::Rewind]), "{outputs:?}");
}

#[test]
fn a_history_puts_aside_what_a_restored_cluster_has_lost_before_anything_is_listed() {
    let mut bench = Bench::watching_kind(&KEPT_THING, Settings::default());
    bench.step(Input::Watch(Ok(WatchEvent::Bookmark(ResourceVersion(9)))));
    bench.step(Input::WatchEnded);
    let outputs = bench.step(Input::Probed(Ok(ResourceVersion(8))));
    assert!(
        matches!(outputs[..], [Output::SetHistoryAside(ResourceVersion(8))]),
        "{outputs:?}"
    );
    bench.step(Input::Rewound(Err(away())));
    let again = bench.wait();
    assert!(
        matches!(again[..], [Output::SetHistoryAside(ResourceVersion(8))]),
        "{again:?}"
    );
    let outputs = bench.step(Input::Rewound(Ok(())));
    assert!(matches!(outputs[..], [Output::Scan { after: None, .. }]), "{outputs:?}");
}
