//! A kind of animals in several versions, with the trigger and the migrator that care for it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use kindex_harness::controlplane::apart::Stored;
use kindex_harness::wait::eventually;
use kindex_migrator::cluster::Cluster;
use kindex_migrator::cluster::discover::discover;
use kindex_migrator::cluster::reconcile::{Memory, reconcile};
use kindex_migrator::cluster::settings::Pace;
use kindex_migrator::cluster::work::work;
use kindex_migrator::discovery::Discovered;
use kindex_migrator::hash::Hash;
use kindex_migrator::run::Verdict;
use kindex_migrator::trigger::{Finding, Settings};
use kindex_migrator::wire::definition;
use kindex_migrator::wire::{
    GroupResource, GroupVersionResource, StorageState, StorageVersionMigration, StorageVersionMigrationSpec,
};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, ObjectMeta};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::stage::{Plane, client};

pub(super) const SETTINGS: Settings = Settings {
    period: Duration::from_secs(600),
    settle: Duration::ZERO,
    retry: Duration::from_secs(3_600),
    launch: true,
};

pub(super) const PACE: Pace = Pace { page: 20, workers: 4 };

/// Pets of one API group, at one server.
pub(super) struct Zoo {
    pub(super) client: Client,
    pub(super) cluster: Cluster,
    pub(super) scope: &'static str,
    group: String,
}

impl Zoo {
    /// The zoo of a group, and the kinds of the migrator. There are no pets yet.
    pub(super) async fn open(plane: &Plane, group: &str) -> Self {
        let client = client(&plane.server, plane.server.port).await;
        install(&client).await;
        Self {
            cluster: Cluster::new(client.clone(), Vec::new()),
            client,
            scope: "Namespaced",
            group: group.to_owned(),
        }
    }

    pub(super) fn resource(&self) -> GroupResource {
        GroupResource {
            group: self.group.clone(),
            resource: "pets".to_owned(),
        }
    }

    pub(super) fn hash(&self, version: &str) -> Hash {
        Hash::of(&self.group, version, "Pet")
    }

    /// Where etcd has the pets.
    pub(super) fn prefix(&self) -> String {
        format!("/registry/{}/pets/", self.group)
    }

    /// The definition with these versions, of which one is stored.
    pub(super) fn definition(&self, versions: &[&str], storage: &str) -> Value {
        let version = |name: &&str| {
            json!({"name": name, "served": true, "storage": *name == storage,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
        };
        let versions: Vec<_> = versions.iter().map(version).collect();
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": self.resource().to_string()},
            "spec": {"group": self.group, "scope": self.scope,
                "names": {"kind": "Pet", "plural": "pets"}, "versions": versions}})
    }

    /// Creates or changes the definition.
    pub(super) async fn define(&self, manifest: &Value) {
        define(&self.client, manifest).await;
    }

    /// Lets pets be stored in a version, and waits until discovery says so.
    pub(super) async fn store_in(&self, version: &str) {
        self.define(&self.definition(&["v1", "v2"], version)).await;
        self.shows(&self.hash(version)).await;
    }

    /// Waits until discovery shows this hash.
    pub(super) async fn shows(&self, hash: &Hash) {
        let wanted = Discovered::Agreed(hash.clone());
        eventually("the hash of the version", async || self.discovered().await == wanted).await;
    }

    /// What discovery shows now.
    pub(super) async fn discovered(&self) -> Discovered {
        let discovery = discover(&self.cluster, &BTreeSet::from([self.group.clone()])).await;
        discovery.of(&self.resource())
    }

    /// Deletes the definition and all pets, and waits until they are gone.
    pub(super) async fn abolish(&self) {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &definition::resource());
        kindex_harness::definition::delete(&api, &self.resource().to_string()).await;
    }

    /// All pets, by one of their versions.
    pub(super) fn pets(&self, version: &str) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &self.kind(version))
    }

    /// Pets where they are created, by one of their versions.
    pub(super) fn pets_at_home(&self, version: &str) -> Api<DynamicObject> {
        match self.scope {
            "Cluster" => self.pets(version),
            _ => Api::namespaced_with(self.client.clone(), "default", &self.kind(version)),
        }
    }

    fn kind(&self, version: &str) -> ApiResource {
        ApiResource {
            group: self.group.clone(),
            version: version.to_owned(),
            api_version: format!("{}/{version}", self.group),
            kind: "Pet".to_owned(),
            plural: "pets".to_owned(),
        }
    }

    /// Creates pets, as clients of v1. Servers accept a kind some moments after they show it.
    pub(super) async fn create(&self, numbers: Range<usize>) {
        let (kind, api) = (self.kind("v1"), self.pets_at_home("v1"));
        let pet = async |at: usize| {
            let object = DynamicObject::new(&format!("pet-{at:03}"), &kind).data(json!({"spec": {"number": at}}));
            eventually("a pet", async || {
                match api.create(&PostParams::default(), &object).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => false,
                    created => created.map(|_| true).expect("created"),
                }
            })
            .await;
        };
        stream::iter(numbers.map(pet)).buffer_unordered(8).collect::<()>().await;
    }

    /// Deletes state and migrations of the pets.
    pub(super) async fn forget(&self) {
        let states: Api<StorageState> = Api::all(self.client.clone());
        let migrations: Api<StorageVersionMigration> = Api::all(self.client.clone());
        let params = DeleteParams::default();
        let name = self.resource().to_string();
        states.delete(&name, &params).await.expect("deleted");
        for migration in self.migrations().await {
            let name = migration.name_any();
            migrations.delete(&name, &params).await.expect("deleted");
        }
    }

    /// One round of the trigger; what it found.
    pub(super) async fn reconcile(&self, memory: &mut Memory) -> Option<Finding> {
        reconcile_one(&self.cluster, memory, self.resource()).await
    }

    /// The migrations of the pets.
    pub(super) async fn migrations(&self) -> Vec<StorageVersionMigration> {
        migrations_of(&self.client, &self.resource()).await
    }

    /// The only migration of the pets.
    pub(super) async fn migration(&self) -> StorageVersionMigration {
        let mut found = self.migrations().await;
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    /// Carries the only migration of the pets on to its end.
    pub(super) async fn migrate(&self) -> Verdict {
        let verdict = work(&self.cluster, self.migration().await, PACE).await;
        verdict.expect("saved").expect("nobody else has it")
    }

    /// Hashes that the state lists, and the current one.
    pub(super) async fn hashes(&self) -> (Vec<String>, String) {
        hashes_of(&self.client, &self.resource()).await
    }

    /// `status.storedVersions` of the definition.
    pub(super) async fn stored_versions(&self) -> Vec<String> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &definition::resource());
        let definition = api.get(&self.resource().to_string()).await.expect("a definition");
        let versions = definition.data["status"]["storedVersions"].as_array().cloned();
        let text = |version: Value| version.as_str().expect("a name").to_owned();
        versions.expect("a list").into_iter().map(text).collect()
    }
}

/// Applies the kinds of the migrator, and waits until they are served.
pub(super) async fn install(client: &Client) {
    for manifest in [
        include_str!("../../manifests/storagestates.yaml"),
        include_str!("../../manifests/storageversionmigrations.yaml"),
    ] {
        define(client, &serde_saphyr::from_str(manifest).expect("YAML")).await;
    }
    let states: Api<StorageState> = Api::all(client.clone());
    let migrations: Api<StorageVersionMigration> = Api::all(client.clone());
    let all = ListParams::default();
    eventually("the kinds of the migrator", async || {
        states.list(&all).await.is_ok() && migrations.list(&all).await.is_ok()
    })
    .await;
}

async fn define(client: &Client, manifest: &Value) {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &definition::resource());
    let name = manifest["metadata"]["name"].as_str().expect("a name");
    let parameters = PatchParams::apply("tests").force();
    let applied = api.patch(name, &parameters, &Patch::Apply(manifest)).await;
    applied.expect("applied");
}

/// One round of the trigger for one resource; what it found.
pub(super) async fn reconcile_one(cluster: &Cluster, memory: &mut Memory, resource: GroupResource) -> Option<Finding> {
    let wanted = BTreeSet::from([resource]);
    let mut reconciled = reconcile(cluster, memory, &SETTINGS, &wanted).await.expect("a round");
    let one = reconciled.remove(0);
    assert!(one.applied.1.is_none(), "{one:?}");
    one.finding
}

/// A migration that nobody but the test asked for.
pub(super) async fn force(client: &Client, resource: &GroupResource) -> StorageVersionMigration {
    let api: Api<StorageVersionMigration> = Api::all(client.clone());
    let migration = StorageVersionMigration {
        metadata: ObjectMeta {
            generate_name: Some(format!("{resource}-")),
            ..ObjectMeta::default()
        },
        spec: StorageVersionMigrationSpec {
            resource: GroupVersionResource {
                group: resource.group.clone(),
                version: String::new(),
                resource: resource.resource.clone(),
            },
        },
        status: None,
    };
    api.create(&PostParams::default(), &migration).await.expect("created")
}

/// The migrations of a resource.
pub(super) async fn migrations_of(client: &Client, resource: &GroupResource) -> Vec<StorageVersionMigration> {
    let api: Api<StorageVersionMigration> = Api::all(client.clone());
    let mut found = api.list(&ListParams::default()).await.expect("a list").items;
    found
        .retain(|one| (&one.spec.resource.group, &one.spec.resource.resource) == (&resource.group, &resource.resource));
    found
}

/// Hashes that the state of a resource lists, and the current one.
pub(super) async fn hashes_of(client: &Client, resource: &GroupResource) -> (Vec<String>, String) {
    let api: Api<StorageState> = Api::all(client.clone());
    let status = api.get(&resource.to_string()).await.expect("a state").status;
    let status = status.expect("a status");
    (
        status.persisted_storage_version_hashes,
        status.current_storage_version_hash,
    )
}

/// The resource version of each object by its name.
pub(super) async fn versions(api: &Api<DynamicObject>) -> BTreeMap<String, String> {
    let listed = api.list_metadata(&ListParams::default()).await.expect("a list").items;
    let version = |one: &kube::core::PartialObjectMeta<DynamicObject>| one.resource_version().expect("a version");
    listed.iter().map(|one| (one.name_any(), version(one))).collect()
}

/// How many keys have their value in each API version.
pub(super) fn encodings(stored: &[Stored]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for one in stored {
        let object: Value = serde_json::from_str(&one.text).expect("custom resources are stored as JSON");
        let version = object["apiVersion"].as_str().expect("a version").to_owned();
        *counts.entry(version).or_default() += 1;
    }
    counts
}
