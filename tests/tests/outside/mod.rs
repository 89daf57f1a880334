//! A program that cleans up outside of the cluster, as `kindex up`, killed while it waits.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kindex_harness::wait::{WAIT_MAX, eventually};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::ApiResource;
use kube::{Client, Config, ResourceExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// Between two looks of a test that waits.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const FAMILIES: &str = "modelfamilys";
const MODELS: &str = "models";

struct Stage {
    directory: TempDir,
    program: Child,
    client: Client,
    /// Of the API server, which shows what is archived too.
    api: Client,
}

fn program(directory: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outside"));
    let addresses = [
        "--api-addr",
        "--health-addr",
        "--listen",
        "--runs-grpc-addr",
        "--runs-rest-addr",
    ];
    command
        .args(["up", "--blocked-after", "1", "--data-dir"])
        .arg(directory.path().join("data"))
        .args(addresses.iter().flat_map(|flag| [*flag, "127.0.0.1:0"]))
        .env("OUTSIDE", directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command
}

/// A client of the API server, once the program has said where it is.
async fn api(program: &mut Child) -> Client {
    let stdout = program.stdout.take().expect("piped");
    let mut lines = BufReader::new(stdout).lines();
    let said = timeout(WAIT_MAX, async {
        loop {
            let line = lines.next_line().await.expect("readable");
            let line = line.expect("it says where its API is");
            if let Some((_, address)) = line.split_once("api          http://") {
                return address.to_owned();
            }
        }
    });
    let address = said.await.expect("it starts");
    // Its later output must not fill the pipe.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    let config = Config::new(format!("http://{address}").parse().expect("a URL"));
    Client::try_from(config).expect("a client")
}

/// A client of the cluster, once it serves models.
async fn client(directory: &TempDir) -> Client {
    let path = directory.path().join("data/kubeconfig");
    let connected = timeout(WAIT_MAX, async {
        loop {
            if let Ok(kubeconfig) = Kubeconfig::read_from(&path)
                && let Ok(config) = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await
                && let Ok(client) = Client::try_from(config)
                && objects(&client, MODELS).list(&ListParams::default()).await.is_ok()
            {
                return client;
            }
            sleep(LOOK_AGAIN).await;
        }
    });
    connected.await.expect("it serves models")
}

fn objects(client: &Client, plural: &str) -> Api<DynamicObject> {
    let registry = kindex_generated::registry();
    let kind = registry.find(plural).expect("a kind");
    let resource = ApiResource {
        group: kind.group.to_owned(),
        version: kind.version.to_owned(),
        api_version: kind.api_version(),
        kind: kind.name.to_owned(),
        plural: kind.plural.to_owned(),
    };
    Api::namespaced_with(client.clone(), "default", &resource)
}

impl Stage {
    async fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut program = program(&directory).spawn().expect("it starts");
        let api = api(&mut program).await;
        let client = client(&directory).await;
        Self {
            directory,
            program,
            client,
            api,
        }
    }

    /// SIGKILL, and once more on the same files.
    async fn kill_and_start(&mut self) {
        self.program.kill().await.expect("it runs");
        self.program = program(&self.directory).spawn().expect("it starts");
        self.api = api(&mut self.program).await;
        self.client = client(&self.directory).await;
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// How often the cleanup of a model was called.
    fn calls(&self, name: &str) -> usize {
        let calls = fs::read_to_string(self.file(&format!("{name}.calls")));
        calls.map_or(0, |calls| calls.lines().count())
    }

    async fn create(&self, plural: &str, name: &str, spec: Value) {
        let kind = kindex_generated::registry().find(plural).expect("a kind");
        let object = json!({
            "apiVersion": kind.api_version(),
            "kind": kind.name,
            "metadata": {"name": name},
            "spec": spec,
        });
        let object = serde_json::from_value(object).expect("an object");
        let (objects, parameters) = (objects(&self.client, plural), PostParams::default());
        objects.create(&parameters, &object).await.expect("it is taken");
    }

    async fn get(&self, plural: &str, name: &str) -> Option<DynamicObject> {
        let found = objects(&self.client, plural).get_opt(name).await;
        found.expect("the cluster answers")
    }

    async fn delete(&self, plural: &str, name: &str) {
        let deleted = objects(&self.client, plural)
            .delete(name, &DeleteParams::default())
            .await;
        deleted.expect("it is there");
    }

    async fn has_finalizer(&self, plural: &str, name: &str, finalizer: &str) -> bool {
        let found = self.get(plural, name).await;
        found.is_some_and(|found| found.finalizers().iter().any(|one| one.starts_with(finalizer)))
    }

    async fn is_reported(&self, name: &str, reason: &str, message: &str) -> bool {
        let events: Api<Event> = Api::default_namespaced(self.client.clone());
        let events = events.list(&ListParams::default()).await.expect("events").items;
        events.into_iter().any(|event| {
            let is_of = event.involved_object.name.as_deref() == Some(name);
            let says = event.message.unwrap_or_default().contains(message);
            is_of && says && event.reason.as_deref() == Some(reason)
        })
    }

    async fn is_gone(&self, name: &str) -> bool {
        let (model, family) = (self.get(MODELS, name).await, self.get(FAMILIES, name).await);
        model.is_none() && family.is_none()
    }

    /// A model of a family, and the reference of the one on the other.
    async fn model_of_a_family(&self, name: &str) {
        self.create(FAMILIES, name, json!({"name": name})).await;
        let family = json!({"modelFamily": {"name": name, "namespace": "default"}});
        self.create(MODELS, name, family).await;
        let held = async || self.has_finalizer(FAMILIES, name, "model.michelangelo.api/").await;
        eventually("the reference", held).await;
    }

    /// The model leaves the cluster.
    async fn archive(&self, name: &str) {
        let is_final = json!({"metadata": {"annotations": {"michelangelo/Immutable": "true"}}});
        let (models, parameters) = (objects(&self.client, MODELS), PatchParams::default());
        let patched = models.patch(name, &parameters, &Patch::Merge(is_final)).await;
        patched.expect("it is there");
        let is_archived = async || self.get(MODELS, name).await.is_none();
        eventually("the model to be archived", is_archived).await;
    }

    async fn archived(&self, name: &str) -> Option<DynamicObject> {
        let found = objects(&self.api, MODELS).get_opt(name).await;
        found.expect("the API answers")
    }

    async fn delete_archived(&self, name: &str) {
        let (models, parameters) = (objects(&self.api, MODELS), DeleteParams::default());
        let is_deleted = async || models.delete(name, &parameters).await.is_ok();
        eventually("its deletion", is_deleted).await;
    }

    async fn delete_both(&self, name: &str) {
        self.delete(FAMILIES, name).await;
        self.delete(MODELS, name).await;
    }
}

#[tokio::test]
async fn a_model_goes_once_its_file_is_gone_over_failures_panics_and_a_kill() {
    let mut stage = Stage::start().await;
    stage.model_of_a_family("a").await;
    let file = stage.file("a");
    fs::write(&file, "wait").expect("writable");
    assert_eq!(stage.calls("a"), 0, "nobody has deleted it");
    stage.delete_both("a").await;
    let waits = "outside of the cluster: the file of a says wait";
    eventually("wait", async || stage.is_reported("a", "DeletionDraining", waits).await).await;
    fs::write(&file, "fail").expect("writable");
    let fails = "the disk is away";
    eventually("fail", async || stage.is_reported("a", "CleanupFailed", fails).await).await;

    let calls = stage.calls("a");
    stage.kill_and_start().await;
    eventually("a call", async || stage.calls("a") > calls).await;
    fs::write(&file, "panic").expect("writable");
    let panics = "it panicked: a file that panics";
    eventually("panic", async || stage.is_reported("a", "CleanupFailed", panics).await).await;

    stage.model_of_a_family("b").await;
    stage.delete_both("b").await;
    eventually("the other model to go", async || stage.is_gone("b").await).await;
    assert_eq!(stage.calls("b"), 1);
    let model = stage.get(MODELS, "a").await.expect("it waits");
    assert_eq!(model.annotations()["michelangelo.api/deletion-phase"], "DRAINING");
    let held = stage.has_finalizer(FAMILIES, "a", "model.michelangelo.api/").await;
    assert!(held, "the family of a model whose file is there");

    fs::remove_file(&file).expect("it is there");
    eventually("both to go", async || stage.is_gone("a").await).await;
}

#[tokio::test]
async fn an_archived_model_goes_once_its_file_is_gone_over_failures_panics_and_a_kill() {
    let mut stage = Stage::start().await;
    stage.model_of_a_family("a").await;
    let file = stage.file("a");
    fs::write(&file, "wait").expect("writable");
    stage.archive("a").await;
    stage.delete_archived("a").await;
    let waits = "outside of the cluster: the file of a says wait";
    eventually("wait", async || stage.is_reported("a", "DeletionDraining", waits).await).await;
    fs::write(&file, "fail").expect("writable");
    let fails = "the disk is away";
    eventually("fail", async || stage.is_reported("a", "CleanupFailed", fails).await).await;

    let calls = stage.calls("a");
    stage.kill_and_start().await;
    eventually("a call", async || stage.calls("a") > calls).await;
    fs::write(&file, "panic").expect("writable");
    let panics = "it panicked: a file that panics";
    eventually("panic", async || stage.is_reported("a", "CleanupFailed", panics).await).await;

    stage.model_of_a_family("b").await;
    stage.archive("b").await;
    assert_eq!(stage.calls("b"), 0, "to be archived is not a deletion");
    stage.delete_archived("b").await;
    eventually("the other model to go", async || stage.archived("b").await.is_none()).await;
    assert_eq!(stage.calls("b"), 1);
    stage.delete(FAMILIES, "a").await;
    let model = stage.archived("a").await.expect("it waits");
    assert_eq!(model.annotations()["michelangelo.api/deletion-phase"], "DRAINING");
    assert!(stage.get(FAMILIES, "a").await.is_some(), "the model holds it");

    fs::remove_file(&file).expect("it is there");
    eventually("both to go", async || {
        stage.archived("a").await.is_none() && stage.get(FAMILIES, "a").await.is_none()
    })
    .await;
}

#[tokio::test]
async fn a_cleanup_of_a_kind_that_the_program_does_not_have_ends_it_at_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = program(&directory);
    command.env("OUTSIDE_STRANGE", "1").stderr(Stdio::piped());
    let output = timeout(WAIT_MAX, command.output()).await.expect("it ends");
    let output = output.expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("the kind Trial has a cleanup and is not in the registry"),
        "{said}"
    );
    assert!(said.contains("hint: name a kind of the registry"), "{said}");
}
