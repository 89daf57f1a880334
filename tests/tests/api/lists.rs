//! Merged lists: every object once, whatever moves between the pages, in every form and with every selector.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kindex_api::operations::Sizes;
use kindex_harness::wait::eventually;
use kube::Client;
use serde_json::{Value, json};

use super::stage::{FINAL, MODELS, Stage, model, names, send, send_with};

/// All names of a list, page by page, with `between` done after each page.
async fn walk(stage: &Stage, query: &str, limit: usize, between: impl AsyncFnMut(usize)) -> Vec<String> {
    walk_on(&stage.api, query, limit, between).await
}

async fn walk_on(api: &Client, query: &str, limit: usize, mut between: impl AsyncFnMut(usize)) -> Vec<String> {
    let (mut found, mut token, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let path = format!("{MODELS}?limit={limit}&{query}&continue={token}");
        let (code, page) = send(api, "GET", &path, &Value::Null).await;
        assert_eq!(code, 200, "{page}");
        let page_names = names(&page);
        assert!(page_names.len() <= limit, "{} in a page of {limit}", page_names.len());
        found.extend(page_names.into_iter().map(str::to_owned));
        pages += 1;
        match page["metadata"]["continue"].as_str() {
            Some(next) => token = next.to_owned(),
            None => return found,
        }
        between(pages).await;
    }
}

async fn populate(stage: &Stage) -> BTreeSet<String> {
    for number in 0..7 {
        let team = if number % 2 == 0 { "even" } else { "odd" };
        stage
            .create(&format!("live-{number}"), json!({"team": team}), json!({}))
            .await;
        let spec = json!({"algorithm": "xgboost"});
        stage
            .create_archived(&format!("gone-{number}"), json!({"team": team}), spec)
            .await;
    }
    (0..7)
        .flat_map(|number| [format!("live-{number}"), format!("gone-{number}")])
        .collect()
}

pub(super) async fn every_object_is_on_one_page(stage: Stage) {
    let all = populate(&stage).await;
    for limit in [1, 2, 3, 6, 7, 8, 13, 14, 15, 500] {
        let found = walk(&stage, "", limit, async |_| {}).await;
        assert_eq!(found.len(), all.len(), "pages of {limit}: {found:?}");
        assert_eq!(found.iter().cloned().collect::<BTreeSet<_>>(), all, "pages of {limit}");
    }
    let found = walk(&stage, "labelSelector=team+in+(even)", 3, async |_| {}).await;
    assert_eq!(found.len(), 8, "{found:?}");
    let found = walk(&stage, "labelSelector=team!%3Deven,!nothing", 2, async |_| {}).await;
    assert_eq!(found.len(), 6, "{found:?}");
    let found = walk(&stage, "fieldSelector=metadata.name%3Dgone-3", 2, async |_| {}).await;
    assert_eq!(found, ["gone-3"]);
    let found = walk(&stage, "fieldSelector=metadata.name!%3Dgone-3", 2, async |_| {}).await;
    assert_eq!(found.len(), 13, "{found:?}");

    // Objects leave the cluster while the list is read: ahead of the walk, behind it, and where it is.
    let found = walk(&stage, "", 3, async |pages| {
        let name = format!("live-{}", [0, 6, 3, 5].get(pages - 1).copied().unwrap_or(1));
        let patch = json!({"metadata": {"annotations": {FINAL: "true"}}});
        let (code, _) = send(&stage.api, "PATCH", &model(&name), &patch).await;
        assert_eq!(code, 200);
        stage.wait_until_archived(&name).await;
    })
    .await;
    assert_eq!(found.len(), all.len(), "{found:?}");
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), all);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_object_is_on_one_page_of_a_merged_list_on_sqlite() {
    every_object_is_on_one_page(Stage::on_sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_object_is_on_one_page_of_a_merged_list_on_mariadb() {
    if let Some(stage) = Stage::on_mariadb().await {
        every_object_is_on_one_page(stage).await;
    }
}

/// Which object left the cluster before the list began, and which since, no clock tells: they differ by less than the
/// margin for that.
#[tokio::test(flavor = "multi_thread")]
async fn every_object_is_on_one_page_where_the_clocks_of_server_and_ingester_differ() {
    let stage = Stage::on_sqlite().await;
    let ahead = stage
        .served_at(|| Timestamp::now() + SignedDuration::from_secs(45))
        .await;
    let behind = stage
        .served_at(|| Timestamp::now() - SignedDuration::from_secs(45))
        .await;
    for (round, api) in [ahead, behind].iter().enumerate() {
        for name in ["early", "first", "second", "third"] {
            stage
                .create(
                    &format!("{name}-{round}"),
                    json!({"round": round.to_string()}),
                    json!({}),
                )
                .await;
        }
        let evict = async |name: &str| {
            let name = format!("{name}-{round}");
            let patch = json!({"metadata": {"annotations": {FINAL: "true"}}});
            let (code, answer) = send(&stage.api, "PATCH", &model(&name), &patch).await;
            assert_eq!(code, 200, "{answer}");
            stage.wait_until_archived(&name).await;
        };
        evict("early").await;
        let query = format!("labelSelector=round%3D{round}");
        let mut found = walk_on(api, &query, 1, async |pages| match pages {
            1 => evict("first").await,
            2 => evict("third").await,
            _ => {}
        })
        .await;
        found.sort_unstable();
        let all = ["early", "first", "second", "third"].map(|name| format!("{name}-{round}"));
        assert_eq!(found, all, "each once");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_objects_are_listed_where_they_are_asked_for() {
    let stage = Stage::on_sqlite().await;
    stage.create("live", json!({}), json!({})).await;
    stage.create_archived("gone", json!({}), json!({})).await;
    stage.create("deleted", json!({}), json!({})).await;
    let (code, _) = send(&stage.api, "DELETE", &model("deleted"), &Value::Null).await;
    assert_eq!(code, 200);
    stage.wait_until_deleted("deleted").await;
    let mut found = walk(&stage, "", 1, async |_| {}).await;
    found.sort_unstable();
    assert_eq!(found, ["gone", "live"]);
    let mut found = walk(&stage, "includeDeleted=true", 1, async |_| {}).await;
    found.sort_unstable();
    assert_eq!(found, ["deleted", "gone", "live"]);
    stage.end().await;
}

/// One was deleted just now, and the cluster has the other: which of them a row stands for its uid says.
#[tokio::test(flavor = "multi_thread")]
async fn objects_of_one_name_are_distinguished_by_their_uids() {
    let stage = Stage::on_sqlite().await;
    let labels = json!({"team": "a"});
    stage.create("a", labels.clone(), json!({})).await;
    let (code, _) = send(&stage.api, "DELETE", &model("a"), &Value::Null).await;
    assert_eq!(code, 200);
    stage.wait_until_deleted("a").await;
    stage.create("a", labels, json!({})).await;
    // With selectors names are looked up one by one, without in the whole list.
    for query in ["includeDeleted=true&labelSelector=team", "includeDeleted=true"] {
        for api in [&stage.api, &stage.later] {
            let (code, list) = send(api, "GET", &format!("{MODELS}?{query}"), &Value::Null).await;
            assert_eq!((code, names(&list)), (200, vec!["a", "a"]), "{query}: {list}");
            let items = list["items"].as_array().unwrap();
            assert_ne!(items[0]["metadata"]["uid"], items[1]["metadata"]["uid"], "{query}");
        }
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_goes_on_with_its_own_list_alone() {
    let stage = Stage::on_sqlite().await;
    for name in ["a", "b"] {
        stage.create(name, json!({}), json!({})).await;
    }
    let (_, page) = send(&stage.api, "GET", &format!("{MODELS}?limit=1"), &Value::Null).await;
    let token = page["metadata"]["continue"].as_str().unwrap();
    for query in [
        "labelSelector=a",
        "includeDeleted=true",
        "fieldSelector=metadata.name%3Da",
    ] {
        let path = format!("{MODELS}?limit=1&continue={token}&{query}");
        let (code, refused) = send(&stage.api, "GET", &path, &Value::Null).await;
        assert_eq!(
            (code, &refused["reason"]),
            (400, &json!("BadRequest")),
            "{query}: {refused}"
        );
    }
    let elsewhere = MODELS.replace("default", "other");
    let path = format!("{elsewhere}?limit=1&continue={token}");
    assert_eq!(send(&stage.api, "GET", &path, &Value::Null).await.0, 400);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whether_deleted_objects_are_wanted_is_true_or_false() {
    let stage = Stage::on_sqlite().await;
    stage.create("a", json!({}), json!({})).await;
    for path in [MODELS.to_owned(), format!("{MODELS}/a")] {
        for (value, expected) in [("True", 200), ("0", 200), ("maybe", 400)] {
            let path = format!("{path}?includeDeleted={value}");
            let (code, answer) = send(&stage.api, "GET", &path, &Value::Null).await;
            assert_eq!(code, expected, "{path}: {answer}");
        }
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_comes_as_a_table_as_metadata_and_as_yaml() {
    let stage = Stage::on_sqlite().await;
    stage.create("live", json!({}), json!({"algorithm": "one"})).await;
    stage
        .create_archived("gone", json!({}), json!({"algorithm": "two"}))
        .await;
    let accept = async |path: &str, form: &str| {
        let accept = format!("application/json;as={form};g=meta.k8s.io;v=v1");
        send_with(&stage.api, "GET", path, &[("accept", &accept)], String::new())
            .await
            .1
    };
    let table = accept(MODELS, "Table").await;
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["columnDefinitions"][1]["name"], "Algorithm");
    let cells = |row: usize| (&table["rows"][row]["cells"][0], &table["rows"][row]["cells"][1]);
    assert_eq!(cells(0), (&json!("live"), &json!("one")));
    assert_eq!(cells(1), (&json!("gone"), &json!("two")));
    let (_, clusters) = send_with(
        &stage.cluster,
        "GET",
        &model("live"),
        &[("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")],
        String::new(),
    )
    .await;
    assert_eq!(
        table["columnDefinitions"], clusters["columnDefinitions"],
        "as the cluster's own"
    );

    let list = accept(MODELS, "PartialObjectMetadataList").await;
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(names(&list), ["live", "gone"]);
    assert!(list["items"][1]["spec"].is_null() && list["items"][1]["kind"] == "PartialObjectMetadata");
    let one = accept(&model("gone"), "PartialObjectMetadata").await;
    assert_eq!(
        (&one["kind"], &one["metadata"]["name"]),
        (&json!("PartialObjectMetadata"), &json!("gone"))
    );
    let yaml = [("accept", "application/yaml")];
    let (_, text) = send_with(&stage.api, "GET", MODELS, &yaml, String::new()).await;
    let list: Value = serde_saphyr::from_str(text.as_str().unwrap()).unwrap();
    assert_eq!(
        (&list["kind"], names(&list)),
        (&json!("ModelList"), vec!["live", "gone"])
    );
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_without_a_limit_is_whole_whatever_its_length() {
    let stage = Stage::on_sqlite().await;
    stage.create_archived("gone", json!({}), json!({})).await;
    for number in 0..501 {
        stage.create(&format!("live-{number:03}"), json!({}), json!({})).await;
    }
    let (code, list) = send(&stage.api, "GET", MODELS, &Value::Null).await;
    assert_eq!((code, names(&list).len()), (200, 502));
    assert!(list["metadata"]["continue"].is_null());
    for (form, items) in [("Table", "rows"), ("PartialObjectMetadataList", "items")] {
        let accept = format!("application/json;as={form};g=meta.k8s.io;v=v1");
        let (_, list) = send_with(&stage.api, "GET", MODELS, &[("accept", &accept)], String::new()).await;
        assert_eq!(list[items].as_array().map(Vec::len), Some(502), "{form}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_somebody_holds_in_the_cluster_is_listed_once() {
    let stage = Stage::on_sqlite().await;
    stage.create("other", json!({}), json!({})).await;
    stage.create("held", json!({}), json!({})).await;
    let patch = json!({"metadata": {
        "finalizers": ["michelangelo/Ingester", "example.com/holder"],
        "annotations": {FINAL: "true"},
    }});
    let (code, _) = send(&stage.api, "PATCH", &model("held"), &patch).await;
    assert_eq!(code, 200);
    eventually("it is archived, and held", async || {
        let (_, found) = send(&stage.cluster, "GET", &model("held"), &Value::Null).await;
        found["metadata"]["deletionTimestamp"].is_string()
    })
    .await;
    // To the one it has just left, to the other it did so before the list began.
    for api in [&stage.api, &stage.later] {
        for limit in [1, 2, 3, 500] {
            let (mut found, mut token) = (Vec::new(), String::new());
            loop {
                let path = format!("{MODELS}?limit={limit}&continue={token}");
                let (_, page) = send(api, "GET", &path, &Value::Null).await;
                found.extend(names(&page).into_iter().map(str::to_owned));
                match page["metadata"]["continue"].as_str() {
                    Some(next) => token = next.to_owned(),
                    None => break,
                }
            }
            found.sort_unstable();
            assert_eq!(found, ["held", "other"], "pages of {limit}");
        }
    }
    stage.end().await;
}

/// Evicts live models while a list is under way, and waits until they are gone.
async fn evict(stage: &Stage, names: &[String]) {
    let patch = json!({"metadata": {"annotations": {FINAL: "true"}}});
    for name in names {
        let (code, _) = send(&stage.api, "PATCH", &model(name), &patch).await;
        assert_eq!(code, 200);
    }
    for name in names {
        stage.wait_until_archived(name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_left_the_cluster_just_now_is_looked_for_in_one_list_of_it() {
    let stage = Stage::behind_a_proxy().await;
    for number in 0..30 {
        let labels = json!({"team": if number % 3 == 0 { "a" } else { "b" }});
        stage.create(&format!("live-{number:02}"), labels, json!({})).await;
    }
    let gone: Vec<String> = (5..30).map(|number| format!("live-{number:02}")).collect();
    evict(&stage, &gone).await;
    // The second server has not seen the pages of the cluster when it is asked for a part of them.
    let other = stage.served_at(Timestamp::now).await;
    for (api, query, items, requests_max) in [
        (&stage.api, "", 30, 1),
        (&other, "labelSelector=team%3Db", 20, 2),
        (&other, "", 30, 1),
    ] {
        let before = stage.ground.proxy.requests();
        let (code, list) = send(api, "GET", &format!("{MODELS}?{query}"), &Value::Null).await;
        assert_eq!((code, names(&list).len()), (200, items), "{query}: {list}");
        let requests = stage.ground.proxy.requests() - before;
        assert!(requests <= requests_max, "{query}: {requests} requests to the cluster");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_objects_that_leave_while_a_list_is_read_are_on_one_page_each() {
    let stage = Stage::on_sqlite().await;
    let all: BTreeSet<String> = (0..40).map(|number| format!("live-{number:02}")).collect();
    for name in &all {
        stage.create(name, json!({"team": "a"}), json!({})).await;
    }
    let leaving: Vec<String> = all.iter().cloned().collect();
    // Some leave before the first page, some after it: of those before and behind it. Then the list goes on with the
    // server that has seen its pages, or with another one, which has to ask the cluster.
    evict(&stage, &leaving[30..]).await;
    for (part, query) in ["", "labelSelector=team%3Da"].iter().enumerate() {
        let first = format!("{MODELS}?limit=12&{query}");
        let (_, page) = send(&stage.api, "GET", &first, &Value::Null).await;
        let leaving: Vec<String> = leaving[part * 15..part * 15 + 15].to_vec();
        evict(&stage, &leaving).await;
        let by_two = Sizes {
            snapshot: 2,
            ..Sizes::default()
        };
        for server in [&stage.served_by(by_two).await, &stage.later, &stage.api] {
            let mut found: Vec<String> = names(&page).into_iter().map(str::to_owned).collect();
            let mut token = page["metadata"]["continue"].as_str().map(str::to_owned);
            while let Some(next) = token {
                let path = format!("{first}&continue={next}");
                let (code, page) = send(server, "GET", &path, &Value::Null).await;
                assert_eq!(code, 200, "{page}");
                found.extend(names(&page).into_iter().map(str::to_owned));
                token = page["metadata"]["continue"].as_str().map(str::to_owned);
            }
            assert_eq!(found.len(), all.len(), "{query}: {found:?}");
            assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), all, "{query}");
        }
    }
    stage.end().await;
}
