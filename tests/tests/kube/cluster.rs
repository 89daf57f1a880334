//! A cluster for one test, on a free port, with a kind of its own; clients for it.

use std::path::PathBuf;

use kindex_cluster::{ClusterOptions, Limits};
use kindex_tests::embedded::Embedded;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The definition of the kind that the tests use.
pub(super) const WIDGETS: &str = include_str!("widgets.yaml");

/// A running cluster; it ends with the test.
pub(super) struct TestCluster {
    pub(super) server: Embedded,
    pub(super) directory: TempDir,
    pub(super) client: Client,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl TestCluster {
    /// An empty cluster.
    pub(super) async fn empty() -> Self {
        Self::with_history(10_000).await
    }

    /// A cluster that keeps so many events.
    pub(super) async fn with_history(history_max: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self::in_directory(directory, history_max, Limits::default()).await
    }

    /// A cluster with these limits.
    pub(super) async fn with_limits(limits: Limits) -> Self {
        Self::in_directory(tempfile::tempdir().unwrap(), 10_000, limits).await
    }

    /// A cluster in which widgets are served.
    pub(super) async fn with_widgets() -> Self {
        let cluster = Self::empty().await;
        cluster.install_widgets().await;
        cluster
    }

    /// A cluster opened as `options` say, in a directory of its own.
    pub(super) async fn with(options: ClusterOptions) -> Self {
        Self::opened(tempfile::tempdir().unwrap(), options).await
    }

    async fn in_directory(directory: TempDir, history_max: u64, limits: Limits) -> Self {
        let options = ClusterOptions {
            history_max,
            limits,
            ..ClusterOptions::default()
        };
        Self::opened(directory, options).await
    }

    async fn opened(directory: TempDir, options: ClusterOptions) -> Self {
        let options = ClusterOptions {
            path: Some(directory.path().join("cluster.db")),
            ..options
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let (server, serving) = Embedded::serve(options, async { drop(stopped.await) }).await;
        std::fs::write(directory.path().join("kubeconfig"), server.kubeconfig()).unwrap();
        Self {
            client: Client::try_from(server.config()).unwrap(),
            server,
            directory,
            stop: Some(stop),
            serving,
        }
    }

    /// Stops the cluster and opens it again from its file.
    pub(super) async fn restart(mut self) -> Self {
        self.stop.take().unwrap().send(()).unwrap();
        (&mut self.serving).await.unwrap();
        Self::in_directory(self.directory, 10_000, Limits::default()).await
    }

    /// Serves widgets.
    pub(super) async fn install_widgets(&self) {
        let definition: Value = serde_saphyr::from_str(WIDGETS).unwrap();
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &definitions());
        let created = api
            .create(&PostParams::default(), &serde_json::from_value(definition).unwrap())
            .await
            .unwrap();
        assert_eq!(created.data["status"]["conditions"][1]["type"], "Established");
    }

    /// Widgets in the namespace `default`.
    pub(super) fn widgets(&self) -> Api<DynamicObject> {
        Api::default_namespaced_with(self.client.clone(), &widget())
    }

    /// Creates a widget.
    pub(super) async fn create(&self, name: &str, size: i64) -> DynamicObject {
        self.widgets()
            .create(&PostParams::default(), &new_widget(name, size))
            .await
            .unwrap()
    }

    /// Changes a widget.
    pub(super) async fn resize(&self, name: &str, size: i64) -> DynamicObject {
        let patch = Patch::Merge(json!({"spec": {"size": size}}));
        self.widgets()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap()
    }

    /// A path inside the test's directory.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// The type of widgets.
pub(super) fn widget() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Widget"), "widgets")
}

/// The type of definitions.
pub(super) fn definitions() -> ApiResource {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    ApiResource::from_gvk_with_plural(&kind, "customresourcedefinitions")
}

/// A widget as a client writes it.
pub(super) fn new_widget(name: &str, size: i64) -> DynamicObject {
    DynamicObject::new(name, &widget()).data(json!({"spec": {"size": size}}))
}

/// The Status with which a request was refused.
pub(super) fn refusal<T: std::fmt::Debug>(answer: Result<T, kube::Error>) -> kube::core::Status {
    match answer.unwrap_err() {
        kube::Error::Api(status) => *status,
        other => panic!("not an answer of the server: {other}"),
    }
}
