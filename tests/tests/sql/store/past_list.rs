//! Lists of the past: who was there at a moment, with the version of then, page by page.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use kindex_model::object::Uid;
use kindex_query::{Life, Page};
use kindex_store::{AsOf, ListAt, RowWrite, StoreError};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::backend::Backend;
use super::widget::{KEEPSAKE, WIDGET, at, soft_delete, widget};

scenarios!(
    a_list_of_the_past_is_what_each_name_stood_for,
    pages_of_the_past_go_on_while_the_present_changes,
    objects_that_came_later_fill_no_page,
    each_object_of_a_long_page_has_its_version_of_then,
    no_later_object_of_its_name_hides_another,
    a_kind_without_a_history_cannot_be_listed,
    a_token_of_another_moment_is_refused,
);

async fn write(backend: &Backend, writes: &[RowWrite], now: Timestamp) {
    backend.store.write(&KEEPSAKE, writes, now).await.expect("written");
}

fn moment(second: i64, limit: u32) -> ListAt {
    ListAt {
        time: at(second),
        namespace: None,
        limit,
    }
}

async fn page(backend: &Backend, wanted: &ListAt, token: Option<&str>) -> Page {
    let page = backend.store.list_at(&KEEPSAKE, wanted, token).await;
    page.expect("a page")
}

/// Name, version and life of each object on all pages.
async fn walk(backend: &Backend, second: i64, limit: u32) -> Vec<(String, u64, Life)> {
    let (mut found, mut token) = (Vec::new(), None::<String>);
    loop {
        let page = page(backend, &moment(second, limit), token.as_deref()).await;
        let more = page.continue_token.is_some();
        assert!(page.items.len() <= limit as usize && (!more || page.items.len() == limit as usize));
        found.extend(page.items.iter().map(|item| {
            let metadata = &item.object.metadata;
            (metadata.name.clone(), metadata.resource_version.0, item.life)
        }));
        token = page.continue_token;
        if token.is_none() {
            return found;
        }
    }
}

async fn a_list_of_the_past_is_what_each_name_stood_for(backend: Backend) {
    const SEED: u64 = 20_261_122;
    let mut random = StdRng::seed_from_u64(SEED);
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut open: BTreeMap<String, String> = BTreeMap::new();
    for step in 0..150_i64 {
        let name = format!("n{}", random.random_range(0..12));
        names.insert(name.clone());
        let version = 10 + u64::try_from(step).expect("small");
        let change = match open.get(&name) {
            None => {
                let uid = format!("{name}-{step:03}");
                open.insert(name.clone(), uid.clone());
                widget(&uid, &name, version).live()
            }
            Some(uid) => match random.random_range(0..4) {
                0 => {
                    let gone = soft_delete(uid);
                    open.remove(&name);
                    gone
                }
                1 => widget(uid, &name, version).archived(),
                _ => widget(uid, &name, version).live(),
            },
        };
        write(&backend, &[change], at(step)).await;
    }
    for second in [-1, 0, 20, 75, 149, 500] {
        let mut expected = Vec::new();
        for name in &names {
            let stood = backend.store.version_at(&KEEPSAKE, "shop", name, at(second)).await;
            if let AsOf::Stored(stored) = stood.expect("readable") {
                expected.push((name.clone(), stored.object.metadata.resource_version.0, stored.life));
            }
        }
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        for limit in [1, 3, 100] {
            assert_eq!(
                walk(&backend, second, limit).await,
                expected,
                "seed {SEED}, at {second}"
            );
        }
    }
}

async fn pages_of_the_past_go_on_while_the_present_changes(backend: Backend) {
    let batch: Vec<RowWrite> = ["a", "b", "c", "d", "e"]
        .map(|name| widget(name, name, 10).live())
        .into();
    write(&backend, &batch, at(0)).await;
    let first = page(&backend, &moment(5, 2), None).await;
    let token = first.continue_token.expect("more");
    write(&backend, &["b", "c"].map(soft_delete), at(10)).await;
    write(
        &backend,
        &[widget("aa", "aa", 20).live(), widget("cc", "cc", 20).live()],
        at(10),
    )
    .await;
    write(&backend, &[widget("d", "d", 30).label("new", "yes").live()], at(11)).await;
    let rest = page(&backend, &moment(5, 9), Some(&token)).await;
    let names: Vec<(&str, u64)> = rest
        .items
        .iter()
        .map(|item| {
            (
                item.object.metadata.name.as_str(),
                item.object.metadata.resource_version.0,
            )
        })
        .collect();
    assert_eq!(names, [("c", 10), ("d", 10), ("e", 10)]);
    let shop = ListAt {
        namespace: Some("shop".to_owned()),
        ..moment(5, 0)
    };
    assert_eq!(page(&backend, &shop, None).await.items.len(), 5);
    for namespace in ["attic", "shop' OR '1'='1"] {
        let nowhere = ListAt {
            namespace: Some(namespace.to_owned()),
            ..shop.clone()
        };
        assert!(page(&backend, &nowhere, None).await.items.is_empty());
    }
}

async fn each_object_of_a_long_page_has_its_version_of_then(backend: Backend) {
    // More than have their versions asked for at once.
    for (version, second) in [(1, 0), (2, 10)] {
        let batch: Vec<RowWrite> = (0..130)
            .map(|number| format!("n{number:03}"))
            .map(|name| widget(&name, &name, version).label("of", &version.to_string()).live())
            .collect();
        write(&backend, &batch, at(second)).await;
    }
    let then = walk(&backend, 5, 500).await;
    assert_eq!(then.len(), 130);
    assert!(then.iter().all(|(_, version, _)| *version == 1), "{then:?}");
}

async fn no_later_object_of_its_name_hides_another(backend: Backend) {
    // Before it in the order, and more than are read at once.
    for (step, uid) in ["z", "b", "c", "d", "e"].into_iter().enumerate() {
        let second = i64::try_from(step).expect("small") * 10;
        write(&backend, &[widget(uid, "a", 1).live()], at(second)).await;
        write(&backend, &[soft_delete(uid)], at(second + 9)).await;
    }
    assert_eq!(walk(&backend, 5, 1).await, [("a".to_owned(), 1, Life::Live)]);
}

async fn objects_that_came_later_fill_no_page(backend: Backend) {
    let early: Vec<RowWrite> = ["x1", "x2", "x3"].map(|name| widget(name, name, 1).live()).into();
    write(&backend, &early, at(0)).await;
    // More than are read at once, and before the others in the order.
    let late: Vec<RowWrite> = (0..1_200)
        .map(|number| format!("a{number:04}"))
        .map(|name| widget(&name, &name, 2).live())
        .collect();
    write(&backend, &late, at(10)).await;
    let first = page(&backend, &moment(5, 2), None).await;
    assert_eq!(first.items.len(), 2);
    let last = page(&backend, &moment(5, 2), first.continue_token.as_deref()).await;
    assert_eq!((last.items.len(), last.continue_token), (1, None));
    assert_eq!(walk(&backend, 10, 500).await.len(), 1_203);
}

async fn a_kind_without_a_history_cannot_be_listed(backend: Backend) {
    let refused = backend.store.list_at(&WIDGET, &moment(0, 1), None).await;
    let refused = refused.expect_err("no history");
    assert!(matches!(&refused, StoreError::NoHistory(kind) if kind == "Widget"));
    assert!(
        refused.to_string().contains("`history = true` in crds.toml"),
        "{refused}"
    );
}

async fn a_token_of_another_moment_is_refused(backend: Backend) {
    let batch: Vec<RowWrite> = ["a", "b", "c"].map(|name| widget(name, name, 10).live()).into();
    write(&backend, &batch, at(0)).await;
    let wanted = moment(5, 1);
    let token = page(&backend, &wanted, None).await.continue_token.expect("more");
    let other_namespace = ListAt {
        namespace: Some("shop".to_owned()),
        ..wanted.clone()
    };
    for other in [moment(6, 1), other_namespace] {
        let refused = backend.store.list_at(&KEEPSAKE, &other, Some(&token)).await;
        assert!(matches!(refused, Err(StoreError::Continue(_))), "{refused:?}");
    }
    let genuine = String::from_utf8(URL_SAFE_NO_PAD.decode(&token).expect("Base64")).expect("JSON");
    for (from, to) in [("{\"Text\":\"a\"}", "\"Null\""), ("{\"Text\":\"a\"}", "{\"Int\":1}")] {
        let forged = URL_SAFE_NO_PAD.encode(genuine.replace(from, to));
        let refused = backend.store.list_at(&KEEPSAKE, &wanted, Some(&forged)).await;
        assert!(matches!(refused, Err(StoreError::Continue(_))), "{to}: {refused:?}");
    }
    let harmless = URL_SAFE_NO_PAD.encode(genuine.replace("{\"Text\":\"a\"}", "{\"Text\":\"a' OR '1'='1\"}"));
    let next = page(&backend, &wanted, Some(&harmless)).await;
    assert_eq!(
        next.items[0].object.metadata.uid,
        Uid::from("b"),
        "a place in the order like any other"
    );
}
