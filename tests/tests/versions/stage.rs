//! A control plane with trials in several versions, a database for their rows, and the command.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kindex_harness::controlplane::ControlPlane;
use kindex_harness::require::require;
use kindex_harness::wait::{WAIT_MAX, eventually};
use kindex_migrator::cluster::Cluster;
use kindex_migrator::cluster::discover::discover;
use kindex_migrator::cluster::reconcile::{Memory, reconcile};
use kindex_migrator::cluster::settings::Pace;
use kindex_migrator::cluster::work::work;
use kindex_migrator::discovery::Discovered;
use kindex_migrator::hash::Hash;
use kindex_migrator::run::{Counts, Refused, Run, Verdict};
use kindex_migrator::trigger::Settings;
use kindex_migrator::wire::definition;
use kindex_migrator::wire::{GroupResource, StorageVersionMigration};
use kindex_store::PoolConfig;
use kindex_tests::registry::registry;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::ApiResource;
use kube::{Client, Config};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{ChildStderr, Command};
use tokio::time::timeout;

pub const GROUP: &str = "traps.dev";
pub const NAME: &str = "trials.traps.dev";

/// Nothing is started by itself.
const SETTINGS: Settings = Settings {
    period: Duration::from_secs(600),
    settle: Duration::ZERO,
    retry: Duration::from_secs(3_600),
    launch: false,
};

const PACE: Pace = Pace { page: 250, workers: 8 };

pub struct Stage {
    pub client: Client,
    pub cluster: Cluster,
    pub directory: TempDir,
    plane: ControlPlane,
}

impl Stage {
    /// `None` without a control plane.
    pub async fn start() -> Option<Self> {
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
            directory: tempfile::tempdir().expect("a temporary directory"),
            plane,
        };
        let store = kindex_store::connect(&stage.database(), registry(), &PoolConfig::default()).expect("an address");
        store.prepare().await.expect("an empty database is prepared");
        store.close().await;
        for manifest in [
            include_str!("../../../services/migrator/manifests/storagestates.yaml"),
            include_str!("../../../services/migrator/manifests/storageversionmigrations.yaml"),
        ] {
            stage.define(&serde_saphyr::from_str(manifest).expect("YAML")).await;
        }
        let served = ["storagestates", "storageversionmigrations"].map(|name| resource("migration.k8s.io", name));
        eventually("the resources of the migrator", async || {
            let discovery = discover(&stage.cluster, &["migration.k8s.io".to_owned()].into()).await;
            served.iter().all(|name| discovery.served.contains_key(name))
        })
        .await;
        Some(stage)
    }

    pub fn database(&self) -> String {
        format!("sqlite:{}", self.directory.path().join("rows.db").display())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn definitions(&self) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &definition::resource())
    }

    /// Creates or changes a definition.
    pub async fn define(&self, manifest: &Value) {
        let name = manifest["metadata"]["name"].as_str().expect("a name");
        let parameters = PatchParams::apply("tests").force();
        let applied = self
            .definitions()
            .patch(name, &parameters, &Patch::Apply(manifest))
            .await;
        applied.expect("applied");
    }

    /// Lets trials be stored in a version, and waits until discovery says so.
    pub async fn store_trials_in(&self, version: &str) {
        self.define(&trials(version, &["v1", "v2", "v2beta1"])).await;
        self.wait_until_stored_in(version).await;
    }

    /// Lets the definition that is there store another version, and keeps the rest of it.
    pub async fn store_in_other_version(&self, version: &str) {
        let mut definition = self.definitions().get(NAME).await.expect("a definition");
        for declared in definition.data["spec"]["versions"].as_array_mut().expect("versions") {
            declared["storage"] = json!(declared["name"] == version);
        }
        let replaced = self
            .definitions()
            .replace(NAME, &PostParams::default(), &definition)
            .await;
        replaced.expect("replaced");
    }

    /// Waits until discovery says that trials are stored in a version.
    pub async fn wait_until_stored_in(&self, version: &str) {
        let wanted = Discovered::Agreed(Hash::of(GROUP, version, "Trial"));
        eventually("the hash of the version", async || {
            discover(&self.cluster, &[GROUP.to_owned()].into())
                .await
                .of(&of_trials())
                == wanted
        })
        .await;
    }

    pub async fn create_trials(&self, count: usize) {
        self.create_trials_of(count, json!({"tries": 3})).await;
    }

    /// In v1, all of them with this spec.
    pub async fn create_trials_of(&self, count: usize, spec: Value) {
        let trial = ApiResource {
            group: GROUP.to_owned(),
            version: "v1".to_owned(),
            api_version: format!("{GROUP}/v1"),
            kind: "Trial".to_owned(),
            plural: "trials".to_owned(),
        };
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), "default", &trial);
        let (api, trial, spec) = (&api, &trial, &spec);
        let created = stream::iter(0..count).map(|at| async move {
            let object = DynamicObject::new(&format!("trial-{at}"), trial).data(json!({"spec": spec}));
            api.create(&PostParams::default(), &object).await.map(drop)
        });
        created.buffer_unordered(16).try_collect::<()>().await.expect("created");
    }

    /// `status.storedVersions`.
    pub async fn stored_versions(&self) -> Value {
        let definition = self.definitions().get(NAME).await.expect("a definition");
        definition.data["status"]["storedVersions"].clone()
    }

    /// As another writer of the status.
    pub async fn store_versions(&self, versions: &[&str]) {
        let patch = Patch::Merge(json!({"status": {"storedVersions": versions}}));
        let patched = self
            .definitions()
            .patch_status(NAME, &PatchParams::default(), &patch)
            .await;
        patched.expect("patched");
    }

    /// Deletes the definition of trials with all of them, and waits until it is gone.
    pub async fn delete_definition(&self) {
        kindex_harness::definition::delete(&self.definitions(), NAME).await;
    }

    /// One round of the trigger.
    pub async fn reconcile(&self, memory: &mut Memory) {
        for reconciled in reconcile(&self.cluster, memory, &SETTINGS, &[of_trials()].into())
            .await
            .expect("a round")
        {
            assert!(reconciled.applied.1.is_none(), "{reconciled:?}");
        }
    }

    /// Waits for a migration, and works it off.
    pub async fn migrate(&self) {
        let api: Api<StorageVersionMigration> = Api::all(self.client.clone());
        let mut found = Vec::new();
        eventually("a migration", async || {
            found = api.list(&ListParams::default()).await.expect("a list").items;
            !found.is_empty()
        })
        .await;
        assert_eq!(found.len(), 1);
        let verdict = work(&self.cluster, found.remove(0), PACE).await;
        assert_eq!(verdict.expect("saved"), Some(Verdict::Succeeded));
    }

    /// Ends the only migration as one whose first object is refused.
    pub async fn fail_migration(&self) {
        let api: Api<StorageVersionMigration> = Api::all(self.client.clone());
        let mut migration = api.list(&ListParams::default()).await.expect("a list").items.remove(0);
        let status = migration.status.get_or_insert_default();
        status.set_condition(
            "Failed",
            "ObjectsRefused",
            "some are refused".to_owned(),
            jiff::Timestamp::now(),
        );
        status.save(&Run {
            pass: Counts {
                refused: 1,
                ..Counts::default()
            },
            refused: vec![Refused {
                object: "default/trial-0".to_owned(),
                why: "denied by a webhook".to_owned(),
            }],
            ..Run::default()
        });
        let name = migration.metadata.name.clone().expect("a name");
        let saved = api.replace_status(&name, &PostParams::default(), &migration).await;
        saved.expect("saved");
    }

    /// Runs statements on the rows.
    pub async fn sql(&self, text: &str) {
        let options: SqliteConnectOptions = self.database().parse().expect("an address");
        let mut connection = options.connect().await.expect("a connection");
        sqlx::raw_sql(AssertSqlSafe(text.to_owned()))
            .execute(&mut connection)
            .await
            .expect("executed");
        connection.close().await.expect("closed");
    }

    /// Archived rows of trials.
    pub async fn archive(&self, version: &str, count: usize) {
        self.sql(&format!(
            "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}) \
             INSERT INTO trial (uid, group_ver, namespace, name, res_version, create_time, json, evicted_time) \
             SELECT '{version}-' || n, '{GROUP}/{version}', 'default', '{version}-' || n, n, \
             '2026-01-01 00:00:00.000000', '{{}}', '2026-01-02 00:00:00.000000' FROM numbers"
        ))
        .await;
    }

    /// The command, on this cluster and without a data directory of others.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_traps"));
        command.args(words).arg("--kubeconfig").arg(self.plane.kubeconfig());
        command
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    pub fn kubeconfig(&self) -> &Path {
        self.plane.kubeconfig()
    }

    /// The command on this cluster, until it ends; something happens once its notes say a text.
    pub async fn wait_while(&self, words: &[&str], text: &str, then: impl Future<Output = ()>) -> Exited {
        self.follow(self.command(words), text, async |_| then.await).await
    }

    /// A command, until it ends; something happens once its notes say a text, and may wait for more of them.
    pub async fn follow(&self, mut command: Command, text: &str, then: impl AsyncFnOnce(&mut Notes)) -> Exited {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut notes = Notes {
            lines,
            text: String::new(),
        };
        notes.until(text).await;
        then(&mut notes).await;
        while notes.next().await {}
        let output = child.wait_with_output().await.expect("ended");
        Exited {
            code: output.status.code(),
            text: notes.text + &String::from_utf8_lossy(&output.stdout),
        }
    }

    /// The command on this cluster and database, until it ends.
    pub async fn run(&self, words: &[&str]) -> Exited {
        let mut command = self.command(words);
        command.arg("--database").arg(self.database());
        Exited::of(&command.output().await.expect("started"))
    }
}

/// What a command prints on stderr while it runs.
pub struct Notes {
    lines: Lines<BufReader<ChildStderr>>,
    text: String,
}

impl Notes {
    async fn next(&mut self) -> bool {
        let line = timeout(WAIT_MAX, self.lines.next_line()).await;
        let Some(line) = line.expect("it prints something or ends").expect("readable") else {
            return false;
        };
        self.text = format!("{}{line}\n", self.text);
        true
    }

    /// Waits until it has printed this.
    pub async fn until(&mut self, text: &str) {
        while !self.text.contains(text) {
            assert!(self.next().await, "{text:?} is not in {}", self.text);
        }
    }
}

/// The exit code of a command, and what it printed.
#[derive(Debug)]
pub struct Exited {
    pub code: Option<i32>,
    pub text: String,
}

impl Exited {
    pub fn of(output: &Output) -> Self {
        let text = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        Self {
            code: output.status.code(),
            text: text.concat(),
        }
    }

    /// It exited with this code and printed all of this.
    pub fn expect(&self, code: i32, texts: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.text);
        for text in texts {
            assert!(self.text.contains(text), "{text:?} is not in {}", self.text);
        }
    }

    pub fn expect_none(&self, texts: &[&str]) {
        for text in texts {
            assert!(!self.text.contains(text), "{text:?} is in {}", self.text);
        }
    }
}

fn resource(group: &str, plural: &str) -> GroupResource {
    GroupResource {
        group: group.to_owned(),
        resource: plural.to_owned(),
    }
}

pub fn of_trials() -> GroupResource {
    resource(GROUP, "trials")
}

/// A definition of trials whose versions have one shape.
pub fn trials(storage: &str, versions: &[&str]) -> Value {
    let version = |name: &&str| {
        json!({"name": name, "served": true, "storage": *name == storage,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME, "labels": {"app.kubernetes.io/managed-by": "kindex"}},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": {"kind": "Trial", "plural": "trials"},
            "versions": versions.iter().map(version).collect::<Vec<_>>()}})
}
