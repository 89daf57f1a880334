//! Watches of archived objects: whoever watches, from whichever version and through whichever server, ends up
//! with what a list shows.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kindex_api::operations::RightsOf;
use kindex_generated::kinds::model;
use kindex_harness::wait::{WAIT_MAX, eventually};
use kube::Client;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::following::{Cache, Watch, believed, delete, is_direct, label, list_version, name, scenarios, version};
use super::stage::{FINAL, MODELS, Stage, manifest, model, send};

scenarios!(
    every_server_tells_it_as_selectors_have_it,
    a_resumed_watch_receives_what_happened,
    a_late_event_of_the_cluster_is_not_sent_after_that_of_sql,
    the_state_comes_first_where_no_version_is_given,
    a_name_that_is_taken_again_stays,
    a_change_during_the_eviction_is_sent,
    whoever_follows_has_what_a_list_shows,
);

async fn every_server_tells_it_as_selectors_have_it(stage: Stage) {
    for name in ["a", "b", "c"] {
        stage.create_archived(name, json!({"team": "x"}), json!({})).await;
    }
    let from = format!("resourceVersion={}", list_version(&stage.api).await);
    let mut all = Watch::begin(&stage.api, &format!("{from}&allowWatchBookmarks=true")).await;
    let mut of_team = Watch::begin(&stage.later, &format!("{from}&labelSelector=team%3Dx")).await;
    let mut of_name = Watch::begin(&stage.later, &format!("{from}&fieldSelector=metadata.name%3Dc")).await;

    label(&stage.api, "a", json!({"team": "y"})).await;
    let (kind, object) = all.next().await;
    assert_eq!(
        (kind.as_str(), &object["metadata"]["labels"]),
        ("MODIFIED", &json!({"team": "y"}))
    );
    assert!(is_direct(version(&object)));
    let (kind, object) = all.next().await;
    assert_eq!((kind.as_str(), &object["kind"]), ("BOOKMARK", &json!("Model")));
    assert!(!is_direct(version(&object)), "a version to go on from: {object}");
    assert_eq!(of_team.received().await, "DELETED a");

    label(&stage.later, "a", json!({"team": "x"})).await;
    assert_eq!(all.received().await, "MODIFIED a");
    assert_eq!(of_team.received().await, "ADDED a");
    delete(&stage.later, "b").await;
    for watch in [&mut all, &mut of_team] {
        let (kind, object) = loop {
            let event = watch.next().await;
            if event.0 != "BOOKMARK" {
                break event;
            }
        };
        assert_eq!((kind.as_str(), name(&object)), ("DELETED", "b"));
        assert!(object["metadata"]["deletionTimestamp"].is_string(), "{object}");
    }
    let collection = format!("{MODELS}?labelSelector=team%3Dx");
    let (code, answer) = send(&stage.api, "DELETE", &collection, &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
    for watch in [&mut all, &mut of_team] {
        let received = BTreeSet::from([watch.received().await, watch.received().await]);
        assert_eq!(received, ["DELETED a", "DELETED c"].map(str::to_owned).into());
    }
    assert_eq!(of_name.received().await, "DELETED c", "and nothing of the others");
    stage.end().await;
}

async fn a_resumed_watch_receives_what_happened(stage: Stage) {
    for name in ["a", "b"] {
        stage.create_archived(name, json!({}), json!({})).await;
    }
    let from = list_version(&stage.api).await;
    let mut watch = Watch::begin(&stage.api, &format!("resourceVersion={from}&allowWatchBookmarks=true")).await;
    let direct = label(&stage.api, "a", json!({"n": "1"})).await;
    assert_eq!(watch.next().await.0, "MODIFIED");
    let (_, bookmark) = watch.next().await;
    drop(watch);

    label(&stage.api, "a", json!({"n": "2"})).await;
    delete(&stage.api, "b").await;
    let mut watch = Watch::begin(&stage.later, &format!("resourceVersion={}", version(&bookmark))).await;
    let received = watch.received_until("DELETED b").await;
    assert_eq!(received, ["MODIFIED a", "DELETED b"]);

    // A client that knows no bookmarks goes on from what it saw last. That is no version of the cluster.
    let path = format!("{MODELS}?watch=true&resourceVersion={}", version(&direct));
    let (code, refused) = send(&stage.api, "GET", &path, &Value::Null).await;
    assert_eq!((code, &refused["reason"]), (410, &json!("Expired")), "{refused}");
    for query in ["", "&resourceVersionMatch=NotOlderThan"] {
        let path = format!("{MODELS}?resourceVersion={}{query}", version(&direct));
        let (code, list) = send(&stage.api, "GET", &path, &Value::Null).await;
        assert_eq!(code, 200, "{list}");
    }

    // Once everybody has seen it, nobody is told again.
    stage.marked(&model::KIND).await;
    stage.create("moves-the-version", json!({}), json!({})).await;
    let from = list_version(&stage.api).await;
    let mut watch = Watch::begin(&stage.api, &format!("resourceVersion={from}")).await;
    stage.create("last", json!({}), json!({})).await;
    let received = watch.received_until("ADDED last").await;
    assert!(
        received
            .iter()
            .all(|event| !event.ends_with(" a") && !event.ends_with(" b")),
        "{received:?}"
    );
    stage.end().await;
}

/// The cluster tells of the object as it was before it moved, SQL of what became of it then.
async fn a_late_event_of_the_cluster_is_not_sent_after_that_of_sql(stage: Stage) {
    for name in ["kept", "deleted"] {
        stage.create(name, json!({"n": "0"}), json!({})).await;
    }
    let from = list_version(&stage.api).await;
    let evict = json!({"metadata": {"annotations": {FINAL: "true"}}});
    for name in ["kept", "deleted"] {
        label(&stage.api, name, json!({"n": "1"})).await;
        send(&stage.api, "PATCH", &model(name), &evict).await;
        stage.wait_until_archived(name).await;
        label(&stage.api, name, json!({"n": "2"})).await;
    }
    delete(&stage.api, "deleted").await;
    stage.create("last", json!({}), json!({})).await;
    for client in [&stage.api, &stage.later] {
        let mut watch = Watch::begin(client, &format!("resourceVersion={from}")).await;
        let cache = Cache::from(["kept", "deleted"].map(|name| (name.to_owned(), "0".to_owned())));
        let cache = watch.until(cache, |cache| cache.contains_key("last")).await;
        assert_eq!(cache.get("kept").map(String::as_str), Some("2"));
        assert_eq!(cache.get("deleted"), None);
    }
    stage.end().await;
}

async fn the_state_comes_first_where_no_version_is_given(stage: Stage) {
    stage.create("live", json!({}), json!({})).await;
    for name in ["a", "b"] {
        stage.create_archived(name, json!({}), json!({})).await;
    }
    for query in ["", "resourceVersion=0", "limit=1"] {
        let mut watch = Watch::begin(&stage.api, query).await;
        let received = BTreeSet::from([watch.received().await, watch.received().await, watch.received().await]);
        assert_eq!(
            received,
            ["ADDED a", "ADDED b", "ADDED live"].map(str::to_owned).into(),
            "{query}"
        );
        label(&stage.api, "a", json!({"asked": query.len().to_string()})).await;
        assert_eq!(watch.received().await, "MODIFIED a", "{query}");
    }

    let list = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = Watch::begin(&stage.api, list).await;
    let received = BTreeSet::from([watch.received().await, watch.received().await, watch.received().await]);
    assert_eq!(received.len(), 3, "{received:?}");
    let (kind, bookmark) = watch.next().await;
    assert_eq!(kind, "BOOKMARK");
    assert_eq!(
        bookmark["metadata"]["annotations"],
        json!({"k8s.io/initial-events-end": "true"})
    );
    delete(&stage.api, "a").await;
    // What was changed a moment before the watch began may be told again.
    let received = watch.received_until("DELETED a").await;
    assert!(received.iter().all(|event| event.ends_with(" a")), "{received:?}");

    let now = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    let mut watch = Watch::begin(&stage.api, now).await;
    delete(&stage.api, "b").await;
    let received = watch.received_until("DELETED b").await;
    assert!(
        !received.contains(&"ADDED live".to_owned()),
        "what was there is not told: {received:?}"
    );
    for query in ["sendInitialEvents=true", "resourceVersionMatch=NotOlderThan"] {
        let (code, refused) = send(&stage.api, "GET", &format!("{MODELS}?watch=true&{query}"), &Value::Null).await;
        assert_eq!((code, &refused["reason"]), (422, &json!("Invalid")), "{refused}");
    }
    stage.end().await;
}

/// Deleted in SQL, created in the cluster at once: what is told last is what is there.
async fn a_name_that_is_taken_again_stays(stage: Stage) {
    const NAMES: usize = 12;
    let names: Vec<String> = (0..NAMES).map(|number| format!("n{number}")).collect();
    for name in names.iter().map(String::as_str).chain(["mark"]) {
        stage.create_archived(name, json!({}), json!({})).await;
    }
    let from = list_version(&stage.api).await;
    // Of two servers one hears of the deletion at once, the other a little later.
    let mut watches = Vec::new();
    for client in [&stage.api, &stage.later] {
        watches.push(Watch::begin(client, &format!("resourceVersion={from}")).await);
    }
    for name in &names {
        delete(&stage.api, name).await;
        let object = manifest(json!({"name": name}), json!({}));
        let (code, answer) = send(&stage.cluster, "POST", MODELS, &object).await;
        assert_eq!(code, 201, "{answer}");
    }
    label(&stage.api, "mark", json!({"n": "1"})).await;
    for watch in &mut watches {
        let (mut there, mut marked) = (BTreeSet::new(), false);
        while !marked || there.len() < NAMES {
            let (kind, object) = watch.next().await;
            match kind.as_str() {
                "DELETED" => there.remove(name(&object)),
                _ if name(&object) == "mark" => std::mem::replace(&mut marked, true),
                _ => there.insert(name(&object).to_owned()),
            };
        }
    }
    stage.end().await;
}

/// SQL has it already, and somebody's finalizer holds it in the cluster, where it changes once more.
async fn a_change_during_the_eviction_is_sent(stage: Stage) {
    stage.create_held("a", json!({"n": "1"})).await;
    let from = list_version(&stage.api).await;
    let mut watches = Vec::new();
    for client in [&stage.api, &stage.later] {
        let begin = async |selector| Watch::begin(client, &format!("resourceVersion={from}{selector}")).await;
        let of = "&labelSelector=n%3D";
        watches.push((
            begin(format!("{of}1")).await,
            begin(format!("{of}2")).await,
            begin(String::new()).await,
        ));
    }
    let change = json!({"metadata": {"labels": {"n": "2"}}});
    let (code, answer) = send(&stage.cluster, "PATCH", &model("a"), &change).await;
    assert_eq!(code, 200, "{answer}");
    eventually("SQL has the change", async || {
        let row = stage.store.get_by_name(&model::KIND, "default", "a").await.unwrap();
        row.unwrap().object.metadata.labels["n"] == "2"
    })
    .await;
    stage.release("a").await;
    for number in ["1", "2"] {
        stage
            .create(&format!("last-{number}"), json!({"n": number}), json!({}))
            .await;
    }
    let seen = |seen: &[(&str, &str)]| -> Cache {
        let owned = seen
            .iter()
            .map(|(name, label)| ((*name).to_owned(), (*label).to_owned()));
        owned.collect()
    };
    let before = seen(&[("a", "1")]);
    for (mut old, mut new, mut all) in watches {
        for (watch, before, after) in [
            (&mut old, before.clone(), seen(&[("last-1", "1")])),
            (&mut new, Cache::new(), seen(&[("a", "2"), ("last-2", "2")])),
            (
                &mut all,
                before.clone(),
                seen(&[("a", "2"), ("last-1", "1"), ("last-2", "2")]),
            ),
        ] {
            watch.until(before, |cache| *cache == after).await;
        }
    }
    stage.end().await;
}

async fn listed(client: &Client) -> (Cache, String) {
    let (mut cache, mut token, mut first) = (Cache::new(), String::new(), None);
    loop {
        let path = format!("{MODELS}?limit=5&continue={token}");
        let (code, page) = send(client, "GET", &path, &Value::Null).await;
        assert_eq!(code, 200, "{page}");
        first.get_or_insert_with(|| version(&page).to_owned());
        cache.extend(page["items"].as_array().unwrap().iter().map(believed));
        match page["metadata"]["continue"].as_str() {
            Some(next) => token = next.to_owned(),
            None => return (cache, first.unwrap()),
        }
    }
}

/// Follows until the end is told, and never lists again; its connection breaks all the time, which is counted, and a
/// little later each time: who begins again from the same version is told the same again first.
async fn follow(client: &Client, mut random: SmallRng, broken: &AtomicUsize) -> Cache {
    let (mut cache, mut seen) = listed(client).await;
    let mut breaks = 0;
    while cache.get("end").is_none_or(|label| label != "2") || !cache.contains_key("last") {
        let query = format!("resourceVersion={seen}&allowWatchBookmarks=true");
        let mut watch = Watch::begin(client, &query).await;
        for _ in 0..random.random_range(1..12 + breaks) {
            let grace = Duration::from_millis(random.random_range(1..200 + 10 * breaks as u64));
            let Ok((kind, object)) = tokio::time::timeout(grace, watch.next()).await else {
                break;
            };
            match kind.as_str() {
                "ADDED" | "MODIFIED" => cache.extend([believed(&object)]),
                "DELETED" => drop(cache.remove(name(&object))),
                "BOOKMARK" => {}
                other => panic!("{other}: {object}"),
            }
            if !is_direct(version(&object)) {
                version(&object).clone_into(&mut seen);
            }
        }
        breaks += 1;
        broken.store(breaks, Ordering::SeqCst);
    }
    cache
}

/// One thing that somebody does to some object, wherever it lives. What is refused because it moves is let be.
async fn act(stage: &Stage, random: &mut SmallRng, step: usize) {
    let name = format!("o{}", random.random_range(0..10));
    let client = [&stage.api, &stage.later][random.random_range(0..2)];
    let (code, answer) = match random.random_range(0..10) {
        0..=4 => {
            let patch = json!({"metadata": {"labels": {"n": step.to_string()}}});
            send(client, "PATCH", &model(&name), &patch).await
        }
        5 | 6 => {
            let patch = json!({"metadata": {"annotations": {FINAL: "true"}}});
            send(client, "PATCH", &model(&name), &patch).await
        }
        7 => send(client, "DELETE", &model(&name), &Value::Null).await,
        _ => {
            let object = manifest(json!({"name": name, "labels": {"n": step.to_string()}}), json!({}));
            send(client, "POST", MODELS, &object).await
        }
    };
    assert!(matches!(code, 200 | 201 | 404 | 409), "{answer}");
}

async fn whoever_follows_has_what_a_list_shows(stage: Stage) {
    const STEPS: usize = 150;
    const BREAKS: usize = 6;
    stage.create_archived("end", json!({}), json!({})).await;
    let seed: u64 = rand::rng().random();
    println!("seed {seed}");
    let random = |number: u64| SmallRng::seed_from_u64(seed ^ number);
    let broken = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let acting = async {
        let (mut random, mut pace) = (random(0), tokio::time::interval(Duration::from_millis(20)));
        let have_broken = || broken.iter().all(|breaks| breaks.load(Ordering::SeqCst) >= BREAKS);
        let began = Instant::now();
        // On a busy machine, who follows may need longer for each watch.
        for step in 0.. {
            if step >= STEPS && have_broken() {
                break;
            }
            assert!(
                began.elapsed() < WAIT_MAX,
                "the connections of who follows do not break: {broken:?}"
            );
            pace.tick().await;
            act(&stage, &mut random, step).await;
        }
        // Nothing is under way any more.
        eventually("all that was asked for is done", async || {
            let (_, list) = send(&stage.cluster, "GET", MODELS, &Value::Null).await;
            let items = list["items"].as_array().unwrap();
            items.iter().all(|item| {
                let metadata = &item["metadata"];
                metadata["deletionTimestamp"].is_null()
                    && metadata["annotations"].as_object().is_none_or(|annotations| {
                        !annotations.contains_key(FINAL) && !annotations.contains_key("michelangelo/Deleting")
                    })
            })
        })
        .await;
        for number in ["1", "2"] {
            label(&stage.api, "end", json!({"n": number})).await;
        }
        stage.create("last", json!({}), json!({})).await;
    };
    let (_, here, there) = futures::join!(
        acting,
        follow(&stage.api, random(1), &broken[0]),
        follow(&stage.later, random(2), &broken[1]),
    );
    let (expected, _) = listed(&stage.api).await;
    for cache in [here, there] {
        assert_eq!(cache, expected);
    }
    stage.end().await;
}
