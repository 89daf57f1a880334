//! Events, answers and commits that cross each other: what must not be concluded from
//! something that was read, or told, too early.

use std::time::Duration;

use kindex_kube_client::{ClusterError, WatchEvent};
use kindex_model::object::{ResourceVersion, Uid};
use kindex_query::Life;
use kindex_runtime::message::{Effect, EffectDone, Input, Outcome, Output, Saved};
use kindex_runtime::settings::Settings;
use kindex_sim::thing::IMMUTABLE;
use kindex_store::{QuarantineRecord, RowState, RowWrite, Written};

use super::bench::{Bench, Thing, away, effects_of, live, refused, restoring, settled, thing, write_of};

fn deleted(bench: &mut Bench, thing: &Thing) -> Vec<Output> {
    bench.step(Input::Watch(Ok(WatchEvent::Deleted(thing.object()))))
}

fn soft_delete_of(uid: &str) -> Option<Vec<(Uid, u64)>> {
    Some(vec![(Uid::from(uid), 0)])
}

#[test]
fn what_a_watch_tells_again_is_not_stored_again() {
    let mut bench = Bench::watching(Settings::default());
    let read = bench.applied(&thing("a", 5));
    let (ticket, _) = write_of(&bench.no_rows(&read)).expect("a write");
    bench.written(ticket, 1);
    let read = deleted(&mut bench, &thing("a", 6));
    bench.rows(&read, vec![live("a", 5)]);
    let again = bench.applied(&thing("a", 5));
    assert!(again.is_empty(), "its row would be live for ever: {again:?}");
}

#[test]
fn a_row_that_was_read_before_its_object_went_is_read_again() {
    let mut bench = Bench::watching(Settings::default());
    let read = bench.applied(&thing("a", 5));
    deleted(&mut bench, &thing("a", 6));
    let again = bench.no_rows(&read);
    assert!(
        matches!(again[..], [Output::ReadRows(..)]),
        "another process may have stored it since: {again:?}"
    );
    let closed = bench.rows(&again, vec![live("a", 5)]);
    assert!(write_of(&closed).is_some());
}

#[test]
fn an_object_that_went_while_its_write_may_still_land_is_stored_as_deleted_without_a_row() {
    let mut bench = Bench::watching(Settings::default());
    let read = bench.applied(&thing("a", 5));
    let (ticket, _) = write_of(&bench.no_rows(&read)).expect("a write");
    bench.step(Input::Written(ticket, Err(away())));
    deleted(&mut bench, &thing("a", 6));
    let read = bench.wait();
    let write = bench.no_rows(&read);
    let (ticket, writes) = write_of(&write).expect("a write");
    assert_eq!(writes, [(Uid::from("a"), 6)], "with its last text");
    let unchanged = Outcome {
        written: Written::Unchanged,
        problems: Vec::new(),
        replaced: Vec::new(),
    };
    bench.step(Input::Written(ticket, Ok(vec![unchanged])));
    assert_eq!(bench.controller.status().pending, 0);
}

#[test]
fn an_object_that_was_stored_behind_the_walk_over_the_rows_is_asked_for() {
    let mut bench = Bench::watching(Settings::default());
    let read = bench.applied(&thing("late", 5));
    let expired = kindex_kube_client::ClusterError::Expired("too old".to_owned());
    bench.step(Input::Watch(Err(expired)));
    bench.page(&[], 20);
    let (ticket, _) = write_of(&bench.no_rows(&read)).expect("it was pending when the list ended");
    bench.written(ticket, 1);
    let outputs = bench.step(Input::Scanned(Ok(Vec::new())));
    assert!(
        matches!(effects_of(&outputs)[..], [Effect::Get(_)]),
        "the walk was past its row, and the list did not show it: {outputs:?}"
    );
    let read = bench.step(Input::Effect(Uid::from("late"), EffectDone::Got(Ok(None))));
    let closed = bench.rows(&read, vec![live("late", 5)]);
    assert_eq!(write_of(&closed).map(|(_, writes)| writes), soft_delete_of("late"));
}

/// A controller that watches from version 1, of whose object a record says that this version was refused.
fn with_record(version: u64) -> Bench {
    let mut bench = Bench::new(Settings::default());
    bench.step(Input::Start);
    let record = QuarantineRecord {
        uid: Uid::from("a"),
        version: ResourceVersion(version),
        reason: "too long".to_owned(),
    };
    let saved = Saved {
        checkpoint: Some(settled(1)),
        quarantined: vec![record],
    };
    bench.step(Input::Loaded(Ok(saved)));
    bench.step(Input::Probed(Ok(ResourceVersion(1))));
    bench
}

#[test]
fn the_record_of_a_newer_version_outlives_the_storing_of_an_older_one() {
    let mut bench = with_record(6);
    for (version, over) in [(5, false), (7, true)] {
        let read = bench.applied(&thing("a", version));
        let (ticket, _) = write_of(&bench.no_rows(&read)).expect("a write");
        let after = bench.written(ticket, 1);
        let released = after
            .iter()
            .any(|output| matches!(output, Output::ReleaseQuarantine(..)));
        assert_eq!(released, over, "version {version}: {after:?}");
    }
}

/// After a crash, nothing but its own event would lead to the record again.
#[test]
fn the_checkpoint_stays_before_an_object_until_its_record_is_removed() {
    let mut bench = with_record(6);
    let read = bench.applied(&thing("a", 7));
    let (ticket, _) = write_of(&bench.no_rows(&read)).expect("a write");
    bench.written(ticket, 1);
    let later = |bench: &mut Bench| {
        bench.elapsed += Duration::from_secs(30);
        bench.step(Input::Timer)
    };
    let answered = |answer| Input::QuarantineReleased(Uid::from("a"), ResourceVersion(7), answer);
    later(&mut bench);
    bench.step(answered(Err(away())));
    let again = later(&mut bench);
    assert!(
        matches!(&again[..], [Output::ReleaseQuarantine(_, ResourceVersion(7))]),
        "{again:?}"
    );
    later(&mut bench);
    assert!(!bench.checkpoints.contains(&settled(7)), "{:?}", bench.checkpoints);
    bench.step(answered(Ok(())));
    later(&mut bench);
    assert!(bench.checkpoints.contains(&settled(7)), "{:?}", bench.checkpoints);
}

/// As if the removal of a record of the time before the restoration removed that of the time after it too.
#[test]
fn an_object_is_quarantined_anew_only_once_its_former_record_is_removed() {
    let mut bench = with_record(30);
    let read = bench.applied(&thing("a", 40));
    let (ticket, _) = write_of(&bench.no_rows(&read)).expect("a write");
    let outputs = bench.written(ticket, 1);
    let [Output::ReleaseQuarantine(uid, stored)] = &outputs[..] else {
        panic!("{outputs:?}");
    };
    let answered = Input::QuarantineReleased(uid.clone(), *stored, Ok(()));
    let expired = ClusterError::Expired("too old".to_owned());
    bench.step(Input::Watch(Err(expired)));
    bench.page(&[thing("a", 20)], 20);
    assert_eq!(bench.checkpoints.last(), Some(&restoring(20)));
    bench.step(Input::Scanned(Ok(Vec::new())));
    bench.page(&[thing("a", 20)], 20);
    let outputs = bench.step(Input::PageRows(Ok(Vec::new())));
    let refuse = |bench: &mut Bench, outputs: &[Output]| {
        let (ticket, _) = write_of(outputs).unwrap_or_else(|| panic!("no write: {outputs:?}"));
        effects_of(&bench.step(Input::Written(ticket, Err(refused()))))
    };
    let effects = refuse(&mut bench, &outputs);
    assert!(effects.is_empty(), "the former record is still to go: {effects:?}");
    bench.step(answered);
    bench.elapsed += Duration::from_secs(30);
    let read = bench.step(Input::Timer);
    let outputs = bench.no_rows(&read);
    let effects = refuse(&mut bench, &outputs);
    assert!(matches!(effects[..], [Effect::Quarantine { .. }]), "{effects:?}");
}

#[test]
fn a_refusal_is_over_when_a_write_of_unknown_outcome_turns_out_to_have_been_committed() {
    let mut bench = with_record(6);
    let read = bench.applied(&thing("a", 7));
    let (ticket, _) = write_of(&bench.no_rows(&read)).expect("a write");
    bench.step(Input::Written(ticket, Err(away())));
    let read = bench.wait();
    let after = bench.rows(&read, vec![live("a", 7)]);
    assert!(
        matches!(&after[..], [Output::ReleaseQuarantine(_, ResourceVersion(7))]),
        "{after:?}"
    );
}

/// As if the row of an object that has left ended the refusal of its last text.
#[test]
fn a_refusal_is_not_over_while_the_cluster_is_asked_about_a_row() {
    let mut bench = with_record(6);
    let read = bench.applied(&thing("a", 7));
    let closed = RowState {
        life: Life::Deleted,
        ..live("a", 7)
    };
    let after = bench.rows(&read, vec![closed]);
    assert!(matches!(&after[..], [Output::Effect(_, Effect::Get(_))]), "{after:?}");
}

#[test]
fn nothing_lands_late_of_a_batch_that_was_refused() {
    let mut bench = Bench::watching(Settings::default());
    let read = bench.applied(&thing("a", 5));
    let (ticket, _) = write_of(&bench.no_rows(&read)).expect("a write");
    bench.step(Input::Written(ticket, Err(refused())));
    deleted(&mut bench, &thing("a", 6));
    let read = bench.step(Input::Effect(Uid::from("a"), EffectDone::Quarantined(Ok(()))));
    let after = bench.no_rows(&read);
    assert!(write_of(&after).is_none(), "{after:?}");
}

/// Another ingester evicts: its row was not there yet when this one asked, and must not become live
/// again while `deletionDelay` passes.
#[test]
fn a_row_that_was_read_before_its_object_was_seen_going_is_read_once_more() {
    let mut bench = Bench::watching(Settings {
        deletion_delay: Duration::from_secs(10),
        ..Settings::default()
    });
    let marked = Thing {
        annotations: vec![IMMUTABLE],
        ..thing("a", 5)
    };
    let read = bench.applied(&marked);
    let going = Thing {
        deleted: true,
        version: 6,
        ..marked
    };
    bench.applied(&going);
    let again = bench.no_rows(&read);
    assert!(matches!(again[..], [Output::ReadRows(..)]), "{again:?}");
    let archived = RowState {
        life: Life::Archived,
        ..live("a", 5)
    };
    let outputs = bench.rows(&again, vec![archived]);
    let [Output::Write(_, writes)] = &outputs[..] else {
        panic!("{outputs:?}");
    };
    let [RowWrite::Store { life, .. }] = writes[..] else {
        panic!("{writes:?}");
    };
    assert_eq!(life, Life::Archived);
}
