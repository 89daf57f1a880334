//! A process that stood still carries out a step of a holder that has left the cluster meanwhile: what an archived one
//! names at another service stays held, since nobody places its reference anew.

use std::future::ready;
use std::sync::{Arc, Mutex};

use axum::http::{Method, Uri};
use axum::{Json, Router};
use futures::future::join_all;
use kindex_deletion::archive::Archive as _;
use kindex_deletion::archive::sql::SqlArchive;
use kindex_deletion::cluster::Cluster;
use kindex_deletion::cluster::carry_out::carry_out;
use kindex_deletion::cluster::outcome::Task;
use kindex_deletion::decide::{Seen, Step};
use kindex_deletion::kinds::Kinds;
use kindex_deletion::object::{Key, KindName, Object};
use kindex_deletion::peer::{Peers, Transport};
use kindex_kube_client::peer::Address;
use kindex_model::object::{Object as Text, Uid};
use kindex_store::Deletion;
use kube::Client;
use serde_json::json;
use tokio::net::TcpListener;

use super::absent::absent;
use super::backend::Backend;
use super::direct::evict;
use super::restored_holders::{HOSTED, HOSTED_KINDS, registry};
use super::tombstones::child;
use super::widget::at;

scenarios!(
    an_archived_object_names_what_its_field_says,
    only_what_an_archived_holder_names_at_another_service_stays_held,
);

const GROUP: &str = "region.example.com";
/// Widgets: one is archived, one is archived and was moved to another network before, one was deleted, and one was
/// never stored. Whether each of them names the network `n`, as far as it is archived.
const HOLDERS: [(&str, Option<bool>); 4] = [
    ("stays", Some(true)),
    ("moved", Some(false)),
    ("gone", None),
    ("unknown", None),
];

/// An archive with these widgets.
async fn archive(backend: Backend) -> (Backend, Arc<SqlArchive>) {
    let registry = registry(&HOSTED_KINDS);
    let backend = backend.with_registry(registry).await;
    for (holder, network) in [("stays", "n"), ("moved", "m"), ("gone", "n")] {
        evict(&backend, &child(holder, network)).await;
    }
    let deleted = backend
        .store
        .delete_direct(&HOSTED, &Uid::from("gone"), None, at(1))
        .await;
    assert_eq!(deleted.expect("an answer"), Deletion::Done);
    let archive = SqlArchive::new(backend.store.clone(), registry, Kinds::of(&registry));
    (backend, Arc::new(archive))
}

fn network(name: &str) -> Key {
    Key {
        kind: KindName::new(GROUP, "Network"),
        namespace: "shop".into(),
        name: name.into(),
    }
}

/// A widget as it was known: live, and it named the network `n`.
fn known(holder: &str) -> Object {
    let text = Text::parse_str(&child(holder, "n").text()).expect("an object");
    Kinds::of(&registry(&HOSTED_KINDS)).read(&HOSTED, &text)
}

/// The service of networks, which has all of them, and the requests that change references on these.
pub(super) async fn region() -> (Peers, Arc<Mutex<Vec<String>>>) {
    let version = json!({"groupVersion": "region.example.com/v1", "version": "v1"});
    let groups = json!({"kind": "APIGroupList", "apiVersion": "v1",
        "groups": [{"name": GROUP, "versions": [version], "preferredVersion": version}]});
    let resources = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "region.example.com/v1",
        "resources": [{"name": "networks", "singularName": "network", "namespaced": true, "kind": "Network",
            "verbs": ["get"]}]});
    let live = json!({"target": {"uid": "n", "state": "Live", "resourceVersion": "7"}, "references": []});
    let sent: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = sent.clone();
    let router: Router = Router::new().fallback(move |method: Method, at: Uri| {
        if method != Method::GET {
            noted.lock().expect("nobody panics").push(format!("{method} {at}"));
        }
        ready(match at.path() {
            "/apis" => Json(groups.clone()),
            "/apis/region.example.com/v1" => Json(resources.clone()),
            _ => Json(live.clone()),
        })
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let address = Address {
        name: "region".to_owned(),
        url,
        ca_file: None,
        token_file: None,
    };
    (Peers::new([(network("n").kind, address)], &Transport::Events), sent)
}

async fn an_archived_object_names_what_its_field_says(backend: Backend) {
    let (_backend, archive) = archive(backend).await;
    for (holder, names) in HOLDERS {
        let found = archive.names(&known(holder), &network("n")).await;
        assert_eq!(found, Ok(names), "{holder}");
    }
}

/// As if each holder that has left the cluster held nothing any more, or as if all of them still held what they named.
async fn only_what_an_archived_holder_names_at_another_service_stays_held(backend: Backend) {
    let (_backend, archive) = archive(backend).await;
    let (peers, sent) = region().await;
    let empty: Router = Router::new().fallback(|at: Uri| ready(absent(&at)));
    let cluster = Cluster::new(Client::new(empty, "default"), Kinds::of(&registry(&HOSTED_KINDS)));
    let cluster = cluster.beside(peers).with_archive(archive);
    let peer = cluster.peers().of(&network("n").kind).expect("it is known");
    let target = peer.look(&network("n")).await.expect("an answer").expect("a network");
    let seen = Seen::of(&target);
    let place = Step::Place {
        reference: "parent",
        target: seen.clone(),
    };
    for step in [Step::Release(seen), place] {
        sent.lock().expect("nobody panics").clear();
        let tasks = HOLDERS.map(|(holder, _)| Task {
            object: known(holder),
            others: Vec::new(),
            step: step.clone(),
            target: Some(target.clone()),
        });
        let outcomes = join_all(tasks.iter().map(|task| carry_out(&cluster, task, at(3)))).await;
        assert!(outcomes.iter().all(|outcome| outcome.failed.is_none()), "{outcomes:?}");
        let sent = sent.lock().expect("nobody panics").clone();
        let releases = |of: &str| {
            let releases = sent.iter().filter(|one| one.starts_with("DELETE "));
            let ends = releases.filter_map(|one| one.split_once(&format!("/widget.test.kindex/{of}")));
            ends.map(|(_, condition)| condition.to_owned()).collect::<Vec<_>>()
        };
        for (holder, names) in HOLDERS {
            // What may still come back depends on the version that was read before the archive was asked.
            let expected = match names {
                Some(true) => vec![],
                Some(false) => vec!["?resourceVersion=7"],
                None => vec![""],
            };
            assert_eq!(releases(holder), expected, "{holder}, {step:?}: {sent:?}");
        }
    }
}
