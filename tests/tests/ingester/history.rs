//! What a kind with a history hands to its batches beside its rows: every version that the watch
//! showed, whatever becomes of its row.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kindex_kube_client::{ClusterError, WatchEvent};
use kindex_model::object::Uid;
use kindex_query::Life;
use kindex_runtime::message::{EffectDone, Input, Output, Ticket};
use kindex_runtime::settings::Settings;
use kindex_sim::thing::{IMMUTABLE, KEPT_THING};
use kindex_store::{RowState, RowWrite};

use super::bench::{Bench, START, Thing, away, effects_of, live, refused, thing};

fn watching(settings: Settings) -> Bench {
    Bench::watching_kind(&KEPT_THING, settings)
}

/// The first write among outputs: rows that it stores and versions that it records.
#[derive(Debug)]
struct Batch {
    ticket: Ticket,
    writes: usize,
    stored: Vec<u64>,
    recorded: Vec<u64>,
}

fn batch(outputs: &[Output]) -> Option<Batch> {
    let (ticket, writes) = outputs.iter().find_map(|output| match output {
        Output::Write(ticket, writes) => Some((*ticket, writes)),
        _ => None,
    })?;
    let (mut stored, mut recorded) = (Vec::new(), Vec::new());
    for write in writes {
        match write {
            RowWrite::Store { version: object, .. } => stored.push(object.metadata.resource_version.0),
            RowWrite::Record { object, .. } => recorded.push(object.metadata.resource_version.0),
            RowWrite::SoftDelete { .. } => {}
        }
    }
    recorded.sort_unstable();
    Some(Batch {
        ticket,
        writes: writes.len(),
        stored,
        recorded,
    })
}

fn committed(bench: &mut Bench, batch: &Batch) -> Vec<Output> {
    bench.written(batch.ticket, batch.writes)
}

fn deleted(bench: &mut Bench, thing: &Thing) -> Vec<Output> {
    bench.step(Input::Watch(Ok(WatchEvent::Deleted(thing.object()))))
}

#[test]
fn versions_that_collapse_go_into_the_batch_of_the_newest_each_with_its_time() {
    let mut bench = watching(Settings::default());
    let read = bench.applied(&thing("a", 5));
    for version in 6..=8 {
        bench.elapsed += std::time::Duration::from_secs(1);
        bench.applied(&thing("a", version));
    }
    let outputs = bench.no_rows(&read);
    let batch = batch(&outputs).expect("a write");
    assert_eq!((&batch.stored[..], &batch.recorded[..]), (&[8][..], &[5, 6, 7, 8][..]));
    let times = outputs.iter().flat_map(|output| match output {
        Output::Write(_, writes) => writes.as_slice(),
        _ => &[],
    });
    let times: BTreeSet<Timestamp> = times
        .filter_map(|write| match write {
            RowWrite::Record { seen, .. } => Some(*seen),
            _ => None,
        })
        .collect();
    let wanted = (0..4).map(|second| Timestamp::from_second(START + second).expect("in range"));
    assert_eq!(times, wanted.collect());
    committed(&mut bench, &batch);
    assert_eq!(bench.controller.status().settled.0, 8);
}

#[test]
fn a_version_during_the_write_comes_with_the_next() {
    let mut bench = watching(Settings::default());
    let read = bench.applied(&thing("a", 5));
    let first = batch(&bench.no_rows(&read)).expect("a write");
    bench.applied(&thing("a", 6));
    bench.applied(&thing("a", 7));
    let next = batch(&committed(&mut bench, &first)).expect("the newer version follows");
    assert_eq!((&next.stored[..], &next.recorded[..]), (&[7][..], &[6, 7][..]));
}

#[test]
fn a_version_whose_row_needs_no_write_is_recorded_alone_and_holds_the_position_back() {
    let mut bench = watching(Settings::default());
    let read = bench.applied(&thing("a", 5));
    let alone = batch(&bench.rows(&read, vec![live("a", 9)])).expect("a write of the version alone");
    assert_eq!((&alone.stored[..], &alone.recorded[..]), (&[][..], &[5][..]));
    assert_eq!(bench.controller.status().settled.0, 4, "a crash would lose it");
    committed(&mut bench, &alone);
    assert_eq!(bench.controller.status().settled.0, 5);
}

#[test]
fn a_batch_that_failed_takes_its_versions_along_again() {
    let mut bench = watching(Settings::default());
    let read = bench.applied(&thing("a", 5));
    bench.applied(&thing("a", 6));
    for _ in 0..3 {
        let write = batch(&bench.no_rows(&read));
        let Some(write) = write else { break };
        assert_eq!(write.recorded, [5, 6]);
        bench.step(Input::Written(write.ticket, Err(away())));
        let read = bench.wait();
        let again = batch(&bench.no_rows(&read)).expect("the same again");
        assert_eq!((&again.stored[..], &again.recorded[..]), (&[6][..], &[5, 6][..]));
        committed(&mut bench, &again);
    }
    assert_eq!(bench.controller.status().settled.0, 6);
}

#[test]
fn a_version_that_is_refused_is_found_alone_and_no_row_is_blamed() {
    const POISON: u64 = 12;
    let mut bench = watching(Settings::default());
    let mut pending = bench.applied(&thing("first", 2));
    for version in 10..=18 {
        pending.extend(bench.applied(&thing("a", version)));
    }
    let (mut stored, mut recorded) = (Vec::new(), BTreeSet::new());
    let mut batches = 0;
    while let Some(output) = pending.pop() {
        pending.extend(match output {
            Output::ReadRows(ticket, _) => bench.step(Input::Rows(ticket, Ok(Vec::new()))),
            write @ Output::Write(..) => {
                batches += 1;
                let batch = batch(&[write]).expect("a write");
                if batch.recorded.contains(&POISON) {
                    bench.step(Input::Written(batch.ticket, Err(refused())))
                } else {
                    let written = committed(&mut bench, &batch);
                    stored.extend(batch.stored);
                    recorded.extend(batch.recorded);
                    written
                }
            }
            other => panic!("unexpected {other:?}"),
        });
    }
    assert_eq!(stored, [2, 18], "no row waits or is set aside");
    let kept: BTreeSet<u64> = [2]
        .into_iter()
        .chain(10..=18)
        .filter(|version| *version != POISON)
        .collect();
    assert_eq!(recorded, kept);
    assert!(batches <= 12, "found in {batches} batches");
    let status = bench.controller.status();
    assert!(
        status.last_error.is_some_and(|error| error.contains("@12")),
        "{batches}"
    );
    assert_eq!(status.settled.0, 18);
}

#[test]
fn too_many_versions_stop_the_watch_from_being_read() {
    let mut bench = watching(Settings {
        pending_max: 3,
        ..Settings::default()
    });
    let read = bench.applied(&thing("a", 5));
    bench.applied(&thing("a", 6));
    assert!(bench.controller.wants_events());
    bench.applied(&thing("a", 7));
    assert!(!bench.controller.wants_events(), "one object, three versions");
    let write = batch(&bench.no_rows(&read)).expect("a write");
    committed(&mut bench, &write);
    assert!(bench.controller.wants_events());
}

#[test]
fn the_echo_of_our_own_release_is_no_version() {
    let mut bench = watching(Settings::default());
    let leaving = Thing {
        deleted: true,
        ..thing("a", 6)
    };
    let read = bench.applied(&leaving);
    let write = batch(&bench.rows(&read, vec![live("a", 5)])).expect("the final version");
    assert_eq!(write.recorded, [6]);
    let release = committed(&mut bench, &write);
    assert_eq!(effects_of(&release).len(), 1);
    let released = Thing {
        has_finalizer: false,
        version: 7,
        ..leaving
    };
    let uid = released.object().metadata.uid.clone();
    bench.step(Input::Effect(uid, EffectDone::FinalizersSet(Ok(released.object()))));
    let echo = deleted(&mut bench, &released);
    assert!(batch(&echo).is_none(), "{echo:?}");
    assert_eq!(bench.controller.status().settled.0, 7);
}

#[test]
fn what_others_wrote_before_an_object_left_is_a_version_however_late_the_watch_tells_it() {
    let mut bench = watching(Settings::default());
    let marked = |version| Thing {
        annotations: vec![IMMUTABLE],
        ..thing("a", version)
    };
    let uid = Uid::from("a");
    let read = bench.applied(&marked(5));
    let first = batch(&bench.no_rows(&read)).expect("a write");
    committed(&mut bench, &first);
    let conflict = ClusterError::Conflict("it is at 7".to_owned());
    bench.step(Input::Effect(uid.clone(), EffectDone::Deleted(Err(conflict))));
    bench.wait();
    let answer = EffectDone::Got(Ok(Some(marked(7).object())));
    let read = bench.step(Input::Effect(uid.clone(), answer));
    let archived = RowState {
        life: Life::Archived,
        ..live("a", 5)
    };
    let last = batch(&bench.rows(&read, vec![archived])).expect("the answer is stored");
    assert_eq!(last.stored, [7]);
    committed(&mut bench, &last);
    bench.step(Input::Effect(uid, EffectDone::Deleted(Ok(None))));

    let late = batch(&bench.applied(&marked(6))).expect("a write of the version alone");
    assert_eq!((&late.stored[..], &late.recorded[..]), (&[][..], &[6][..]));
    committed(&mut bench, &late);
    assert!(batch(&bench.applied(&marked(7))).is_none(), "stored with the row");
    assert!(
        batch(&deleted(&mut bench, &marked(8))).is_none(),
        "the echo of our delete"
    );
}

#[test]
fn a_kind_without_a_history_holds_nothing() {
    let mut bench = Bench::watching(Settings::default());
    let read = bench.applied(&thing("a", 5));
    bench.applied(&thing("a", 6));
    let write = batch(&bench.no_rows(&read)).expect("a write");
    assert_eq!((&write.stored[..], &write.recorded[..]), (&[6][..], &[][..]));
}
