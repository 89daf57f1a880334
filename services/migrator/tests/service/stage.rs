//! A control plane with pets of two versions, and trigger and migrator as they run.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use kindex_harness::controlplane::ControlPlane;
use kindex_harness::require::require;
use kindex_harness::wait::eventually;
use kindex_migrator::cluster::Cluster;
use kindex_migrator::cluster::install::manifests;
use kindex_migrator::cluster::settings::{Pace, WriteRate};
use kindex_migrator::hash::Hash;
use kindex_migrator::metrics::Metrics;
use kindex_migrator::service::{MigrationStrategy, Migrator, Options};
use kindex_migrator::trigger::Settings;
use kindex_migrator::wire::{
    GroupResource, GroupVersionResource, StorageState, StorageStateStatus, StorageVersionMigration,
    StorageVersionMigrationSpec, StorageVersionMigrationStatus, definition,
};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::ApiResource;
use kube::{Client, Config, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const GROUP: &str = "zoo.example.com";
pub(crate) const NAME: &str = "pets.zoo.example.com";

/// Hashes that the state lists, and the current one.
pub(crate) type Hashes = (Vec<String>, String);

/// How long a watch lasts that waits for something: longer than anything takes, and shorter than a client waits.
const WATCH_SECONDS: u32 = 290;

/// One control plane at a time: each takes a core.
static TURN: Mutex<()> = Mutex::const_new(());

pub(crate) struct Stage {
    pub(crate) client: Client,
    config: Config,
    _plane: ControlPlane,
    _turn: MutexGuard<'static, ()>,
}

/// Trigger and migrator at work.
pub(crate) struct Running {
    pub(crate) migrator: Arc<Migrator>,
    pub(crate) metrics: Metrics,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.expect("it ends");
    }

    /// As a process that is killed: nothing is saved any more.
    pub(crate) async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.is_err(), "it was at work");
    }
}

impl Stage {
    /// `None` without a control plane.
    pub(crate) async fn start() -> Option<Self> {
        if !require("controlplane", ControlPlane::installed()) {
            return None;
        }
        let turn = TURN.lock().await;
        let plane = ControlPlane::start();
        let kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let config = config.expect("a configuration");
        Some(Self {
            client: Client::try_from(config.clone()).expect("a client"),
            config,
            _plane: plane,
            _turn: turn,
        })
    }

    /// A client that acts as somebody else.
    pub(crate) fn client_of(&self, user: &str) -> Client {
        let mut config = self.config.clone();
        config.auth_info.impersonate = Some(user.to_owned());
        Client::try_from(config).expect("a client")
    }

    /// Starts trigger and migrator: a round begins by itself only when something changes.
    pub(crate) fn run(&self, client: Client, launch: bool, writes_per_second: u32) -> Running {
        let settings = Settings {
            period: Duration::from_secs(600),
            settle: Duration::ZERO,
            retry: Duration::from_secs(3_600),
            launch,
        };
        let rate = NonZeroU32::new(writes_per_second).map_or_else(WriteRate::unlimited, WriteRate::per_second);
        let options = Options {
            wanted: BTreeSet::from([pets()]),
            settings,
            pace: Pace { page: 20, workers: 4 },
            rate,
            parallel: 2,
            strategy: MigrationStrategy::Own,
            manifests: manifests(),
        };
        let metrics = Metrics::default();
        let cluster = Cluster::new(client, Vec::new());
        let migrator = Arc::new(Migrator::new(cluster, options, metrics.clone()));
        let (stop, running) = (CancellationToken::new(), migrator.clone());
        let stopped = stop.clone();
        Running {
            task: tokio::spawn(async move { running.run(&stopped).await }),
            migrator,
            metrics,
            stop,
        }
    }

    /// Creates or changes any object for the whole cluster.
    pub(crate) async fn apply(&self, resource: &ApiResource, manifest: &Value) {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), resource);
        let name = manifest["metadata"]["name"].as_str().expect("a name");
        let parameters = PatchParams::apply("tests").force();
        let applied = api.patch(name, &parameters, &Patch::Apply(manifest)).await;
        applied.expect("applied");
    }

    pub(crate) async fn store_pets_in(&self, version: &str) {
        self.apply(&definition::resource(), &definition_of_pets(version)).await;
    }

    /// Wakes the trigger without a change of the definition.
    pub(crate) async fn touch_definition(&self, number: u32) {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &definition::resource());
        let patch = json!({"metadata": {"annotations": {"touched": number.to_string()}}});
        let touched = api.patch(NAME, &PatchParams::default(), &Patch::Merge(&patch)).await;
        touched.expect("touched");
    }

    /// Another one after each round, by the second.
    pub(crate) async fn heartbeat(&self) -> Option<String> {
        let api: Api<StorageState> = Api::all(self.client.clone());
        api.get(NAME).await.expect("a state").resource_version()
    }

    /// Takes `v1` away, which nothing is stored in any more.
    pub(crate) async fn drop_v1(&self) {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &definition::resource());
        let status = json!({"status": {"storedVersions": ["v2"]}});
        let pruned = api
            .patch_status(NAME, &PatchParams::default(), &Patch::Merge(&status))
            .await;
        pruned.expect("pruned");
        let mut manifest = definition_of_pets("v2");
        let versions = manifest["spec"]["versions"].as_array_mut().expect("versions");
        versions.retain(|version| version["name"] == "v2");
        self.apply(&definition::resource(), &manifest).await;
    }

    /// Defines pets with `version` as the stored one, and creates so many.
    pub(crate) async fn create_pets(&self, version: &str, number: usize) {
        self.store_pets_in(version).await;
        eventually("pets are served", async || {
            self.pets().list(&ListParams::default().limit(1)).await.is_ok()
        })
        .await;
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), "default", &pet());
        let created = stream::iter(0..number).map(|at| {
            let api = api.clone();
            async move {
                let object = DynamicObject::new(&format!("pet-{at}"), &pet()).data(json!({"spec": {"number": at}}));
                api.create(&PostParams::default(), &object).await.expect("created");
            }
        });
        created.buffer_unordered(16).collect::<Vec<()>>().await;
    }

    pub(crate) fn pets(&self) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &pet())
    }

    /// Resource version of every pet.
    pub(crate) async fn versions(&self) -> BTreeMap<String, String> {
        let listed = self.pets().list_metadata(&ListParams::default()).await.expect("a list");
        let version = |pet: &kube::core::PartialObjectMeta<DynamicObject>| {
            (pet.name_any(), pet.resource_version().unwrap_or_default())
        };
        listed.items.iter().map(version).collect()
    }

    pub(crate) fn migrations(&self) -> Api<StorageVersionMigration> {
        Api::all(self.client.clone())
    }

    /// Starts a migration of pets, as a person would.
    pub(crate) async fn migrate(&self, name: &str) {
        let resource = GroupVersionResource {
            group: GROUP.to_owned(),
            version: String::new(),
            resource: "pets".to_owned(),
        };
        let migration = StorageVersionMigration::new(name, StorageVersionMigrationSpec { resource });
        eventually("migrations are served", async || {
            let created = self.migrations().create(&PostParams::default(), &migration).await;
            created.is_ok()
        })
        .await;
    }

    /// The status of a migration, of the only one where none is named.
    pub(crate) async fn status(&self, name: Option<&str>) -> Option<StorageVersionMigrationStatus> {
        let listed = self.migrations().list(&ListParams::default()).await.ok()?;
        let mut found = listed.items.into_iter();
        let found = found.find(|one| name.is_none_or(|name| one.name_any() == name))?;
        found.status
    }

    /// The hashes of the state; none before there is a status.
    pub(crate) async fn state(&self) -> Hashes {
        let api: Api<StorageState> = Api::all(self.client.clone());
        let status = api.get(NAME).await.ok().and_then(|state| state.status);
        hashes(status.unwrap_or_default())
    }

    /// All hashes that the state has had since a version, until it has these.
    pub(crate) async fn states_since(&self, version: &str, last: &Hashes) -> BTreeSet<Hashes> {
        let api: Api<StorageState> = Api::all(self.client.clone());
        let parameters = WatchParams::default().disable_bookmarks().timeout(WATCH_SECONDS);
        let mut events = pin!(api.watch(&parameters, version).await.expect("a watch"));
        let mut states = BTreeSet::new();
        while !states.contains(last) {
            let event = events.next().await;
            let event = event.unwrap_or_else(|| panic!("the watch ended before the state was {last:?}: {states:?}"));
            match event.expect("an event") {
                WatchEvent::Added(state) | WatchEvent::Modified(state) => {
                    states.insert(hashes(state.status.unwrap_or_default()));
                }
                other => panic!("{other:?}"),
            }
        }
        states
    }
}

fn hashes(status: StorageStateStatus) -> Hashes {
    (
        status.persisted_storage_version_hashes,
        status.current_storage_version_hash,
    )
}

pub(crate) fn hash(version: &str) -> String {
    Hash::of(GROUP, version, "Pet").to_string()
}

pub(crate) fn pets() -> GroupResource {
    GroupResource {
        group: GROUP.to_owned(),
        resource: "pets".to_owned(),
    }
}

fn pet() -> ApiResource {
    ApiResource {
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        api_version: format!("{GROUP}/v1"),
        kind: "Pet".to_owned(),
        plural: "pets".to_owned(),
    }
}

fn definition_of_pets(storage: &str) -> Value {
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": name == storage,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {"group": GROUP, "scope": "Namespaced",
            "names": {"kind": "Pet", "plural": "pets"}, "versions": [version("v1"), version("v2")]}})
}

/// Whether a condition of the status holds, with its reason.
pub(crate) fn condition(status: &StorageVersionMigrationStatus, kind: &str) -> Option<(String, String, String)> {
    let mut conditions = status.conditions.iter();
    let found = conditions.find(|condition| condition.kind == kind)?;
    Some((
        found.status.as_str().to_owned(),
        found.reason.clone(),
        found.message.clone(),
    ))
}
