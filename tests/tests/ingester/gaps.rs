//! Starts, gaps, restorations, and lists that are not to be believed.

use std::time::Duration;

use kindex_kube_client::{ClusterError, ObjectName, Page, Unreadable, WatchEvent};
use kindex_model::checkpoint::Checkpoint;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_query::Life;
use kindex_runtime::message::{Effect, EffectDone, Input, Output, Saved};
use kindex_runtime::settings::{OrphanLimits, Settings};
use kindex_store::RowState;

use super::bench::{Bench, effects_of, live, settled, thing, write_of};

/// A first start up to the point where the list is asked for.
pub fn listing(settings: Settings) -> Bench {
    let mut bench = Bench::new(settings);
    bench.step(Input::Start);
    let outputs = bench.step(Input::Loaded(Ok(Saved::default())));
    assert!(matches!(outputs[..], [Output::List { .. }]), "{outputs:?}");
    bench
}

#[test]
fn a_list_writes_only_what_differs() {
    let mut bench = listing(Settings::default());
    bench.page(&[thing("same", 3), thing("newer", 9), thing("new", 4)], 20);
    let outputs = bench.step(Input::PageRows(Ok(vec![live("same", 3), live("newer", 5)])));
    let (_, writes) = write_of(&outputs).expect("a write");
    let uids: Vec<&str> = writes.iter().map(|(uid, _)| &*uid.0).collect();
    assert_eq!(uids, ["newer", "new"]);
}

#[test]
fn a_live_row_that_the_list_lacks_is_asked_for_and_closed() {
    let mut bench = listing(Settings::default());
    bench.page(&[], 20);
    let asked = bench.step(Input::Scanned(Ok(vec![
        live("gone", 3),
        live("hidden", 3),
        live("later", 21),
    ])));
    let names: Vec<String> = effects_of(&asked)
        .iter()
        .map(|effect| match effect {
            Effect::Get(name) => name.name.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        names,
        ["name-gone", "name-hidden", "name-later"],
        "the row of somebody who saw more, too: the cluster knows"
    );
    let read = bench.step(Input::Effect(Uid::from("gone"), EffectDone::Got(Ok(None))));
    let closed = bench.rows(&read, vec![live("gone", 3)]);
    assert_eq!(
        write_of(&closed).map(|(_, writes)| writes),
        Some(vec![(Uid::from("gone"), 0)])
    );
    let hidden = EffectDone::Got(Ok(Some(thing("hidden", 3).object())));
    bench.step(Input::Effect(Uid::from("hidden"), hidden));
    let read = bench.written(0, 1);
    let kept = bench.rows(&read, vec![live("hidden", 3)]);
    assert!(
        write_of(&kept).is_none(),
        "an object that answers is not closed: {kept:?}"
    );
}

/// Two rows at most, or half of them; so many more this once.
fn limited(orphans_allowed: usize) -> Settings {
    Settings {
        orphan_limits: OrphanLimits {
            rows_max: 2,
            percent_max: 50,
        },
        orphans_allowed,
        ..Settings::default()
    }
}

/// Whether the sweep sets out to close ten live rows of which the list has none.
fn ten_orphans(bench: &mut Bench) -> bool {
    bench.page(&[], 20);
    let rows = (0..10).map(|n| live(&format!("u{n}"), 3)).collect();
    !effects_of(&bench.step(Input::Scanned(Ok(rows)))).is_empty()
}

#[test]
fn a_list_that_lacks_too_much_closes_nothing_and_says_what_to_do() {
    let mut bench = listing(limited(0));
    assert!(!ten_orphans(&mut bench));
    bench.step(Input::Probed(Ok(ResourceVersion(20))));
    let status = bench.controller.status();
    let held = status.held_orphans.map(|held| (held.rows, held.live));
    assert_eq!((held, bench.metrics.orphans.get()), (Some((10, 10)), 10));
    let reason = status.not_ready().expect("held rows are a reason");
    for part in [
        "10 of 10 live rows",
        "maxOrphans (2) and maxOrphanPercent (50 %)",
        "--allow-orphans Thing=10",
    ] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
}

#[test]
fn held_rows_are_known_after_a_restart_and_may_be_closed_once() {
    let mut bench = listing(limited(0));
    ten_orphans(&mut bench);
    bench.step(Input::Probed(Ok(ResourceVersion(20))));
    let checkpoint = bench.checkpoints.pop();
    assert_eq!(checkpoint, Some(Checkpoint::Held(ResourceVersion(20))));

    let saved = || Saved {
        checkpoint,
        quarantined: Vec::new(),
    };
    for (allowed, closed) in [(0, false), (9, false), (10, true)] {
        let mut bench = Bench::new(limited(allowed));
        bench.step(Input::Start);
        let outputs = bench.step(Input::Loaded(Ok(saved())));
        assert!(
            matches!(outputs[..], [Output::Probe]),
            "a restored cluster is still found out: {outputs:?}"
        );
        let outputs = bench.step(Input::Probed(Ok(ResourceVersion(20))));
        assert!(matches!(outputs[..], [Output::List { .. }]), "{outputs:?}");
        assert_eq!(ten_orphans(&mut bench), closed, "{allowed} allowed");
        assert_eq!(bench.controller.status().held_orphans.is_none(), closed);
    }
}

#[test]
fn what_is_allowed_is_allowed_to_the_first_comparison_alone() {
    let mut bench = Bench::new(limited(10));
    bench.step(Input::Start);
    let saved = Saved {
        checkpoint: Some(settled(7)),
        quarantined: Vec::new(),
    };
    bench.step(Input::Loaded(Ok(saved)));
    let outputs = bench.step(Input::Probed(Ok(ResourceVersion(20))));
    assert!(
        matches!(outputs[..], [Output::List { .. }]),
        "it is compared at once: {outputs:?}"
    );
    bench.page(&[], 20);
    bench.step(Input::Scanned(Ok(Vec::new())));
    let outputs = bench.step(Input::Probed(Ok(ResourceVersion(20))));
    assert!(matches!(outputs[0], Output::Watch(ResourceVersion(20))), "{outputs:?}");
    assert_eq!(bench.checkpoints.last(), Some(&settled(20)));

    let expired = ClusterError::Expired("too old".to_owned());
    bench.step(Input::Watch(Err(expired)));
    assert!(!ten_orphans(&mut bench), "spent");
}

#[test]
fn something_without_a_uid_spends_what_was_allowed() {
    let mut bench = listing(limited(10));
    let page = Page {
        unreadable: vec![Unreadable {
            uid: None,
            name: ObjectName {
                namespace: "bench".to_owned(),
                name: "odd".to_owned(),
            },
            reason: "no uid".to_owned(),
        }],
        resource_version: ResourceVersion(20),
        ..Page::default()
    };
    bench.step(Input::Page(Ok(page)));
    let outputs = bench.step(Input::Probed(Ok(ResourceVersion(20))));
    assert!(
        matches!(outputs[0], Output::Watch(_)),
        "it does not list for ever: {outputs:?}"
    );
}

#[test]
fn archived_rows_stay_when_the_list_lacks_them() {
    let mut bench = listing(Settings::default());
    bench.page(&[], 20);
    let archived = RowState {
        life: Life::Archived,
        ..live("e", 3)
    };
    let outputs = bench.step(Input::Scanned(Ok(vec![archived])));
    assert!(matches!(outputs[..], [Output::Probe]), "{outputs:?}");
    let outputs = bench.step(Input::Probed(Ok(ResourceVersion(20))));
    assert!(matches!(outputs[0], Output::Watch(ResourceVersion(20))), "{outputs:?}");
}

#[test]
fn something_without_a_uid_keeps_every_row_open() {
    let mut bench = listing(Settings::default());
    let name = ObjectName {
        namespace: "bench".to_owned(),
        name: "odd".to_owned(),
    };
    let page = Page {
        unreadable: vec![Unreadable {
            uid: None,
            name,
            reason: "no uid".to_owned(),
        }],
        resource_version: ResourceVersion(20),
        ..Page::default()
    };
    let outputs = bench.step(Input::Page(Ok(page)));
    assert!(
        matches!(outputs[..], [Output::Probe]),
        "no row is looked at: {outputs:?}"
    );
    assert_eq!(bench.metrics.unreadable.get(), 1);
    assert!(
        bench
            .controller
            .status()
            .last_error
            .is_some_and(|error| error.contains("odd"))
    );
}

#[test]
fn an_expired_watch_is_followed_by_a_list() {
    let mut bench = Bench::watching(Settings::default());
    let expired = ClusterError::Expired("too old".to_owned());
    let outputs = bench.step(Input::Watch(Err(expired)));
    assert!(
        matches!(
            outputs[..],
            [Output::List {
                continue_token: None,
                ..
            }]
        ),
        "{outputs:?}"
    );
}

#[test]
fn a_start_resumes_from_the_saved_position() {
    let mut bench = Bench::new(Settings::default());
    bench.step(Input::Start);
    let saved = Saved {
        checkpoint: Some(settled(7)),
        quarantined: Vec::new(),
    };
    assert!(matches!(bench.step(Input::Loaded(Ok(saved)))[..], [Output::Probe]));
    let outputs = bench.step(Input::Probed(Ok(ResourceVersion(9))));
    assert!(matches!(outputs[0], Output::Watch(ResourceVersion(7))), "{outputs:?}");
}

#[test]
fn the_saved_position_stays_below_what_is_not_settled() {
    let mut bench = Bench::watching(Settings::default());
    let read = bench.applied(&thing("a", 5));
    bench.step(Input::Watch(Ok(WatchEvent::Bookmark(ResourceVersion(30)))));
    assert_eq!(bench.controller.status().settled, ResourceVersion(4));
    let (ticket, _) = write_of(&bench.no_rows(&read)).expect("a write");
    bench.written(ticket, 1);
    assert_eq!(bench.controller.status().settled, ResourceVersion(30));
}

/// A process that dies every few seconds would otherwise replay more each time.
#[test]
fn the_position_is_saved_every_second_while_it_moves() {
    let mut bench = Bench::watching(Settings::default());
    for version in 2..6 {
        bench.elapsed += Duration::from_secs(1);
        let read = bench.applied(&thing(&format!("u{version}"), version));
        let (ticket, _) = write_of(&bench.no_rows(&read)).expect("a write");
        bench.written(ticket, 1);
    }
    assert_eq!(bench.checkpoints, [2, 3, 4, 5].map(settled));
}

/// Lets the watch end so long after it began, and says whether a list follows.
fn a_watch_that_ends_is_followed_by_a_list(bench: &mut Bench, after: Duration) -> bool {
    bench.elapsed += after;
    let probe = bench.step(Input::WatchEnded);
    assert!(matches!(probe[..], [Output::Probe]), "{probe:?}");
    let next = bench.step(Input::Probed(Ok(ResourceVersion(20))));
    match next[..] {
        [Output::List { .. }] => true,
        [Output::Watch(_)] => false,
        _ => panic!("{next:?}"),
    }
}

/// A life that resumed at version 20.
fn resumed(settings: Settings) -> Bench {
    let mut bench = Bench::new(settings);
    bench.step(Input::Start);
    let saved = Saved {
        checkpoint: Some(settled(20)),
        quarantined: Vec::new(),
    };
    bench.step(Input::Loaded(Ok(saved)));
    let outputs = bench.step(Input::Probed(Ok(ResourceVersion(20))));
    assert!(
        matches!(outputs[..], [Output::Watch(_)]),
        "a start that resumes goes on at once"
    );
    bench
}

#[test]
fn a_stream_is_not_trusted_for_ever() {
    let minute = Duration::from_secs(60);
    let mut bench = resumed(Settings::default());
    for _ in 0..3 {
        assert!(!a_watch_that_ends_is_followed_by_a_list(&mut bench, minute));
    }
    assert!(
        a_watch_that_ends_is_followed_by_a_list(&mut bench, minute),
        "some minutes after the start"
    );
    bench.page(&[], 20);
    bench.step(Input::Scanned(Ok(Vec::new())));
    bench.step(Input::Probed(Ok(ResourceVersion(20))));
    assert!(!a_watch_that_ends_is_followed_by_a_list(&mut bench, minute));
    assert!(a_watch_that_ends_is_followed_by_a_list(&mut bench, 24 * 60 * minute));
}

#[test]
fn a_period_of_zero_trusts_the_stream() {
    let settings = Settings {
        compare_period: Duration::ZERO,
        ..Settings::default()
    };
    let mut bench = resumed(settings);
    assert!(!a_watch_that_ends_is_followed_by_a_list(
        &mut bench,
        Duration::from_secs(1_000_000)
    ));
}
