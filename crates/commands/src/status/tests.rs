//! Which kinds are settled, who is waited for, and what others hold, over an embedded cluster.

use std::convert::Infallible;
use std::future::ready;

use axum::http::{Request, Response};
use kindex_cluster::ClusterOptions;
use kindex_embedded::Embedded;
use kindex_generated::kinds::model;
use kindex_model::object::ResourceVersion;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use kube::client::Body;
use kube::{Api, Client};

use super::*;
use crate::install::{ClusterOwner, crds};

#[tokio::test]
async fn objects_that_others_hold_are_found_on_all_pages() {
    static KINDS: &[&Kind] = &[&model::KIND];
    let registry = Registry {
        kinds: KINDS,
        ..kindex_generated::registry()
    };
    let (embedded, _) = Embedded::serve(ClusterOptions::default(), std::future::pending()).await;
    let client = Client::try_from(embedded.config()).expect("a client");
    crds(&client, &registry, ClusterOwner::Kindex)
        .await
        .expect("models are served");
    let resource = crate::client::api_resource(&model::KIND);
    let models: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    for number in 0..7 {
        let mut object = DynamicObject::new(&format!("m{number}"), &resource);
        if number % 2 == 0 {
            object.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
        }
        models.create(&PostParams::default(), &object).await.expect("created");
    }
    for number in [0, 2, 4, 6] {
        let deleted = models.delete(&format!("m{number}"), &DeleteParams::default()).await;
        assert!(deleted.expect("held").is_left(), "somebody holds it");
    }
    let cluster = KubeCluster::from(client);
    for page_rows in [2, 1, 7, PAGE_ROWS] {
        let listed = list(&cluster, &model::KIND, &registry.platform, 3, page_rows).await;
        let listed = listed.expect("the cluster answers").expect("models are served");
        let held: Vec<&str> = listed.held.iter().map(|held| &*held.name).collect();
        assert_eq!(
            (listed.objects, held),
            (7, vec!["m0", "m2", "m4", "m6"]),
            "pages of {page_rows}"
        );
    }
}

fn status(state: State) -> KindStatus {
    KindStatus {
        kind: "Model",
        state,
        objects: 0,
        live: 0,
        evicted: 0,
        deleted: 0,
        quarantined: 0,
        held_orphans: 0,
        departing: 0,
        held: HeldObjects::default(),
        lag_versions: None,
    }
}

#[test]
fn waiting_ends_where_no_kind_that_is_served_is_unsettled() {
    for (states, expected) in [
        (&[][..], true),
        (&[State::Settled, State::Settled], true),
        (&[State::Settled, State::Unserved], true),
        (&[State::Settled, State::Unserved, State::Behind], false),
        // They may be about to come.
        (&[State::Unserved, State::Unserved], false),
        (&[State::Unserved, State::NotSynced], false),
    ] {
        let statuses: Vec<KindStatus> = states.iter().copied().map(status).collect();
        assert_eq!(is_final(&statuses), expected, "{states:?}");
    }
}

/// What follows on stderr would go on in the same line.
#[test]
fn what_is_printed_ends_with_its_line() {
    let mut held = HeldObjects::default();
    held.add(HeldObject {
        namespace: "default".to_owned(),
        name: "one".to_owned(),
        uid: "u".to_owned(),
        finalizers: vec!["example.com/hold".to_owned()],
    });
    let status = KindStatus {
        held,
        ..status(State::Settled)
    };
    let text = render(&[status], Form::Table).expect("a table");
    assert!(
        text.ends_with("\n\nModel default/one is held by example.com/hold\n"),
        "{text}"
    );
}

#[test]
fn a_kind_is_settled_only_where_nothing_is_in_the_way() {
    let version = ResourceVersion(9);
    let settled = Some(Checkpoint::Settled(version));
    let held = Some(Checkpoint::Held(version));
    assert_eq!(State::new(settled, 3, 3, 0), State::Settled);
    assert_eq!(State::new(settled, 3, 2, 0), State::Behind);
    assert_eq!(State::new(settled, 3, 2, 1), State::Quarantine);
    assert_eq!(State::new(held, 0, 600, 0), State::HoldsOrphans);
    let restoring = Some(Checkpoint::Restoring(version));
    assert_eq!(State::new(restoring, 3, 3, 0), State::Restoring);
    assert_eq!(State::new(None, 0, 0, 0), State::NotSynced);
}

/// As if the kinds of a cluster were settled because a proxy before it answers 404 of its own.
#[tokio::test]
async fn the_page_of_a_proxy_is_no_kind_that_waits_for_its_crd() {
    let answer = |discovery: Option<&'static str>| {
        tower::service_fn(move |request: Request<Body>| {
            let (code, text) = match discovery.filter(|_| request.uri().path() == "/apis") {
                Some(groups) => (200_u16, groups),
                None => (404, "404 page not found"),
            };
            let response = Response::builder()
                .status(code)
                .body(Body::from(text.as_bytes().to_vec()));
            ready(Ok::<_, Infallible>(response.expect("an answer")))
        })
    };
    let groups = r#"{"kind": "APIGroupList", "groups": [{"name": "apiextensions.k8s.io", "versions": []}]}"#;
    for (discovery, is_unserved) in [(Some(groups), true), (None, false)] {
        let cluster = KubeCluster::from(Client::new(answer(discovery), "default"));
        let listed = list(
            &cluster,
            &model::KIND,
            &kindex_generated::registry().platform,
            0,
            PAGE_ROWS,
        )
        .await;
        assert_eq!(listed.is_ok(), is_unserved);
        assert!(!listed.is_ok_and(|listed| listed.is_some()));
    }
}
