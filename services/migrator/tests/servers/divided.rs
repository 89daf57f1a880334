//! Two API servers of different releases on one etcd: the older one still writes the version before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Method, Request};
use kindex_harness::controlplane::apart::ApiServer;
use kindex_harness::wait::eventually;
use kindex_migrator::cluster::Cluster;
use kindex_migrator::cluster::discover::discover;
use kindex_migrator::cluster::reconcile::Memory;
use kindex_migrator::cluster::work::work;
use kindex_migrator::discovery::Discovered;
use kindex_migrator::hash::Hash;
use kindex_migrator::run::Verdict;
use kindex_migrator::run::outdated::Outdated;
use kindex_migrator::trigger::Finding;
use kindex_migrator::wire::GroupResource;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::ApiResource;
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::stage::{Plane, client};
use super::zoo::{PACE, force, hashes_of, install, migrations_of, reconcile_one};

/// A release that serves the kind in v1 and stores it in v1beta1, which the one before it could read.
const OLDER: [&str; 1] = ["--emulated-version=1.34"];
const GROUP: &str = "storage.k8s.io";
const PREFIX: &str = "/registry/volumeattributesclasses/";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_migrated_before_the_last_server_is_upgraded() {
    let Some(plane) = Plane::start(&[]) else { return };
    let mut older = ApiServer::start(&plane.etcd, &OLDER);
    let (newest, second) = (
        client(&plane.server, plane.server.port).await,
        client(&older, older.port).await,
    );
    install(&newest).await;
    let cluster = Cluster::new(newest.clone(), vec![second.clone()]);
    let classes = GroupResource {
        group: GROUP.to_owned(),
        resource: "volumeattributesclasses".to_owned(),
    };
    let hash = |version| Hash::of(GROUP, version, "VolumeAttributesClass");
    create(&second, "by-the-older").await;
    create(&newest, "by-the-newest").await;
    assert_eq!(
        stored_in(&plane),
        [("by-the-newest", "v1"), ("by-the-older", "v1beta1")].map(owned)
    );

    let mut memory = Memory::default();
    assert_eq!(
        reconcile_one(&cluster, &mut memory, classes.clone()).await,
        Some(Finding::Divided)
    );
    let (listed, current) = hashes_of(&newest, &classes).await;
    assert_eq!(current, "Unknown");
    for version in ["v1", "v1beta1"] {
        assert!(
            listed.contains(&hash(version).to_string()),
            "{version} is not in {listed:?}"
        );
    }
    assert!(migrations_of(&newest, &classes).await.is_empty(), "none is started");
    // Nor is one that somebody asks for.
    let forced = force(&newest, &classes).await;
    let verdict = work(&cluster, forced, PACE).await.expect("saved");
    assert_eq!(verdict, Some(Verdict::Outdated(Outdated::Divided)));
    assert_eq!(
        stored_in(&plane),
        [("by-the-newest", "v1"), ("by-the-older", "v1beta1")].map(owned)
    );

    older.restart(&[]);
    let agreed = Discovered::Agreed(hash("v1"));
    eventually("agreement", async || {
        discover(&cluster, &[GROUP.to_owned()].into()).await.of(&classes) == agreed
    })
    .await;
    assert_eq!(reconcile_one(&cluster, &mut memory, classes.clone()).await, None);
    let migration = migrations_of(&newest, &classes).await.remove(0);
    let verdict = work(&cluster, migration, PACE).await.expect("saved");
    assert_eq!(verdict, Some(Verdict::Succeeded));
    reconcile_one(&cluster, &mut memory, classes.clone()).await;
    let v1 = hash("v1").to_string();
    assert_eq!(hashes_of(&newest, &classes).await, (vec![v1.clone()], v1));
    assert_eq!(
        stored_in(&plane),
        [("by-the-newest", "v1"), ("by-the-older", "v1")].map(owned)
    );
}

/// A client of a server behind the same address as another one, which is a moment late: once the class was migrated,
/// the late server writes it anew.
fn with_a_late_write(newest: &Client, late: &Client, class: &'static str) -> Client {
    let (newest, late, written) = (newest.clone(), late.clone(), Arc::new(AtomicBool::new(false)));
    let answer = move |request: Request<Body>| {
        let (newest, late, written) = (newest.clone(), late.clone(), written.clone());
        async move {
            let is_dry = request.uri().query().is_some_and(|query| query.contains("dryRun"));
            let is_of_class = request.method() == Method::PATCH && request.uri().path().ends_with(class);
            let response = newest.send(request).await;
            if is_of_class && !is_dry && !written.swap(true, Ordering::Relaxed) {
                let api: Api<DynamicObject> = Api::all_with(late, &kind());
                let label = Patch::Merge(json!({"metadata": {"labels": {"written": "late"}}}));
                let patched = api.patch(class, &PatchParams::default(), &label).await;
                patched.expect("written");
            }
            response
        }
    };
    Client::new(tower::service_fn(answer), "default")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_late_server_writes_in_the_old_version_is_found_by_the_verification() {
    let Some(plane) = Plane::start(&[]) else { return };
    let older = ApiServer::start(&plane.etcd, &OLDER);
    let (newest, late) = (
        client(&plane.server, plane.server.port).await,
        client(&older, older.port).await,
    );
    install(&newest).await;
    for name in ["a", "b", "c"] {
        create(&late, name).await;
    }
    let classes = GroupResource {
        group: GROUP.to_owned(),
        resource: "volumeattributesclasses".to_owned(),
    };
    let cluster = Cluster::new(with_a_late_write(&newest, &late, "b"), Vec::new());
    let forced = force(&newest, &classes).await;
    let verdict = work(&cluster, forced, PACE).await.expect("saved");
    assert_eq!(verdict, Some(Verdict::Succeeded));
    assert_eq!(stored_in(&plane), ["a", "b", "c"].map(|name| owned((name, "v1"))));
    let api: Api<DynamicObject> = Api::all_with(newest.clone(), &kind());
    let written = api.get("b").await.expect("there");
    assert_eq!(written.labels().get("written").map(String::as_str), Some("late"));
    // The pass that migrated, the one that found what was written late, and the one that changed nothing.
    let run = migrations_of(&newest, &classes).await.remove(0);
    let run = run.status.expect("a status").run();
    assert_eq!((run.passes, run.pass.rewritten, run.all_passes().rewritten), (3, 0, 4));
}

fn kind() -> ApiResource {
    ApiResource {
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        api_version: format!("{GROUP}/v1"),
        kind: "VolumeAttributesClass".to_owned(),
        plural: "volumeattributesclasses".to_owned(),
    }
}

async fn create(client: &Client, name: &str) {
    let kind = kind();
    let class = DynamicObject::new(name, &kind).data(json!({"driverName": "d", "parameters": {"p": "v"}}));
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    api.create(&PostParams::default(), &class).await.expect("created");
}

fn owned((name, version): (&str, &str)) -> (String, String) {
    (name.to_owned(), version.to_owned())
}

/// Each class with the version that etcd has it in. Kinds of Kubernetes itself are stored as protobuf, which begins
/// with the version as it is written.
fn stored_in(plane: &Plane) -> Vec<(String, String)> {
    let version = |text: &str| {
        let (_, after) = text.split_once("storage.k8s.io/").expect("its group");
        let letters = after.chars().take_while(char::is_ascii_alphanumeric);
        letters.collect::<String>()
    };
    let stored = plane.etcd.stored(PREFIX);
    let name = |key: &str| key.trim_start_matches(PREFIX).to_owned();
    stored.iter().map(|one| (name(&one.key), version(&one.text))).collect()
}
