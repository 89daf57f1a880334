//! The history of a kind that keeps one: every version once, whatever became of its row, and
//! the past as it was at any moment.

use jiff::Timestamp;
use kindex_harness::require::passed_over;
use kindex_model::kind::Kind;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_query::{Life, Revive, Stored};
use kindex_store::{AsOf, HistoryVersion, RowWrite, StoreError, Written};
use serde_json::json;

use super::backend::Backend;
use super::widget::{KEEPSAKE, PARTS, WIDGET, Widget, at, project, soft_delete, widget};

scenarios!(
    every_version_is_kept_once_with_its_text_and_time,
    a_late_version_is_kept_and_changes_no_row,
    versions_that_were_overtaken_are_kept_at_their_own_time,
    a_name_stands_for_what_it_did_at_that_moment,
    versions_are_read_page_by_page,
    a_history_that_begins_late_begins_with_what_the_row_holds,
    what_a_restored_cluster_took_back_is_not_forgotten,
    versions_that_a_restored_cluster_reuses_are_distinguished,
    what_a_second_ingester_sets_aside_is_found_at_its_time,
    an_object_that_comes_in_another_version_of_its_kind_lost_nothing,
    a_batch_that_is_refused_keeps_nothing,
    sql_reads_the_payload,
    a_kind_without_a_history_has_none,
);

async fn write(backend: &Backend, writes: &[RowWrite], now: Timestamp) -> Vec<Written> {
    let written = backend.store.write(&KEEPSAKE, writes, now).await;
    written.expect("the batch is taken")
}

fn record(object: &Widget, seen: Timestamp) -> RowWrite {
    RowWrite::Record {
        object: object.project().object.clone(),
        seen,
    }
}

async fn history(backend: &Backend, uid: &str) -> Vec<HistoryVersion> {
    let past = backend.store.history(&KEEPSAKE, &Uid::from(uid), None, 100).await;
    past.expect("readable")
}

/// Number and time of each version, the newest first.
async fn versions(backend: &Backend, uid: &str) -> Vec<(u64, Timestamp)> {
    let past = history(backend, uid).await;
    past.iter()
        .map(|past| (past.object.metadata.resource_version.0, past.seen))
        .collect()
}

async fn as_of(backend: &Backend, name: &str, time: Timestamp) -> AsOf {
    let found = backend.store.version_at(&KEEPSAKE, "shop", name, time).await;
    found.expect("readable")
}

async fn stood(backend: &Backend, name: &str, time: Timestamp) -> Stored {
    match as_of(backend, name, time).await {
        AsOf::Stored(stored) => stored,
        other => panic!("{other:?}"),
    }
}

async fn every_version_is_kept_once_with_its_text_and_time(backend: Backend) {
    let made = widget("u1", "a", 10).spec(json!({"group": "größer \u{1f980}", "rank": 1.0}));
    let labeled = made.clone().label("team", "x");
    let (second, third) = (
        Widget {
            version: 20,
            ..labeled.clone()
        },
        Widget { version: 30, ..labeled },
    );
    write(&backend, &[made.live()], at(0)).await;
    write(&backend, &[second.live(), widget("u2", "b", 15).live()], at(1)).await;
    assert_eq!(write(&backend, &[second.live()], at(2)).await, [Written::Unchanged]);
    write(&backend, &[second.archived()], at(3)).await;
    write(&backend, &[third.store(Life::Deleted, Revive::Never)], at(4)).await;
    write(&backend, &[soft_delete("u1")], at(5)).await;

    let past = history(&backend, "u1").await;
    let texts: Vec<&str> = past.iter().map(|past| past.object.text()).collect();
    assert_eq!(texts, [third.text(), second.text(), made.text()]);
    assert_eq!(versions(&backend, "u1").await, [(30, at(4)), (20, at(1)), (10, at(0))]);
    assert_eq!(versions(&backend, "u2").await, [(15, at(1))]);

    let find = async |number| {
        backend
            .store
            .version(&KEEPSAKE, &Uid::from("u1"), ResourceVersion(number))
            .await
    };
    let found = find(20).await.expect("readable").expect("kept");
    assert_eq!(found.object.text(), second.text());
    assert!(find(21).await.expect("readable").is_none());
}

async fn a_late_version_is_kept_and_changes_no_row(backend: Backend) {
    write(&backend, &[widget("u1", "a", 30).live()], at(0)).await;
    let late = widget("u1", "a", 20);
    for second in 1..3 {
        assert_eq!(write(&backend, &[late.live()], at(second)).await, [Written::Superseded]);
    }
    assert_eq!(
        write(&backend, &[record(&late, at(4))], at(5)).await,
        [Written::Unchanged]
    );
    assert_eq!(versions(&backend, "u1").await, [(30, at(0)), (20, at(1))]);
    assert_eq!(stood(&backend, "a", at(9)).await.object.metadata.resource_version.0, 30);
}

async fn versions_that_were_overtaken_are_kept_at_their_own_time(backend: Backend) {
    let seen = [(5, 10), (6, 20), (7, 30)].map(|(version, second)| (widget("u1", "a", version), at(second)));
    let mut batch: Vec<RowWrite> = seen.iter().map(|(object, time)| record(object, *time)).collect();
    batch.push(seen[2].0.live());
    batch.push(record(&widget("u2", "b", 8), at(40)));
    batch.push(soft_delete("u2"));
    let written = write(&backend, &batch, at(50)).await;
    assert_eq!(written[3], Written::Inserted);
    assert_eq!(
        written.iter().filter(|written| **written == Written::Unchanged).count(),
        5
    );
    assert_eq!(versions(&backend, "u1").await, [(7, at(30)), (6, at(20)), (5, at(10))]);
    assert_eq!(versions(&backend, "u2").await, [(8, at(40))], "a version without a row");
    assert_eq!(stood(&backend, "a", at(25)).await.object.metadata.resource_version.0, 6);
}

async fn a_name_stands_for_what_it_did_at_that_moment(backend: Backend) {
    write(&backend, &[widget("u1", "a", 10).live()], at(10)).await;
    write(&backend, &[widget("u1", "a", 20).live()], at(20)).await;
    write(&backend, &[widget("u1", "a", 20).archived()], at(30)).await;
    let leaving = widget("u1", "a", 21).label("leaving", "yes");
    write(&backend, &[record(&leaving, at(31))], at(31)).await;
    write(&backend, &[soft_delete("u1")], at(40)).await;
    write(&backend, &[widget("u2", "a", 50).live()], at(50)).await;

    assert!(matches!(as_of(&backend, "a", at(9)).await, AsOf::NotYet { first } if first == at(10)));
    for (second, version, life, since) in [
        (10, 10, Life::Live, 10),
        (19, 10, Life::Live, 10),
        (20, 20, Life::Live, 20),
        (30, 20, Life::Archived, 20),
        (39, 20, Life::Archived, 20),
        (50, 50, Life::Live, 50),
        (999, 50, Life::Live, 50),
    ] {
        let found = stood(&backend, "a", at(second)).await;
        let version_then = found.object.metadata.resource_version.0;
        assert_eq!(
            (version_then, found.life, found.update_time),
            (version, life, Some(at(since))),
            "{second}"
        );
    }
    match as_of(&backend, "a", at(45)).await {
        AsOf::Deleted { at: then, last } => {
            assert_eq!((then, last.object.metadata.resource_version.0), (at(40), 20));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(as_of(&backend, "nobody", at(99)).await, AsOf::Unknown));
    write(&backend, &[soft_delete("u2")], at(60)).await;
    match as_of(&backend, "a", at(70)).await {
        AsOf::Deleted { at: then, last } => assert_eq!((then, &*last.object.metadata.uid.0), (at(60), "u2")),
        other => panic!("of two that were deleted the last one counts: {other:?}"),
    }
    let rows_of_name = backend
        .store
        .rows_of_name(&KEEPSAKE, "shop", "a")
        .await
        .expect("readable");
    let uids: Vec<&str> = rows_of_name.iter().map(|row| &*row.object.metadata.uid.0).collect();
    assert_eq!(uids, ["u2", "u1"]);
}

async fn versions_are_read_page_by_page(backend: Backend) {
    for version in 1..=7 {
        let now = at(i64::try_from(version).expect("small"));
        write(
            &backend,
            &[
                widget("u1", "a", version).live(),
                widget("u0", "b", 90 + version).live(),
            ],
            now,
        )
        .await;
    }
    backend
        .store
        .rewind(&KEEPSAKE, &[Uid::from("u1")], at(15))
        .await
        .expect("rewound");
    write(&backend, &[widget("u1", "a", 3).live()], at(20)).await;
    for rows in 1..=3 {
        let (mut found, mut last) = (Vec::new(), None::<HistoryVersion>);
        loop {
            let uid = Uid::from("u1");
            let page = backend.store.history(&KEEPSAKE, &uid, last.as_ref(), rows).await;
            let page = page.expect("readable");
            assert!(page.len() <= rows as usize);
            found.extend(page.iter().map(|past| past.object.metadata.resource_version.0));
            let Some(oldest) = page.into_iter().next_back() else {
                break;
            };
            last = Some(oldest);
        }
        assert_eq!(found, [3, 7, 6, 5, 4, 3, 2, 1], "pages of {rows}");
    }
}

/// The kind as it was before somebody wrote `history = true`.
static BEFORE: Kind = Kind {
    table: "keepsake",
    keys: &[],
    ..PARTS
};

async fn a_history_that_begins_late_begins_with_what_the_row_holds(backend: Backend) {
    for object in [widget("u1", "a", 1), widget("u1", "a", 2), widget("u2", "b", 5)] {
        let now = at(i64::try_from(object.version).expect("small"));
        backend
            .store
            .write(&BEFORE, &[object.live()], now)
            .await
            .expect("written");
    }
    assert!(history(&backend, "u1").await.is_empty());
    let held = stood(&backend, "a", at(3)).await;
    assert_eq!(
        (held.object.text(), held.update_time),
        (&*widget("u1", "a", 2).text(), Some(at(2)))
    );
    assert!(matches!(as_of(&backend, "a", at(1)).await, AsOf::NotYet { first } if first == at(2)));

    write(
        &backend,
        &[widget("u1", "a", 9).live(), widget("u2", "b", 9).live()],
        at(9),
    )
    .await;
    assert_eq!(versions(&backend, "u1").await, [(9, at(9)), (2, at(2))]);
    assert_eq!(versions(&backend, "u2").await, [(9, at(9)), (5, at(5))]);
    assert_eq!(
        stood(&backend, "a", at(3)).await.object.text(),
        widget("u1", "a", 2).text()
    );
}

async fn what_a_restored_cluster_took_back_is_not_forgotten(backend: Backend) {
    for version in [10, 20, 30] {
        let now = at(i64::try_from(version).expect("small"));
        write(&backend, &[widget("u1", "a", version).label("lost", "no").live()], now).await;
    }
    for _ in 0..2 {
        backend
            .store
            .rewind(&KEEPSAKE, &[Uid::from("u1")], at(50))
            .await
            .expect("rewound");
    }
    let again = widget("u1", "a", 20).label("restored", "yes");
    write(&backend, &[again.live()], at(100)).await;
    write(&backend, &[widget("u1", "a", 25).live()], at(110)).await;

    assert_eq!(
        stood(&backend, "a", at(35)).await.object.metadata.resource_version.0,
        30
    );
    assert_eq!(stood(&backend, "a", at(105)).await.object.text(), again.text());
    assert_eq!(
        stood(&backend, "a", at(120)).await.object.metadata.resource_version.0,
        25
    );
    let numbers: Vec<u64> = versions(&backend, "u1")
        .await
        .into_iter()
        .map(|(version, _)| version)
        .collect();
    assert_eq!(numbers, [25, 20, 30, 20, 10]);
    let lost = history(&backend, "u1")
        .await
        .into_iter()
        .filter(|past| past.branch < 0)
        .count();
    assert_eq!(lost, 3);
    let twenty = backend
        .store
        .version(&KEEPSAKE, &Uid::from("u1"), ResourceVersion(20))
        .await;
    assert_eq!(twenty.expect("readable").expect("kept").object.text(), again.text());
}

async fn versions_that_a_restored_cluster_reuses_are_distinguished(backend: Backend) {
    for version in [10, 20, 30] {
        let late = record(&widget("u1", "a", version), at(10));
        write(&backend, &[late, record(&widget("u2", "b", version), at(10))], at(10)).await;
    }
    for _ in 0..2 {
        let beyond = ResourceVersion(15);
        let moved = backend.store.branch_off_beyond(&KEEPSAKE, beyond, at(40)).await;
        moved.expect("moved to a branch");
    }
    let again = widget("u1", "a", 20).label("restored", "yes");
    write(&backend, &[again.live()], at(50)).await;
    let numbers = |versions: Vec<(u64, Timestamp)>| versions.iter().map(|(number, _)| *number).collect::<Vec<_>>();
    assert_eq!(numbers(versions(&backend, "u1").await), [20, 10, 30, 20]);
    assert_eq!(numbers(versions(&backend, "u2").await), [10, 30, 20]);

    // Nobody noticed this time: the number alone says nothing.
    let repeated = widget("u1", "a", 20).label("restored", "twice");
    write(&backend, &[repeated.live()], at(60)).await;
    assert_eq!(numbers(versions(&backend, "u1").await), [20, 20, 10, 30, 20]);
    let texts: Vec<String> = history(&backend, "u1")
        .await
        .iter()
        .map(|past| past.object.text().to_owned())
        .collect();
    assert_eq!(texts[..2], [repeated.text(), again.text()]);
}

/// Two ingesters correct rows after one restoration. The second one moves what the first one has stored since, too.
async fn what_a_second_ingester_sets_aside_is_found_at_its_time(backend: Backend) {
    let store = async |version, second| write(&backend, &[widget("u1", "a", version).live()], at(second)).await;
    let set_aside = async |beyond, second| {
        let beyond = ResourceVersion(beyond);
        let moved = backend.store.branch_off_beyond(&KEEPSAKE, beyond, at(second)).await;
        moved.expect("moved to a branch");
    };
    store(1, 10).await;
    set_aside(1, 20).await;
    store(2, 30).await;
    store(3, 40).await;
    set_aside(0, 50).await;
    let rewound = backend.store.rewind(&KEEPSAKE, &[Uid::from("u1")], at(50)).await;
    rewound.expect("rewound");
    store(3, 60).await;
    let times = [(3, at(60)), (3, at(40)), (2, at(30)), (1, at(10))];
    assert_eq!(versions(&backend, "u1").await, times);
    for (second, version) in [(15, 1), (35, 2), (45, 3), (65, 3)] {
        let found = stood(&backend, "a", at(second)).await;
        assert_eq!(found.object.metadata.resource_version.0, version, "{second}");
    }
}

/// As after a build in which the kind has another version of its own: the cluster reports all objects again.
async fn an_object_that_comes_in_another_version_of_its_kind_lost_nothing(backend: Backend) {
    let old = |version| widget("u1", "a", version).label("team", "x");
    for version in [10, 20] {
        let now = at(i64::try_from(version).expect("small"));
        write(&backend, &[old(version).live()], now).await;
    }
    let new = |version| Widget {
        api_version: "test.kindex/v2",
        ..old(version)
    };
    let written = write(&backend, &[new(20).live()], at(30)).await;
    assert_eq!(written, [Written::Updated]);
    let row = backend.store.get_by_id(&KEEPSAKE, &Uid::from("u1")).await;
    assert_eq!(row.expect("readable").expect("stored").object.text(), new(20).text());
    assert_eq!(versions(&backend, "u1").await, [(20, at(20)), (10, at(10))]);
    assert_eq!(stood(&backend, "a", at(40)).await.object.text(), old(20).text());
    write(&backend, &[new(30).live()], at(50)).await;

    let kept = history(&backend, "u1").await;
    assert!(kept.iter().all(|past| past.branch == 0), "{kept:?}");
    let texts: Vec<&str> = kept.iter().map(|past| past.object.text()).collect();
    assert_eq!(texts, [new(30).text(), old(20).text(), old(10).text()]);
    let first = backend
        .store
        .history(&KEEPSAKE, &Uid::from("u1"), Some(&kept[0]), 1)
        .await;
    assert_eq!(first.expect("readable")[0].object.text(), old(20).text());

    // Another text of the same version is of another time.
    let other = new(30).label("team", "y");
    write(&backend, &[other.live()], at(60)).await;
    let kept = history(&backend, "u1").await;
    let lost: Vec<bool> = kept.iter().map(|past| past.branch < 0).collect();
    assert_eq!(lost, [false, true, true, true]);
    assert_eq!(kept[0].object.text(), other.text());
}

async fn a_batch_that_is_refused_keeps_nothing(backend: Backend) {
    let name = "n".repeat(300);
    let refused = widget("u2", &name, 2);
    let batch = [widget("u1", "a", 1).live(), refused.live()];
    let answer = backend.store.write(&KEEPSAKE, &batch, at(0)).await;
    if !backend.limits_lengths() {
        assert_eq!(
            answer.expect("the engine takes names of any length"),
            [Written::Inserted; 2]
        );
        return passed_over("the engine refuses no such batch");
    }
    let error = answer.expect_err("too long a name");
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    assert!(history(&backend, "u1").await.is_empty());
    assert!(history(&backend, "u2").await.is_empty());
}

async fn sql_reads_the_payload(backend: Backend) {
    let Some(text) = backend.unpacked_payload() else {
        return passed_over("the engine's SQL does not unpack payloads");
    };
    let made = widget("u1", "a", 1).spec(json!({"group": "größer \u{1f980}\\\"'"}));
    write(&backend, &[made.live()], at(0)).await;
    write(
        &backend,
        &[Widget {
            version: 2,
            ..made.clone()
        }
        .live()],
        at(1),
    )
    .await;
    let sql = format!(
        "SELECT res_version, {text} FROM keepsake_history WHERE obj_uid = 'u1' AND encoding = 1 ORDER BY res_version"
    );
    let rows = backend.rows(&sql).await.expect("what unpacks is not in memory");
    let texts: Vec<Option<&str>> = rows.iter().map(|row| row[1].as_deref()).collect();
    let second = Widget {
        version: 2,
        ..made.clone()
    };
    assert_eq!(texts, [Some(&*made.text()), Some(&*second.text())]);
}

async fn a_kind_without_a_history_has_none(backend: Backend) {
    let version = project(&widget("u1", "a", 1).text());
    let record = RowWrite::Record {
        object: version.object.clone(),
        seen: at(0),
    };
    backend.write_all(&[record], at(0)).await;
    let uid = Uid::from("u1");
    let refused = backend.store.history(&WIDGET, &uid, None, 1).await;
    assert!(matches!(refused, Err(StoreError::NoHistory(kind)) if kind == "Widget"));
    let refused = backend.store.version_at(&WIDGET, "shop", "a", at(0)).await;
    assert!(matches!(refused, Err(StoreError::NoHistory(_))));
}
