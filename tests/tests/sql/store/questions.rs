//! What is asked of a query besides its rows: named queries by their parameters, plans, forged tokens.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kindex_query::{Reach, Select, Stored};
use kindex_store::{Access, StoreError};
use serde_json::{Value, json};

use super::backend::Backend;
use super::widget::{WIDGET, at, soft_delete, widget};

scenarios!(
    a_named_query_finds_rows_by_its_parameters,
    parameters_that_a_named_query_cannot_take_are_refused,
    a_plan_names_the_key_and_the_scan,
    a_forged_token_is_refused,
);

async fn fill(backend: &Backend) {
    let ranked = |uid: &str, group: &str, rank: i64| {
        let spec = json!({"group": group, "order": rank, "key": rank, "rank": rank});
        widget(uid, uid, 1).spec(spec).status(json!({"ready": false})).live()
    };
    let mut batch: Vec<_> = (0..6).map(|rank| ranked(&format!("u{rank}"), "g", rank)).collect();
    batch.push(ranked("other", "h", 3));
    backend.write_all(&batch, at(0)).await;
    backend.write_all(&[soft_delete("u4")], at(1)).await;
}

fn parameters(changed: &[(&str, &str)]) -> BTreeMap<String, String> {
    let usual = [
        ("group", "g"),
        ("least", "1"),
        ("below", "5"),
        ("unlike", "true"),
        ("after", "2020-01-01"),
    ];
    let all = usual.iter().chain(changed);
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn uids(items: &[Stored]) -> Vec<&str> {
    items.iter().map(|item| &*item.object.metadata.uid.0).collect()
}

async fn a_named_query_finds_rows_by_its_parameters(backend: Backend) {
    fill(&backend).await;
    let store = &*backend.store;
    let usual = parameters(&[]);
    let first = store
        .query_by_template_id("ranked", &usual, None, None)
        .await
        .expect("a page");
    assert_eq!(uids(&first.items), ["u3", "u2"], "the query's own limit");
    let token = first.continue_token.as_deref();
    let last = store.query_by_template_id("ranked", &usual, Some(9), token).await;
    let last = last.expect("the rest");
    assert_eq!((uids(&last.items), last.continue_token), (vec!["u1"], None));
    let other = parameters(&[("group", "h")]);
    let foreign = store.query_by_template_id("ranked", &other, None, token).await;
    assert!(matches!(foreign, Err(StoreError::Continue(_))), "{foreign:?}");
    for injected in ["g' OR '1'='1", "'; DROP TABLE widget; --", "`", "?"] {
        let harmless = parameters(&[("group", injected)]);
        let page = store.query_by_template_id("ranked", &harmless, None, None).await;
        assert_eq!(uids(&page.expect("a page").items), [""; 0], "{injected}");
    }
}

async fn parameters_that_a_named_query_cannot_take_are_refused(backend: Backend) {
    let mut lacking = parameters(&[]);
    lacking.remove("below");
    let known = "one of group, least, below, unlike, after";
    for (id, parameters, words) in [
        (
            "unranked",
            parameters(&[]),
            "there is no query \"unranked\": one of ranked".to_owned(),
        ),
        ("ranked", lacking, "query ranked: parameter below is missing".to_owned()),
        (
            "ranked",
            parameters(&[("color", "red")]),
            format!("query ranked has no parameter \"color\": {known}"),
        ),
        (
            "ranked",
            parameters(&[("least", "1 OR 1=1")]),
            "query ranked: parameter least: \"1 OR 1=1\" is not a whole number".to_owned(),
        ),
        (
            "ranked",
            parameters(&[("unlike", "1")]),
            "query ranked: parameter unlike: \"1\" is not true or false".to_owned(),
        ),
        (
            "ranked",
            parameters(&[("after", "soon")]),
            "query ranked: parameter after: \"soon\" is not a time, as in 2026-11-01T12:00:00Z or 2026-11-01"
                .to_owned(),
        ),
    ] {
        let refused = backend.store.query_by_template_id(id, &parameters, None, None).await;
        assert_eq!(refused.expect_err(&words).to_string(), words);
    }
}

async fn a_plan_names_the_key_and_the_scan(backend: Backend) {
    let batch: Vec<_> = (0..300)
        .map(|n| widget(&format!("u{n:03}"), &format!("n{n:03}"), 1).live())
        .collect();
    backend.write_all(&batch, at(0)).await;
    let mut narrowed = Select::all(&WIDGET);
    narrowed.filter_by("create_time=2001-01-01").expect("a condition");
    assert_eq!(narrowed.reach(), Reach::Key("widget_create_time"));
    let plan = backend.store.explain(&narrowed, None).await.expect("a plan");
    let read = plan.steps.iter().find(|step| step.table.as_deref() == Some("t"));
    let read = read.expect("the table is read");
    assert_eq!(
        (read.access, read.key.as_deref()),
        (Access::Search, Some("widget_create_time"))
    );
    assert!(plan.statement.sql.starts_with("SELECT "));

    let mut scanning = Select::all(&WIDGET);
    scanning.filter_by("key=7").expect("a condition");
    assert_eq!(scanning.reach(), Reach::Scan("key"));
    scanning.order_by("rank").expect("a column");
    scanning.allow_scan();
    let plan = backend.store.explain(&scanning, None).await.expect("a plan");
    assert!(plan.steps.iter().any(|step| step.access == Access::Scan), "{plan:?}");
    assert!(plan.steps.iter().any(|step| step.sorts), "{plan:?}");
}

async fn a_forged_token_is_refused(backend: Backend) {
    fill(&backend).await;
    let mut select = Select::all(&WIDGET);
    select.order_by("order:desc").expect("a column");
    select.limit(2);
    let page = backend.store.select(&select, None).await.expect("a page");
    let token = page.continue_token.expect("more rows");
    let bytes = URL_SAFE_NO_PAD.decode(&token).expect("a token is Base64");
    let genuine: Value = serde_json::from_slice(&bytes).expect("of JSON");
    for after in [
        json!([{"Text": "1 OR 1=1"}, {"Text": "u1"}]),
        json!([{"Int": 3}, "Null"]),
        json!([{"Int": 3}, {"Int": 3}]),
        json!([{"Int": 3}]),
        json!([]),
        json!([{"Int": 3}, {"Text": "u1"}, {"Text": "u1"}]),
        json!("' OR 1=1"),
    ] {
        let mut forged = genuine.clone();
        forged["after"] = after;
        let forged = URL_SAFE_NO_PAD.encode(forged.to_string());
        let refused = backend.store.select(&select, Some(&forged)).await;
        assert!(matches!(refused, Err(StoreError::Continue(_))), "{refused:?}");
    }
    // Well made, it is a place in the order like any other, and its text is bound.
    let mut forged = genuine;
    forged["after"] = json!([{"Int": 3}, {"Text": "'; DROP TABLE widget; --"}]);
    let forged = URL_SAFE_NO_PAD.encode(forged.to_string());
    let page = backend.store.select(&select, Some(&forged)).await.expect("a page");
    assert_eq!(page.items.len(), 2);
    for cut in 0..token.len() {
        let refused = backend.store.select(&select, Some(&token[..cut])).await;
        assert!(matches!(refused, Err(StoreError::Continue(_))), "{cut}: {refused:?}");
    }
}
