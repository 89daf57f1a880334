//! Typed queries on real rows: pages in any order, rows without a value in it, exact labels,
//! and the tokens by which pages go on.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kindex_query::{Narrowed, Page};
use kindex_store::{MetadataStorage, StoreError};
use serde_json::{Value, json};

use super::backend::Backend;
use super::widget::{at, soft_delete, widget};

pub(super) mod widgets {
    //! As the generator declares it, with methods that get out of the way of others.

    use crate::store::widget::WIDGET;

    kindex_query::typed_query! {
        /// A query over widgets.
        pub struct Query of WIDGET;
        columns {
            /// Text.
            unkeyed group GROUP "group": text;
            /// A number of 32 bits.
            unkeyed order ORDER "order": value(i32);
            /// A number of 64 bits.
            unkeyed key KEY "key": value(i64);
            /// A double.
            unkeyed rank RANK "rank": value(f64);
            /// A flag.
            unkeyed ready READY "ready": value(bool);
            /// A time.
            unkeyed end_time END_TIME "end_time": value(jiff::Timestamp);
            /// An unsigned number of 64 bits.
            keyed size SIZE "size": value(u64);
        }
        pairs {}
    }
}

use widgets::{Query, constants};

scenarios!(
    pages_in_any_order_hold_every_row_once,
    rows_without_a_value_come_first_or_last,
    a_full_last_page_has_no_continue_token,
    a_page_goes_on_behind_rows_that_came_and_went,
    labels_are_compared_to_the_letter,
    a_token_goes_on_with_its_own_query_only,
    a_token_has_only_values_that_rows_have,
    the_first_row_is_fetched_alone,
);

/// Rows with every combination of a value, another value and none, so that ties and NULLs are plenty.
async fn fill(backend: &Backend) -> usize {
    let groups = [json!("a"), json!("B"), Value::Null];
    let numbers = [json!(i64::MAX), json!(-7), Value::Null];
    let ranks = [json!(0.1), json!(1e300), Value::Null];
    let times = [json!("2024-02-29T12:00:00.000001Z"), json!("1999-12-31T23:59:59Z")];
    let mut batch = Vec::new();
    for group in &groups {
        for number in &numbers {
            for rank in &ranks {
                for time in &times {
                    let uid = format!("u{:02}", batch.len());
                    let small = number.as_i64().map(|number| number % 5);
                    let spec = json!({"group": group, "order": small, "key": number, "rank": rank});
                    let status = json!({"ready": batch.len() % 3 == 0, "endTime": time});
                    let object = widget(&uid, &uid, 1 + batch.len() as u64);
                    batch.push(object.spec(spec).status(status).live());
                }
            }
        }
    }
    backend.write_all(&batch, at(0)).await;
    batch.len()
}

fn all() -> Query<Narrowed> {
    Query::all().allow_scan()
}

fn uids(page: &Page) -> Vec<String> {
    let uids = page.items.iter().map(|item| item.object.metadata.uid.to_string());
    uids.collect()
}

/// All pages of so many rows, one after the other.
async fn walk(store: &dyn MetadataStorage, query: Query<Narrowed>, rows: u32) -> Vec<String> {
    let query = query.limit(rows);
    let mut page = query.fetch(store).await.expect("the first page");
    let mut found = uids(&page);
    while let Some(token) = &page.continue_token {
        assert_eq!(page.items.len(), rows as usize, "only the last page is shorter");
        page = query.fetch_after(store, token).await.expect("a later page");
        assert!(!page.items.is_empty(), "a token promises another row");
        found.extend(uids(&page));
    }
    found
}

async fn pages_in_any_order_hold_every_row_once(backend: Backend) {
    let rows = fill(&backend).await;
    use constants::{CREATE_TIME, END_TIME, EVICTED_TIME, GROUP, KEY, ORDER, RANK, READY, UID, UPDATE_TIME};
    type Ordered = fn(Query<Narrowed>) -> Query<Narrowed>;
    let orders: [Ordered; 10] = [
        |all| all,
        |all| all.order_by(UID).desc(),
        |all| all.order_by(GROUP).asc(),
        |all| all.order_by(GROUP).desc(),
        |all| all.order_by(KEY).asc().order_by(RANK).desc(),
        |all| all.order_by(RANK).desc().order_by(GROUP).asc(),
        |all| all.order_by(END_TIME).desc().order_by(ORDER).desc(),
        |all| all.order_by(END_TIME).asc().order_by(READY).desc().order_by(KEY).desc(),
        |all| all.order_by(EVICTED_TIME).desc().order_by(READY).asc(),
        |all| all.order_by(CREATE_TIME).desc().order_by(UPDATE_TIME).desc(),
    ];
    for (number, order) in orders.into_iter().enumerate() {
        let whole = order(all()).fetch(&*backend.store).await.expect("one page");
        let mut every = uids(&whole);
        for size in [1, 4, 7] {
            assert_eq!(walk(&*backend.store, order(all()), size).await, every, "order {number}");
        }
        every.sort_unstable();
        every.dedup();
        assert_eq!(every.len(), rows, "order {number}");
    }
}

async fn rows_without_a_value_come_first_or_last(backend: Backend) {
    fill(&backend).await;
    let groups = |page: Page| {
        let groups = page.items.iter().map(|item| {
            let object: Value = serde_json::from_str(item.object.text()).expect("JSON");
            object["spec"]["group"].as_str().map(str::to_owned)
        });
        let mut groups: Vec<Option<String>> = groups.collect();
        groups.dedup();
        groups
    };
    let first_to_last = [None, Some("B".to_owned()), Some("a".to_owned())];
    let page = all().order_by(constants::GROUP).asc().fetch(&*backend.store).await;
    assert_eq!(groups(page.expect("a page")), first_to_last);
    let page = all().order_by(constants::GROUP).desc().fetch(&*backend.store).await;
    let last_to_first: Vec<_> = first_to_last.into_iter().rev().collect();
    assert_eq!(groups(page.expect("a page")), last_to_first);
}

async fn a_full_last_page_has_no_continue_token(backend: Backend) {
    let batch: Vec<_> = (0..6)
        .map(|number| widget(&format!("u{number}"), &format!("n{number}"), number + 1).live())
        .collect();
    backend.write_all(&batch, at(0)).await;
    let query = Query::all().namespace().eq("shop").limit(3);
    let first = query.fetch(&*backend.store).await.expect("a page");
    assert_eq!(uids(&first), ["u0", "u1", "u2"]);
    let token = first.continue_token.expect("more rows");
    let last = query.fetch_after(&*backend.store, &token).await.expect("a page");
    assert_eq!(uids(&last), ["u3", "u4", "u5"]);
    assert_eq!(last.continue_token, None);
}

async fn a_page_goes_on_behind_rows_that_came_and_went(backend: Backend) {
    let write = |uid: &str, version| widget(uid, uid, version).live();
    backend
        .write_all(&["a", "c", "e", "g"].map(|uid| write(uid, 1)), at(0))
        .await;
    let query = Query::all().namespace().eq("shop").live().limit(2);
    let first = query.fetch(&*backend.store).await.expect("a page");
    assert_eq!(uids(&first), ["a", "c"]);
    backend
        .write_all(
            &[write("b", 1), soft_delete("c"), soft_delete("e"), write("f", 1)],
            at(1),
        )
        .await;
    let token = first.continue_token.expect("more rows");
    let next = query.fetch_after(&*backend.store, &token).await.expect("a page");
    assert_eq!(uids(&next), ["f", "g"]);
}

async fn labels_are_compared_to_the_letter(backend: Backend) {
    let labeled = [
        ("u0", Some(("team", "fraud"))),
        ("u1", Some(("team", "fraud "))),
        ("u2", Some(("team", "Fraud"))),
        ("u3", Some(("Team", "fraud"))),
        ("u4", Some(("team", ""))),
        ("u5", None),
    ];
    let batch = labeled.map(|(uid, label)| {
        let object = widget(uid, uid, 1);
        label
            .map_or(object.clone(), |(key, value)| object.label(key, value))
            .live()
    });
    backend.write_all(&batch, at(0)).await;
    backend
        .write(widget("u0", "u0", 2).label("team", "fraud").live(), at(1))
        .await;
    let found = |query: Query<Narrowed>| {
        let store = backend.store.clone();
        async move { uids(&query.fetch(&*store).await.expect("a page")) }
    };
    let none: [&str; 0] = [];
    let query = Query::all;
    assert_eq!(found(query().label("team", "fraud")).await, ["u0"]);
    assert_eq!(found(query().label("team", "fraud ")).await, ["u1"]);
    assert_eq!(found(query().label("team", "")).await, ["u4"]);
    let one_of = query().label_one_of("team", &["Fraud", "fraud ", "risk"]);
    assert_eq!(found(one_of).await, ["u1", "u2"]);
    assert_eq!(found(query().label_one_of("team", &[])).await, none);
    assert_eq!(
        found(all().label_none_of("team", &["fraud", ""])).await,
        ["u1", "u2", "u3", "u5"],
        "an object without the label matches"
    );
    assert_eq!(found(all().label_none_of("team", &[])).await.len(), 6);
    assert_eq!(found(all().has_label("team")).await, ["u0", "u1", "u2", "u4"]);
    assert_eq!(found(all().lacks_label("team")).await, ["u3", "u5"]);
    let both = query().label("team", "fraud").label_one_of("team", &["fraud", "risk"]);
    assert_eq!(found(both).await, ["u0"]);
}

async fn a_token_goes_on_with_its_own_query_only(backend: Backend) {
    fill(&backend).await;
    let query = all().order_by(constants::GROUP).asc().limit(5);
    let page = query.fetch(&*backend.store).await.expect("a page");
    let token = page.continue_token.expect("more rows");
    let refused = async |query: Query<Narrowed>, token: &str| match query.fetch_after(&*backend.store, token).await {
        Err(StoreError::Continue(message)) => message,
        other => panic!("{other:?}"),
    };
    let other_order = all().order_by(constants::GROUP).desc();
    assert!(refused(other_order, &token).await.contains("another query"));
    let other_filter = all().group().eq("a").order_by(constants::GROUP).asc();
    assert!(refused(other_filter, &token).await.contains("another query"));
    for garbage in ["", "bm9uc2Vuc2U", &token[1..]] {
        assert!(refused(all(), garbage).await.contains("not one"), "{garbage}");
    }
    let other_limit = all().order_by(constants::GROUP).asc().limit(9);
    let page = other_limit.fetch_after(&*backend.store, &token).await.expect("a page");
    assert_eq!(page.items.len(), 9);
}

/// What no row can hold comes from nobody's page, and engines have errors of their own for it.
async fn a_token_has_only_values_that_rows_have(backend: Backend) {
    fill(&backend).await;
    use constants::{END_TIME, RANK};
    type Ordered = fn(Query<Narrowed>) -> Query<Narrowed>;
    let (by_time, by_rank): (Ordered, Ordered) = (|all| all.order_by(END_TIME).asc(), |all| all.order_by(RANK).desc());
    for (order, cell, forged) in [
        (by_time, "Time", json!("-009999-01-02T00:00:00Z")),
        (by_time, "Time", json!("0999-12-31T23:59:59Z")),
        (by_time, "Text", json!("2024-02-29T12:00:00Z")),
        (by_rank, "Double", json!(f64::NAN.to_bits())),
        (by_rank, "Double", json!(f64::INFINITY.to_bits())),
    ] {
        let query = || order(all());
        let page = query().limit(1).fetch(&*backend.store).await.expect("a page");
        let token = page.continue_token.expect("more rows");
        let text = URL_SAFE_NO_PAD.decode(token).expect("a token is base64");
        let reported: Value = serde_json::from_slice(&text).expect("of JSON");
        let refused = async |token: &Value| {
            let token = URL_SAFE_NO_PAD.encode(token.to_string());
            match query().limit(1).fetch_after(&*backend.store, &token).await {
                Ok(_) => None,
                Err(StoreError::Continue(message)) => Some(message),
                Err(other) => panic!("{forged}: {other:?}"),
            }
        };
        assert_eq!(refused(&reported).await, None, "as it came");
        let mut other = reported.clone();
        other["after"][0] = json!({ cell: forged });
        assert!(
            refused(&other).await.is_some_and(|why| why.contains("not one")),
            "{forged}"
        );
        let mut unnamed = reported;
        unnamed["after"][1] = json!("Null");
        assert!(
            refused(&unnamed).await.is_some_and(|why| why.contains("not one")),
            "every row has a uid"
        );
    }
}

async fn the_first_row_is_fetched_alone(backend: Backend) {
    fill(&backend).await;
    let first = all().order_by(constants::KEY).desc().fetch_one(&*backend.store).await;
    let first = first.expect("readable").expect("a row");
    assert!(first.object.text().contains(&i64::MAX.to_string()));
    let nothing = Query::all().namespace().eq("nowhere").fetch_one(&*backend.store).await;
    assert!(nothing.expect("readable").is_none());
}
