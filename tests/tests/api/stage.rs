//! Everything between a client and its rows, on free ports: cluster, ingester, database, API server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kindex_api::metrics::Metrics;
use kindex_api::operations::{Operations, Pace, RightsOf, Sizes};
use kindex_api::server::Limits;
use kindex_cluster::ClusterOptions;
use kindex_generated::kinds::{model, project};
use kindex_harness::controlplane::ControlPlane;
use kindex_harness::{require::require, wait::eventually};
use kindex_kube_client::kube_cluster::KubeCluster;
use kindex_model::kind::{Kind, Registry};
use kindex_query::Life;
use kindex_runtime::{Ingester, Sharding, settings::Settings};
use kindex_serve::{listen::Tls, watches::WatchLimits};
use kindex_store::{Address, MetadataStorage};
use kindex_tests::databases::mariadb::{self, Flavor};
use kindex_tests::databases::{Database, patient};
use kindex_tests::embedded::Embedded;
use kindex_tests::trials;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::alone::ALONE;
use super::auth_proxy::AuthProxy;
use super::request::install;
use super::serving::{keys, serve_within};

pub(super) use super::request::{send, send_with};
pub(super) use super::serving::{CERTIFICATE, KEY, client_of, serve};

/// Changes in SQL count as seen by everybody before a test is at its end.
const PACE: Pace = Pace {
    every: Duration::from_millis(50),
    // Longer than a busy machine takes to ask: an answer that is older when it comes is one that nobody can use.
    fresh: Duration::from_secs(1),
    settled: Duration::from_millis(1500),
    events: Duration::from_millis(50),
};
/// Models keep their history, projects do not.
pub(super) static KINDS: &[&Kind] = &[&model::KIND, &project::KIND];
/// Where models are.
pub(super) const MODELS: &str = "/apis/michelangelo.api/v2/namespaces/default/models";
/// The annotation that evicts.
pub(super) const FINAL: &str = "michelangelo/Immutable";

/// What a stage stands on.
pub(super) struct Ground {
    pub(super) directory: TempDir,
    pub(super) proxy: AuthProxy,
    pub(super) plane: Option<ControlPlane>,
    registry: Registry,
    /// By which definitions name a conversion webhook.
    webhook: Value,
    config: Config,
    /// The same, or the proxy before it.
    seen_by_the_server: Config,
    /// Whether the proxy is before what answers for SQL-only kinds, too.
    is_before_sql: bool,
    stop: CancellationToken,
}

impl Ground {
    pub(super) async fn embedded() -> Self {
        Self::embedded_with(ClusterOptions::default()).await
    }

    async fn embedded_with(options: ClusterOptions) -> Self {
        let (directory, stop) = (tempfile::tempdir().unwrap(), CancellationToken::new());
        let options = ClusterOptions {
            path: Some(directory.path().join("cluster.db")),
            ..options
        };
        let (cluster, _) = Embedded::serve(options, stop.clone().cancelled_owned()).await;
        Self::of(directory, stop, cluster.config())
    }

    async fn real() -> Option<Self> {
        if !require("controlplane", ControlPlane::installed()) {
            return None;
        }
        let plane = tokio::task::spawn_blocking(ControlPlane::start).await.unwrap();
        let file = Kubeconfig::read_from(plane.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
            .await
            .unwrap();
        let ground = Self::of(tempfile::tempdir().unwrap(), CancellationToken::new(), config);
        Some(Self {
            plane: Some(plane),
            ..ground
        })
    }

    pub(super) fn of(directory: TempDir, stop: CancellationToken, config: Config) -> Self {
        Self {
            directory,
            proxy: AuthProxy::default(),
            plane: None,
            registry: Registry {
                kinds: KINDS,
                ..kindex_generated::registry()
            },
            webhook: Value::Null,
            seen_by_the_server: config.clone(),
            is_before_sql: false,
            config,
            stop,
        }
    }

    /// What the API server asks about SQL-only kinds.
    async fn sql_only(&self, store: &Arc<dyn MetadataStorage>) -> Option<Client> {
        let own = kindex::sql_only::client(&self.registry, store.clone()).await.unwrap()?;
        match self.is_before_sql {
            true => Some(Client::try_from(self.proxy.serve_before_client(own, &self.stop).await).unwrap()),
            false => Some(own),
        }
    }

    /// A client of the cluster, once the kinds are served.
    pub(super) async fn with_kinds(&self) -> Client {
        let client = Client::try_from(self.config.clone()).unwrap();
        let kinds: Vec<&'static Kind> = self.registry.cluster_kinds().collect();
        install(&client, &kinds, &self.webhook).await;
        client
    }

    pub(super) fn registry(&self) -> Registry {
        self.registry
    }

    pub(super) fn config(&self) -> Config {
        self.config.clone()
    }

    pub(super) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    pub(super) fn sqlite(&self) -> Address {
        let path = self.directory.path().join("kindex.db");
        format!("sqlite:{}", path.display()).parse().unwrap()
    }

    /// The token of a user of the control plane.
    pub(super) fn token(&self, user: &str) -> String {
        let text = std::fs::read_to_string(self.plane.as_ref().unwrap().kubeconfig()).unwrap();
        let file: Value = serde_saphyr::from_str(&text).unwrap();
        let mut users = file["users"].as_array().unwrap().iter();
        let found = users.find(|known| known["name"] == user).unwrap();
        found["user"]["token"].as_str().unwrap().to_owned()
    }
}

pub(super) struct Stage {
    pub(super) cluster: Client,
    pub(super) api: Client,
    /// An API server in whose opinion it is an hour later.
    pub(super) later: Client,
    pub(super) address: SocketAddr,
    /// The same with TLS.
    pub(super) secure: SocketAddr,
    pub(super) tls: Tls,
    pub(super) store: Arc<dyn MetadataStorage>,
    pub(super) ground: Ground,
    rights: RightsOf,
    ingester: Ingester,
    _database: Option<Database>,
}

impl Stage {
    pub(super) async fn on_sqlite() -> Self {
        let ground = Ground::embedded().await;
        let address = ground.sqlite();
        Self::on(ground, &address, None, RightsOf::Server).await
    }

    /// On SQLite, with every kind that is shipped.
    pub(super) async fn of_all_kinds() -> Self {
        let mut ground = Ground::embedded().await;
        ground.registry = kindex_generated::registry();
        let address = ground.sqlite();
        Self::on(ground, &address, None, RightsOf::Server).await
    }

    /// On SQLite, with these kinds.
    pub(super) async fn of_kinds(kinds: &'static [&'static Kind]) -> Self {
        let mut ground = Ground::embedded().await;
        ground.registry.kinds = kinds;
        let at = ground.sqlite();
        Self::on(ground, &at, None, RightsOf::Server).await
    }

    /// The same over a kube-apiserver of its own; nothing where there is none and none has to be.
    pub(super) async fn of_kinds_on_control_plane(kinds: &'static [&'static Kind]) -> Option<Self> {
        let mut ground = Ground::real().await?;
        ground.registry.kinds = kinds;
        let at = ground.sqlite();
        Some(Self::on(ground, &at, None, RightsOf::Server).await)
    }

    /// With a kind of several versions, which the cluster converts in process.
    pub(super) async fn of_trials() -> Self {
        let options = ClusterOptions {
            converter: Some(Arc::new(trials::Trials)),
            ..ClusterOptions::default()
        };
        let mut ground = Ground::embedded_with(options).await;
        ground.registry = trials::REGISTRY;
        let address = ground.sqlite();
        Self::on(ground, &address, None, RightsOf::Server).await
    }

    /// The same over a kube-apiserver of its own, which asks a webhook; nothing where there is none and none has to be.
    pub(super) async fn of_trials_on_control_plane() -> Option<Self> {
        let mut ground = Ground::real().await?;
        ground.registry = trials::REGISTRY;
        ground.webhook = trials::webhook(ground.stop.clone()).await;
        let address = ground.sqlite();
        Some(Self::on(ground, &address, None, RightsOf::Server).await)
    }

    /// On SQLite, behind a proxy that knows whose tokens allow what.
    pub(super) async fn with_rights() -> Self {
        Self::with_rights_to(KINDS).await
    }

    /// The same, with these kinds.
    pub(super) async fn with_rights_to(kinds: &'static [&'static Kind]) -> Self {
        Self::proxied(RightsOf::Caller, |registry| registry.kinds = kinds).await
    }

    /// On SQLite, behind a proxy that counts requests and lets everybody by.
    pub(super) async fn behind_a_proxy() -> Self {
        Self::behind_a_proxy_with(KINDS).await
    }

    /// The same, with these kinds.
    pub(super) async fn behind_a_proxy_with(kinds: &'static [&'static Kind]) -> Self {
        Self::proxied(RightsOf::Server, |registry| registry.kinds = kinds).await
    }

    /// On SQLite, behind the proxy, with what this changes of the registry.
    pub(super) async fn proxied(rights: RightsOf, change: impl FnOnce(&mut Registry)) -> Self {
        let mut ground = Ground::embedded().await;
        change(&mut ground.registry);
        ground.is_before_sql = rights == RightsOf::Server;
        ground.seen_by_the_server = ground.proxy.serve_before(ground.config.clone(), &ground.stop).await;
        let address = ground.sqlite();
        Self::on(ground, &address, None, rights).await
    }

    /// On MariaDB; nothing where it is absent and not required.
    pub(super) async fn on_mariadb() -> Option<Self> {
        let database = mariadb::database(Flavor::Plain)?;
        let address = database.address();
        Some(Self::on(Ground::embedded().await, &address, Some(database), RightsOf::Server).await)
    }

    /// Over a kube-apiserver of its own; nothing where there is none and none has to be.
    pub(super) async fn on_control_plane(rights: RightsOf) -> Option<Self> {
        let ground = Ground::real().await?;
        let address = ground.sqlite();
        Some(Self::on(ground, &address, None, rights).await)
    }

    /// With projects that no cluster has.
    pub(super) async fn with_sql_only_projects() -> Self {
        Self::of_kinds(ALONE).await
    }

    pub(super) async fn on(ground: Ground, address: &Address, database: Option<Database>, rights: RightsOf) -> Self {
        let registry = ground.registry();
        let store = kindex_store::open(address, registry, &patient()).unwrap();
        store.prepare().await.unwrap();
        let client = ground.with_kinds().await;
        let kube_cluster = Arc::new(KubeCluster::new(ground.config.clone()).unwrap());
        let ingester = Ingester::start(registry, kube_cluster, store.clone(), Sharding::Alone, |_| Settings {
            requeue_period: Duration::from_millis(200),
            ..Settings::default()
        });
        let sql_only = ground.sql_only(&store).await;
        let operations = || {
            let config = ground.seen_by_the_server.clone();
            let operations = Operations::new(registry, config, store.clone(), rights).unwrap();
            let operations = operations.with_pace(PACE);
            match &sql_only {
                Some(api) => operations.with_sql_only(api.clone()),
                None => operations,
            }
        };
        let address = serve(operations(), None, &ground.stop).await;
        let tls = keys(&ground.directory);
        let secure = serve(operations(), Some(tls.clone()), &ground.stop).await;
        let later = operations().with_clock(|| Timestamp::now() + SignedDuration::from_hours(1));
        let later = serve(later, None, &ground.stop).await;
        Self {
            cluster: client,
            api: client_of(address),
            later: client_of(later),
            address,
            secure,
            tls,
            store,
            ground,
            rights,
            ingester,
            _database: database,
        }
    }

    /// Those of one more API server over the same.
    pub(super) fn operations(&self) -> Operations {
        self.operations_at(self.ground.seen_by_the_server.clone())
    }

    /// The same, with another way to the cluster.
    pub(super) fn operations_at(&self, config: Config) -> Operations {
        let operations = Operations::new(self.ground.registry(), config, self.store.clone(), self.rights).unwrap();
        operations.with_pace(PACE)
    }

    /// One more API server, in whose opinion it is this time.
    pub(super) async fn served_at(&self, clock: fn() -> Timestamp) -> Client {
        client_of(serve(self.operations().with_clock(clock), None, &self.ground.stop).await)
    }

    /// One more API server, that reads so much at once.
    pub(super) async fn served_by(&self, sizes: Sizes) -> Client {
        client_of(serve(self.operations().with_sizes(sizes), None, &self.ground.stop).await)
    }

    /// Another API server over the same, with these limits, and what it counts.
    pub(super) async fn with_limits(&self, limits: Limits, watches: WatchLimits) -> (SocketAddr, Metrics) {
        let metrics = Metrics::default();
        let operations = self.operations().with_metrics(metrics.clone());
        let operations = operations.with_watch_limits(watches);
        let address = serve_within(operations, None, limits, metrics.clone(), &self.ground.stop).await;
        (address, metrics)
    }

    /// Ends everything in order.
    pub(super) async fn end(self) {
        self.ingester.shutdown().await;
        self.ground.stop.cancel();
        self.store.close().await;
    }

    /// Creates a model through the API server.
    pub(super) async fn create(&self, name: &str, labels: Value, spec: Value) -> Value {
        self.create_annotated(name, labels, spec, json!({})).await
    }

    /// Creates a model that leaves the cluster, and waits until it has.
    pub(super) async fn create_archived(&self, name: &str, labels: Value, spec: Value) -> Value {
        let created = self.create_annotated(name, labels, spec, json!({FINAL: "true"})).await;
        self.wait_until_archived(name).await;
        created
    }

    async fn create_annotated(&self, name: &str, labels: Value, spec: Value, annotations: Value) -> Value {
        let metadata = json!({"name": name, "labels": labels, "annotations": annotations});
        let (code, created) = send(&self.api, "POST", MODELS, &manifest(metadata, spec)).await;
        assert_eq!(code, 201, "{created}");
        created
    }

    /// Creates an object that SQL keeps, and that somebody's finalizer holds in the cluster.
    pub(super) async fn create_held(&self, name: &str, labels: Value) {
        let metadata = json!({"name": name, "labels": labels, "annotations": {FINAL: "true"},
            "finalizers": ["example.com/hold"]});
        let (code, answer) = send(&self.api, "POST", MODELS, &manifest(metadata, json!({}))).await;
        assert_eq!(code, 201, "{answer}");
        // What the deletion made of it is stored as well.
        eventually("the object is on its way", async || {
            let row = self.store.get_by_name(&model::KIND, "default", name).await.unwrap();
            row.is_some_and(|row| row.life == Life::Archived && row.object.metadata.deletion_timestamp.is_some())
        })
        .await;
    }

    /// Lets such an object go.
    pub(super) async fn release(&self, name: &str) {
        let release = json!({"metadata": {"finalizers": null}});
        let (code, answer) = send(&self.cluster, "PATCH", &model(name), &release).await;
        assert_eq!(code, 200, "{answer}");
        self.wait_until_archived(name).await;
    }

    /// Waits until a model is archived.
    pub(super) async fn wait_until_archived(&self, name: &str) {
        eventually(&format!("{name} is archived"), async || {
            let (code, _) = send(&self.cluster, "GET", &model(name), &Value::Null).await;
            code == 404 && self.life(name).await == Some(Life::Archived)
        })
        .await;
    }

    /// Until the cluster has nothing of that name and SQL says that it is deleted.
    pub(super) async fn wait_until_deleted(&self, name: &str) {
        eventually(&format!("{name} is deleted"), async || {
            let (code, _) = send(&self.cluster, "GET", &model(name), &Value::Null).await;
            code == 404 && self.life(name).await == Some(Life::Deleted)
        })
        .await;
    }

    /// Where the newest model of a name lives.
    pub(super) async fn life(&self, name: &str) -> Option<Life> {
        let rows = self.store.rows_of_name(&model::KIND, "default", name).await.unwrap();
        rows.first().map(|row| row.life)
    }
}

/// The path of a model.
pub(super) fn model(name: &str) -> String {
    format!("{MODELS}/{name}")
}

/// A model as clients send it.
pub(super) fn manifest(metadata: Value, spec: Value) -> Value {
    json!({"apiVersion": "michelangelo.api/v2", "kind": "Model", "metadata": metadata, "spec": spec})
}

/// The names of a list's items.
pub(super) fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect()
}
