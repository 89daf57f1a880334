//! A new encryption key: the version stays, the bytes do not.

use std::path::PathBuf;

use kindex_migrator::cluster::Cluster;
use kindex_migrator::cluster::work::work;
use kindex_migrator::run::Verdict;
use kindex_migrator::wire::GroupResource;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::ApiResource;
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::stage::{Plane, client};
use super::zoo::{PACE, force, install, versions};

const PREFIX: &str = "/registry/configmaps/rotated/";
const MAPS: usize = 50;

#[tokio::test(flavor = "multi_thread")]
async fn after_a_rotation_one_run_writes_every_object_once_and_the_next_none() {
    let Some(mut plane) = Plane::start(&[]) else { return };
    rotate(&mut plane, &["first"]);
    let client = client(&plane.server, plane.server.port).await;
    install(&client).await;
    let maps = config_maps(&client);
    create(&client, &maps).await;
    assert_eq!(keys(&plane), ["first"]);

    rotate(&mut plane, &["second", "first"]);
    let before = versions(&maps).await;
    migrate(&client).await;
    assert_eq!(keys(&plane), ["second"]);
    let after = versions(&maps).await;
    assert!(
        before.iter().all(|(name, version)| after[name] != *version),
        "each is written"
    );
    let stored = plane.etcd.stored(PREFIX);

    migrate(&client).await;
    assert_eq!(versions(&maps).await, after);
    assert_eq!(plane.etcd.stored(PREFIX), stored, "none is written");

    rotate(&mut plane, &["second"]);
    let listed = maps
        .list(&ListParams::default())
        .await
        .expect("the first key is not needed any more");
    assert_eq!(listed.items.len(), MAPS);
    assert!(listed.items.iter().all(|map| map.name_any().starts_with("map-")));
}

/// Starts the server again with these keys, of which it writes with the first.
fn rotate(plane: &mut Plane, names: &[&str]) {
    let key = |name: &&str| {
        // 32 bytes of each key's own.
        let secret = k8s_openapi::ByteString(name.bytes().cycle().take(32).collect());
        json!({"name": name, "secret": secret})
    };
    let keys: Vec<_> = names.iter().map(key).collect();
    // What the server itself stored before it had a key is read as it is.
    let providers = json!([{"aescbc": {"keys": keys}}, {"identity": {}}]);
    let config = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["configmaps"], "providers": providers}]});
    let file: PathBuf = plane.etcd.directory().join("encryption.json");
    std::fs::write(&file, config.to_string()).expect("the directory is there");
    let flag = format!("--encryption-provider-config={}", file.display());
    plane.server.restart(&[&flag]);
}

/// The names of the keys with which the maps are stored.
fn keys(plane: &Plane) -> Vec<String> {
    let stored = plane.etcd.stored(PREFIX);
    assert_eq!(stored.len(), MAPS);
    let name = |text: &str| {
        let key = text
            .strip_prefix("k8s:enc:aescbc:v1:")
            .and_then(|rest| rest.split_once(':'));
        key.expect("encrypted").0.to_owned()
    };
    let mut names: Vec<_> = stored.iter().map(|one| name(&one.text)).collect();
    names.dedup();
    names
}

fn resource() -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        plural: "configmaps".to_owned(),
    }
}

fn config_maps(client: &Client) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), "rotated", &resource())
}

async fn create(client: &Client, maps: &Api<DynamicObject>) {
    let kind = ApiResource {
        kind: "Namespace".to_owned(),
        plural: "namespaces".to_owned(),
        ..resource()
    };
    let namespaces: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let namespace = DynamicObject::new("rotated", &kind);
    let created = namespaces.create(&PostParams::default(), &namespace).await;
    created.expect("created");
    for at in 0..MAPS {
        let map =
            DynamicObject::new(&format!("map-{at:02}"), &resource()).data(json!({"data": {"at": at.to_string()}}));
        maps.create(&PostParams::default(), &map).await.expect("created");
    }
}

/// A migration that an operator asks for: the version did not change.
async fn migrate(client: &Client) {
    let resource = GroupResource {
        group: String::new(),
        resource: "configmaps".to_owned(),
    };
    let migration = force(client, &resource).await;
    let cluster = Cluster::new(client.clone(), Vec::new());
    let verdict = work(&cluster, migration, PACE).await;
    assert_eq!(verdict.expect("saved"), Some(Verdict::Succeeded));
}
