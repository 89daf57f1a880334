//! `kindex verify` while rows are in another version of their kind.

use std::sync::Arc;
use std::time::Duration;

use kindex_maintenance::sides::Sides;
use kindex_maintenance::verify::{Checked, Class, Finding, Options, verify};
use kindex_query::Life;
use kindex_store::MetadataStorage;
use kindex_store::progress::NoProgress;
use kindex_tests::kinds::trial::KIND;
use kindex_tests::trials::PLATFORM;
use serde_json::{Value, json};

use super::trials::{OLD, in_v2, run, store_as, today, trial};
use crate::store::backend::Backend;
use crate::store::shelf::Shelf;
use crate::store::widget::at;

scenarios!(
    a_row_in_another_version_differs_only_if_its_object_does,
    columns_of_a_converted_row_are_compared_again,
);

async fn verified(store: &Arc<dyn MetadataStorage>, shelf: &Arc<Shelf>) -> (Checked, Vec<(String, Class, String)>) {
    let sides = Sides {
        platform: PLATFORM,
        cluster: shelf.clone(),
        storage: store.clone(),
    };
    let options = Options {
        settle: Duration::from_millis(5),
        ..Options::default()
    };
    let mut found: Vec<Finding> = Vec::new();
    let checked = verify(&sides, &KIND, &options, &NoProgress, &mut |finding| found.push(finding)).await;
    let found = found.into_iter().flat_map(|finding| {
        let uid = finding.uid.clone();
        let differences = finding.differences.into_iter();
        differences.map(move |one| (uid.clone(), one.class, one.detail))
    });
    (checked.expect("both sides answer"), found.collect())
}

async fn a_row_in_another_version_differs_only_if_its_object_does(backend: Backend) {
    let store = today(&backend).await;
    let mut bad = trial("bad", 5);
    bad["spec"]["hours"] = json!("two");
    let mut unknown = trial("unknown", 5);
    unknown["apiVersion"] = json!("traps.dev/v0");
    let objects = [
        (trial("live", 5), Life::Live),
        (trial("other", 5), Life::Live),
        (bad, Life::Live),
        (trial("evicted", 5), Life::Archived),
        (unknown, Life::Deleted),
    ];
    store_as(store.as_ref(), &OLD, &objects, at(0)).await;
    let shelf = Arc::new(Shelf::default());
    // As a server lays it out: the fields in another order.
    let served: Value = serde_json::from_str(&in_v2(&trial("live", 5).to_string())).expect("JSON");
    shelf.put_text(&format!("{served:#}"));
    let mut other: Value = serde_json::from_str(&in_v2(&trial("other", 5).to_string())).expect("JSON");
    other["spec"]["seconds"] = json!(1);
    shelf.put_text(&other.to_string());
    shelf.put_text(&in_v2(&trial("bad", 5).to_string()));

    let (checked, mut found) = verified(&store, &shelf).await;
    found.sort();
    let found: Vec<(&str, Class)> = found.iter().map(|(uid, class, _)| (&**uid, *class)).collect();
    let expected = [
        ("bad", Class::Payload),
        ("other", Class::Payload),
        ("unknown", Class::Metadata),
    ];
    assert_eq!(found, expected);
    assert_eq!((checked.rows, checked.unconverted, checked.lost), (5, 4, 0));
}

async fn columns_of_a_converted_row_are_compared_again(backend: Backend) {
    let store = today(&backend).await;
    store_as(store.as_ref(), &OLD, &[(trial("a", 5), Life::Archived)], at(0)).await;
    let shelf = Arc::new(Shelf::default());
    let plant = "UPDATE trial SET algorithm = 'other'";
    if backend.rows(plant).await.is_none() {
        return;
    }
    assert_eq!(
        verified(&store, &shelf).await.0.differing,
        0,
        "the conversion makes them anew"
    );
    assert_eq!(run(&store, 10).await.converted, 1);
    let (checked, found) = verified(&store, &shelf).await;
    assert_eq!((checked.unconverted, found), (0, Vec::new()));
    backend.rows(plant).await.expect("planted");
    let (_, found) = verified(&store, &shelf).await;
    let classes: Vec<Class> = found.iter().map(|(_, class, _)| *class).collect();
    assert_eq!(classes, [Class::Column]);
}
