//! Group commit, retries and quarantine.

use std::time::Duration;

use kindex_model::kind::Problem;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_runtime::message::{Effect, EffectDone, Input, Outcome, Output};
use kindex_runtime::settings::Settings;
use kindex_store::Written;

use super::bench::{Bench, away, effects_of, refused, thing, write_of};

#[test]
fn a_lone_object_is_not_delayed() {
    let mut bench = Bench::watching(Settings::default());
    let read = bench.applied(&thing("a", 5));
    let write = bench.no_rows(&read);
    assert!(write_of(&write).is_some(), "written without a pause: {write:?}");
}

#[test]
fn objects_that_arrive_during_a_write_share_the_next_batch() {
    let mut bench = Bench::watching(Settings::default());
    let read = bench.applied(&thing("a", 5));
    let write = bench.no_rows(&read);
    for (uid, version) in [("b", 6), ("c", 7), ("d", 8)] {
        assert!(bench.applied(&thing(uid, version)).is_empty());
    }
    let (ticket, _) = write_of(&write).expect("a write");
    let read = bench.written(ticket, 1);
    let (_, writes) = write_of(&bench.no_rows(&read)).expect("one write for the rest");
    let uids: Vec<&str> = writes.iter().map(|(uid, _)| &*uid.0).collect();
    assert_eq!(uids, ["b", "c", "d"], "in order of arrival");
}

#[test]
fn events_of_one_uid_collapse_into_the_newest() {
    let mut bench = Bench::watching(Settings::default());
    let read = bench.applied(&thing("a", 5));
    for version in 6..=9 {
        bench.applied(&thing("a", version));
    }
    let (_, writes) = write_of(&bench.no_rows(&read)).expect("a write");
    assert_eq!(writes, [(Uid::from("a"), 9)]);
    assert_eq!(bench.metrics.collapsed.get(), 4);
}

#[test]
fn concurrent_reconciles_is_the_number_of_parallel_batches() {
    for workers in [1, 3] {
        let settings = Settings {
            concurrent_reconciles: workers,
            batch_rows_max: 1,
            ..Settings::default()
        };
        let mut bench = Bench::watching(settings);
        let reads = (0..5)
            .flat_map(|n| bench.applied(&thing(&format!("u{n}"), 5 + n)))
            .count();
        assert_eq!(reads, workers);
    }
}

#[test]
fn an_object_lingers_for_company_only_beside_a_write() {
    let settings = Settings {
        concurrent_reconciles: 2,
        ..Settings::default()
    };
    let linger = settings.linger;
    let mut bench = Bench::watching(settings);
    bench.applied(&thing("a", 5));
    assert!(
        bench.applied(&thing("b", 6)).is_empty(),
        "a free writer waits for company"
    );
    assert_eq!(bench.controller.deadline().map(|at| at <= linger), Some(true));
    assert!(matches!(bench.wait()[..], [Output::ReadRows(..)]), "but not for long");
}

#[test]
fn an_away_database_gets_the_whole_batch_again_with_pauses_up_to_the_requeue_period() {
    let period = Duration::from_secs(2);
    let mut bench = Bench::watching(Settings {
        requeue_period: period,
        ..Settings::default()
    });
    let mut read = bench.applied(&thing("a", 5));
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        let write = bench.no_rows(&read);
        let (ticket, _) = write_of(&write).expect("the same write again");
        let before = bench.elapsed;
        assert!(bench.step(Input::Written(ticket, Err(away()))).is_empty());
        read = bench.wait();
        longest = longest.max(bench.elapsed - before);
    }
    assert!(longest > period / 2 && longest <= period, "{longest:?}");
    assert_eq!(bench.metrics.retries("connection"), 20);
    assert!(
        bench
            .controller
            .status()
            .not_ready()
            .is_some_and(|reason| reason.contains("away"))
    );
}

#[test]
fn a_poison_object_is_found_by_halving_and_the_others_are_stored() {
    let poison = Uid::from("u05");
    let mut bench = Bench::watching(Settings::default());
    let mut pending = bench.applied(&thing("first", 2));
    for n in 0..10 {
        pending.extend(bench.applied(&thing(&format!("u{n:02}"), 10 + n)));
    }
    let mut stored = Vec::new();
    let mut quarantined = Vec::new();
    let mut batches = 0;
    while let Some(output) = pending.pop() {
        pending.extend(match output {
            Output::ReadRows(ticket, _) => bench.step(Input::Rows(ticket, Ok(Vec::new()))),
            Output::Write(ticket, writes) => {
                batches += 1;
                let uids: Vec<Uid> = writes.iter().map(|write| write.uid().clone()).collect();
                if uids.contains(&poison) {
                    bench.step(Input::Written(ticket, Err(refused())))
                } else {
                    let written = bench.written(ticket, uids.len());
                    stored.extend(uids);
                    written
                }
            }
            Output::Effect(uid, Effect::Quarantine { reason, .. }) => {
                quarantined.push((uid.clone(), reason));
                bench.step(Input::Effect(uid, EffectDone::Quarantined(Ok(()))))
            }
            other => panic!("unexpected {other:?}"),
        });
    }
    assert_eq!(quarantined, [(poison.clone(), "too long".to_owned())]);
    assert_eq!(stored.len(), 10, "all the others");
    assert!(
        stored.is_sorted_by_key(|uid| uid.0.trim_start_matches("first").to_owned()),
        "in order: {stored:?}"
    );
    assert!(batches <= 10, "found in {batches} batches");
    assert_eq!(bench.controller.status().pending, 0, "nobody waits for it");

    let read = bench.applied(&thing("u05", 99));
    let (ticket, _) = write_of(&bench.no_rows(&read)).expect("tried again when it changes");
    let released = bench.written(ticket, 1);
    assert!(matches!(&released[..], [Output::ReleaseQuarantine(uid, ResourceVersion(99))] if *uid == poison));
}

#[test]
fn an_object_that_does_not_fit_its_projection_is_stored_once_with_one_warning() {
    let mut bench = Bench::watching(Settings::default());
    let mut notices = 0;
    for version in [5, 6] {
        let read = bench.applied(&thing("a", version));
        let (ticket, _) = write_of(&bench.no_rows(&read)).expect("a write");
        let problem = Problem {
            path: "spec.n".to_owned(),
            message: "no number".to_owned(),
        };
        let outcome = Outcome {
            written: Written::Updated,
            problems: vec![problem],
            replaced: Vec::new(),
        };
        let after = bench.step(Input::Written(ticket, Ok(vec![outcome])));
        notices += after
            .iter()
            .filter(|output| matches!(output, Output::Notify(notice) if notice.warning))
            .count();
        assert_eq!(bench.controller.status().pending, 0, "never a retry");
    }
    assert_eq!(notices, 1, "the same problem is told once");
    assert_eq!(bench.metrics.problems.get(), 2);
}

#[test]
fn too_much_pending_stops_the_watch_from_being_read() {
    let mut bench = Bench::watching(Settings {
        pending_max: 3,
        ..Settings::default()
    });
    let read = bench.applied(&thing("u0", 5));
    for n in 1..3 {
        assert!(bench.controller.wants_events());
        bench.applied(&thing(&format!("u{n}"), 5 + n));
    }
    assert!(!bench.controller.wants_events());
    let (ticket, _) = write_of(&bench.no_rows(&read)).expect("a write");
    bench.written(ticket, 1);
    assert!(bench.controller.wants_events(), "and lets it be read again");
}

#[test]
fn the_version_cache_spares_the_read_of_what_is_known() {
    for cached in [false, true] {
        let mut bench = Bench::watching(Settings {
            version_cache: cached,
            ..Settings::default()
        });
        let read = bench.applied(&thing("a", 5));
        let (ticket, _) = write_of(&bench.no_rows(&read)).expect("a write");
        bench.written(ticket, 1);
        let newer = bench.applied(&thing("a", 6));
        assert_eq!(write_of(&newer).is_some(), cached, "written without a read: {newer:?}");
    }
}

#[test]
fn a_newer_event_during_the_write_is_decided_anew() {
    let mut bench = Bench::watching(Settings::default());
    let read = bench.applied(&thing("a", 5));
    let (ticket, _) = write_of(&bench.no_rows(&read)).expect("a write");
    bench.applied(&thing("a", 6));
    let next = bench.written(ticket, 1);
    let (_, writes) = write_of(&next).expect("the row is known; the newer version follows at once");
    assert_eq!(writes, [(Uid::from("a"), 6)]);
    assert!(effects_of(&next).is_empty());
}
