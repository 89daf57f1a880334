//! One scenario's world: an embedded cluster that survives everything, load on it, a
//! database, and the ingester between them. Scenarios run one at a time, because two
//! would measure each other.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kindex_cluster::ClusterOptions;
use kindex_harness::proxy::Proxy;
use kindex_harness::wait::WAIT_MAX;
use kindex_model::kind::{Kind, Registry};
use kindex_model::object::Uid;
use kindex_store::MetadataStorage;
use kindex_tests::embedded::Embedded;
use kube::api::{DynamicObject, PostParams};
use kube::{Api, Client};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::database::Database;
use super::ingester::Ingester;
use super::load::Load;
use super::objects;

/// How a scenario begins.
pub(crate) struct Setting {
    /// Where rows go.
    pub(crate) database: Database,
    /// Events that the cluster keeps: few make a restart list everything.
    pub(crate) history_max: u64,
}

impl Setting {
    /// With a history that outlasts any scenario.
    pub(crate) fn on(database: Database) -> Self {
        Self {
            database,
            history_max: 1_000_000,
        }
    }
}

/// One scenario.
pub(crate) struct Stage {
    pub(crate) ingester: Ingester,
    pub(crate) load: Option<Load>,
    /// Between ingester and cluster.
    pub(crate) network: Proxy,
    pub(crate) registry: Registry,
    pub(crate) storage: Arc<dyn MetadataStorage>,
    pub(crate) client: Client,
    /// Past the proxy.
    pub(crate) kubeconfig: PathBuf,
    /// Past the proxies.
    pub(crate) config: PathBuf,
    pub(crate) runtime: Runtime,
    markers: AtomicU32,
    pub(crate) directory: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Stage {
    /// Everything runs but the ingester and the load.
    pub(crate) fn begin(setting: &Setting) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let registry = kindex_generated::registry();
        let cluster = runtime.block_on(serve(setting.history_max));
        let network = Proxy::start(cluster.address.port());
        let client = runtime.block_on(async {
            let client = Client::try_from(cluster.config()).expect("a client");
            install(&client, &registry).await;
            client
        });

        let write = |name: &str, text: String| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("writable");
            path
        };
        let reported = Embedded {
            address: SocketAddr::from(([127, 0, 0, 1], network.port)),
            ..cluster.clone()
        };
        let reported = write("kubeconfig-of-the-ingester", reported.kubeconfig());
        let gate = "metadataStorage:\n  enableMetadataStorage: true\n";
        let [proxied, direct] = setting.database.stanzas(directory.path());
        let config = write("ingester.yaml", format!("{gate}{proxied}"));
        let storage = runtime.block_on(async { setting.database.open(directory.path(), registry) });
        Self {
            ingester: Ingester::new(directory.path(), config, reported),
            load: None,
            network,
            registry,
            storage,
            client,
            kubeconfig: write("kubeconfig", cluster.kubeconfig()),
            config: write("direct.yaml", format!("{gate}{direct}")),
            runtime,
            markers: AtomicU32::new(0),
            directory,
            _alone: alone,
        }
    }

    pub(crate) fn begin_load(&mut self) {
        self.load = Some(Load::start(&self.runtime, &self.client, &self.registry));
    }

    /// Waits for something that must happen.
    pub(crate) fn eventually(&mut self, what: &str, mut happened: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + WAIT_MAX;
        while !happened(self) {
            assert!(
                Instant::now() < deadline && !self.ingester.has_ended(),
                "never: {what}; /readyz: {:?}; the log ends with\n{}",
                self.ingester.not_ready(),
                self.ingester.last_words()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn wait_until_ready(&mut self) {
        self.eventually("ready", |stage| {
            stage.ingester.not_ready().is_some_and(|text| text.is_empty())
        });
    }

    /// Creates an object and waits for its row: how long that takes from `since`, the end
    /// of a fault, is the time to recover.
    pub(crate) fn recovery(&mut self, since: Instant) -> Duration {
        self.recovery_beside(since, || {})
    }

    /// The same, with something that is seen to meanwhile.
    pub(crate) fn recovery_beside(&mut self, since: Instant, mut see_to: impl FnMut()) -> Duration {
        let kind = self.registry.kinds[0];
        let name = format!("marker-{}", self.markers.fetch_add(1, Ordering::Relaxed));
        let uid = self.create(kind, &objects::with_finalizer(kind, &name, 0));
        self.eventually("the row of a new object", |stage| {
            see_to();
            let row = stage.runtime.block_on(stage.storage.get_by_id(kind, &uid));
            matches!(row, Ok(Some(_)))
        });
        since.elapsed()
    }

    pub(crate) fn create(&self, kind: &Kind, object: &DynamicObject) -> Uid {
        let created = self.created(kind, object).metadata;
        Uid::from(created.uid.expect("the cluster gives uids").as_str())
    }

    /// Creates an object; the version that the cluster gave it.
    pub(crate) fn create_at(&self, kind: &Kind, object: &DynamicObject) -> f64 {
        let created = self.created(kind, object).metadata;
        let version = created.resource_version.expect("the cluster gives versions");
        version.parse().expect("versions are numbers")
    }

    fn created(&self, kind: &Kind, object: &DynamicObject) -> DynamicObject {
        let api = objects::api(&self.client, kind);
        let created = self.runtime.block_on(api.create(&PostParams::default(), object));
        created.expect("the cluster creates")
    }

    /// What all ingesters logged of an object, in order of time.
    pub(crate) fn logged(&self, object: &str) -> String {
        let files = std::fs::read_dir(self.directory.path()).expect("readable").flatten();
        let logs = files.filter_map(|file| {
            let name = file
                .file_name()
                .into_string()
                .ok()
                .filter(|name| name.ends_with(".log"))?;
            Some((name, std::fs::read_to_string(file.path()).ok()?))
        });
        let lines = logs.flat_map(|(name, text)| {
            let is_named = |line: &&str| {
                line.split_whitespace()
                    .any(|word| word.strip_prefix("object=") == Some(object))
            };
            let named: Vec<String> = text
                .lines()
                .filter(is_named)
                .map(|line| format!("{line} ({name})"))
                .collect();
            named
        });
        let mut lines: Vec<String> = lines.collect();
        lines.sort();
        lines.join("\n")
    }

    /// Lets the load go on for a while.
    pub(crate) fn run_for(&self, time: Duration) {
        self.runtime
            .block_on(async { tokio::time::sleep_until((Instant::now() + time).into()).await });
    }
}

/// A cluster in this process, until the process ends.
async fn serve(history_max: u64) -> Embedded {
    let options = ClusterOptions {
        history_max,
        ..ClusterOptions::default()
    };
    Embedded::serve(options, std::future::pending()).await.0
}

async fn install(client: &Client, registry: &Registry) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for kind in registry.kinds {
        let definition = serde_saphyr::from_str(kind.manifest).expect("manifests are emitted");
        let created = api.create(&PostParams::default(), &definition).await;
        created.expect("the cluster installs the kind");
    }
}
