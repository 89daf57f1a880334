//! The trigger and the migrator on a kube-apiserver.

use std::collections::BTreeSet;
use std::time::Duration;

use kindex_harness::controlplane::ControlPlane;
use kindex_harness::require::require;
use kindex_harness::wait::eventually;
use kindex_migrator::cluster::Cluster;
use kindex_migrator::cluster::discover::discover;
use kindex_migrator::cluster::reconcile::{Memory, reconcile};
use kindex_migrator::cluster::settings::Pace;
use kindex_migrator::cluster::work::work;
use kindex_migrator::discovery::Discovered;
use kindex_migrator::hash::Hash;
use kindex_migrator::run::Verdict;
use kindex_migrator::trigger::Settings;
use kindex_migrator::wire::definition;
use kindex_migrator::wire::{GroupResource, StorageState, StorageVersionMigration};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::ApiResource;
use kube::{Client, Config};
use serde_json::{Value, json};

const GROUP: &str = "zoo.example.com";
const NAME: &str = "pets.zoo.example.com";
const PETS: u64 = 50;

const SETTINGS: Settings = Settings {
    period: Duration::from_secs(600),
    settle: Duration::ZERO,
    retry: Duration::from_secs(3_600),
    launch: true,
};

const PACE: Pace = Pace { page: 20, workers: 4 };

/// A control plane of one test, with the resources of the migrator.
struct Stage {
    client: Client,
    cluster: Cluster,
    _plane: ControlPlane,
}

impl Stage {
    /// `None` without a control plane.
    async fn start() -> Option<Self> {
        if !require("controlplane", ControlPlane::installed()) {
            return None;
        }
        let plane = ControlPlane::start();
        let kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.expect("a configuration")).expect("a client");
        let stage = Self {
            cluster: Cluster::new(client.clone(), Vec::new()),
            client,
            _plane: plane,
        };
        for manifest in [
            include_str!("../manifests/storagestates.yaml"),
            include_str!("../manifests/storageversionmigrations.yaml"),
        ] {
            stage.apply(&serde_saphyr::from_str(manifest).expect("YAML")).await;
        }
        let served = ["storagestates", "storageversionmigrations"].map(|name| resource("migration.k8s.io", name));
        eventually("the resources of the migrator", async || {
            let discovery = discover(&stage.cluster, &BTreeSet::from(["migration.k8s.io".to_owned()])).await;
            served.iter().all(|name| discovery.served.contains_key(name))
        })
        .await;
        Some(stage)
    }

    /// Creates or changes a definition.
    async fn apply(&self, manifest: &Value) {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &definition::resource());
        let name = manifest["metadata"]["name"].as_str().expect("a name");
        let parameters = PatchParams::apply("tests").force();
        api.patch(name, &parameters, &Patch::Apply(manifest))
            .await
            .expect("applied");
    }

    /// Lets pets be stored in a version, and waits until discovery says so.
    async fn store_pets_in(&self, version: &str) {
        self.apply(&pets(version)).await;
        let wanted = Discovered::Agreed(Hash::of(GROUP, version, "Pet"));
        eventually("the hash of the version", async || {
            let discovery = discover(&self.cluster, &BTreeSet::from([GROUP.to_owned()])).await;
            discovery.of(&resource(GROUP, "pets")) == wanted
        })
        .await;
    }

    async fn create_pets(&self) {
        let pet = ApiResource {
            group: GROUP.to_owned(),
            version: "v1".to_owned(),
            api_version: format!("{GROUP}/v1"),
            kind: "Pet".to_owned(),
            plural: "pets".to_owned(),
        };
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), "default", &pet);
        // Servers accept a kind some moments after they show it.
        eventually("pets are served", async || {
            api.list(&ListParams::default().limit(1)).await.is_ok()
        })
        .await;
        for at in 0..PETS {
            let object = DynamicObject::new(&format!("pet-{at}"), &pet).data(json!({"spec": {"number": at}}));
            api.create(&PostParams::default(), &object).await.expect("created");
        }
    }

    /// One round of the trigger.
    async fn reconcile(&self, memory: &mut Memory) {
        let wanted = BTreeSet::from([resource(GROUP, "pets")]);
        for reconciled in reconcile(&self.cluster, memory, &SETTINGS, &wanted)
            .await
            .expect("a round")
        {
            assert!(reconciled.applied.1.is_none(), "{reconciled:?}");
        }
    }

    /// The only migration.
    async fn migration(&self) -> StorageVersionMigration {
        let api: Api<StorageVersionMigration> = Api::all(self.client.clone());
        let mut found = api.list(&ListParams::default()).await.expect("a list").items;
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    /// Hashes that the state lists, and the current one.
    async fn hashes(&self) -> (Vec<String>, String) {
        let api: Api<StorageState> = Api::all(self.client.clone());
        let status = api.get(NAME).await.expect("a state").status.expect("a status");
        (
            status.persisted_storage_version_hashes,
            status.current_storage_version_hash,
        )
    }
}

fn resource(group: &str, plural: &str) -> GroupResource {
    GroupResource {
        group: group.to_owned(),
        resource: plural.to_owned(),
    }
}

fn pets(storage: &str) -> Value {
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": name == storage,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {"group": GROUP, "scope": "Namespaced",
            "names": {"kind": "Pet", "plural": "pets"}, "versions": [version("v1"), version("v2")]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_the_storage_version_is_migrated_and_then_the_state_lists_one_hash() {
    let Some(stage) = Stage::start().await else { return };
    stage.store_pets_in("v1").await;
    stage.create_pets().await;
    let mut memory = Memory::default();
    let mut listed = "Unknown".to_owned();
    for version in ["v1", "v2", "v1"] {
        stage.store_pets_in(version).await;
        let hash = Hash::of(GROUP, version, "Pet").to_string();
        stage.reconcile(&mut memory).await;
        let (persisted, current) = stage.hashes().await;
        assert_eq!((persisted.first(), &current), (Some(&listed), &hash));

        let verdict = work(&stage.cluster, stage.migration().await, PACE).await;
        assert_eq!(verdict.expect("saved"), Some(Verdict::Succeeded));
        let status = stage.migration().await.status.expect("a status");
        assert!(status.passes >= 2, "a pass verifies");
        assert_eq!(status.total, Some(PETS));
        assert_eq!(status.target_storage_version_hash, hash);

        stage.reconcile(&mut memory).await;
        assert_eq!(stage.hashes().await, (vec![hash.clone()], hash.clone()));
        listed = hash;
    }
}
