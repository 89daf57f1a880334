//! Manifests as a cluster reads them, and their containers as processes: the command, the arguments
//! and the environment stand in the manifest, the mounted files lie in a directory.

use std::fs;

use k8s_openapi::api::apps::v1::DeploymentSpec;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{PASSWORD, Server, path, read, run, stderr_of};
use crate::schema::server::{Product, on_servers};

on_servers!(the_job_creates_the_schema, the_init_container_creates_the_schema);

const JOB: &str = "deploy/schema/ingester_schema_job.yaml";
const INIT_CONTAINER: &str = "deploy/schema/api-server-init-container.yaml";
/// Where the manifests mount the files.
const MOUNT: &str = "/schema";

/// The documents of a file.
pub(super) fn documents(name: &str) -> Vec<Value> {
    let text = read(name);
    let documents = text.split("\n---\n").map(serde_saphyr::from_str);
    documents
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Reads a document as a type of Kubernetes and writes it again: a field that the type does not
/// have would be lost on the way.
fn assert_known<T: DeserializeOwned + Serialize>(document: &Value) {
    let read: T = serde_json::from_value(document.clone()).expect("the type's form");
    assert_eq!(&serde_json::to_value(read).expect("JSON"), document);
}

#[test]
fn every_field_is_one_that_kubernetes_knows() {
    let job = documents(JOB);
    assert_eq!(job.len(), 2);
    assert_known::<ConfigMap>(&job[0]);
    assert_known::<Job>(&job[1]);
    let [patch] = documents(INIT_CONTAINER).try_into().expect("one document");
    // A patch has the parts of a Deployment that it changes; the others are there already.
    let mut whole = patch["spec"].clone();
    whole["selector"] = json!({});
    whole["template"]["spec"]["containers"] = json!([]);
    assert_known::<DeploymentSpec>(&whole);
}

/// A configMap fits into an object of the cluster, and into the annotation that `kubectl apply`
/// keeps of it.
#[test]
fn the_config_map_may_be_applied() {
    const ANNOTATION_BYTES_MAX: usize = 256 * 1024;
    assert!(documents(JOB)[0].to_string().len() < ANNOTATION_BYTES_MAX / 2);
}

#[test]
fn containers_find_what_they_mount() {
    let job = documents(JOB);
    let [patch] = documents(INIT_CONTAINER).try_into().expect("one document");
    for (pod, container) in [
        (&job[1]["spec"]["template"]["spec"], "containers"),
        (&patch["spec"]["template"]["spec"], "initContainers"),
    ] {
        let volumes = pod["volumes"].as_array().expect("volumes");
        for mount in pod[container][0]["volumeMounts"].as_array().expect("mounts") {
            assert!(volumes.iter().any(|volume| volume["name"] == mount["name"]), "{mount}");
        }
    }
    let named = &job[1]["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"];
    assert_eq!(named, &job[0]["metadata"]["name"]);
}

/// Runs a container on a server, with the files in a directory instead of at their mount.
async fn run_container(server: &mut Server, container: &Value, files: &std::path::Path) {
    let word = |value: &Value| {
        value
            .as_str()
            .expect("text")
            .replace(MOUNT, &files.display().to_string())
    };
    let mut words = [&container["command"], &container["args"]]
        .into_iter()
        .flat_map(|words| words.as_array().expect("a list").iter().map(word));
    let program = words.next().expect("a command");
    let args: Vec<String> = words.collect();
    let environment = container["env"]
        .as_array()
        .expect("an environment")
        .iter()
        .map(|variable| {
            let name = variable["name"].as_str().expect("a name").to_owned();
            let secret = &variable["valueFrom"]["secretKeyRef"]["key"];
            let value = match (name.as_str(), secret.as_str()) {
                // The names of the cluster do not lead anywhere here.
                ("MYSQL_HOST", None) => "127.0.0.1".to_owned(),
                ("MYSQL_PORT", None) => server.port(),
                (_, Some("user")) => server.user(),
                (_, Some("password")) => PASSWORD.to_owned(),
                other => panic!("{other:?} comes from nowhere"),
            };
            (name, value)
        });
    let environment: Vec<_> = environment.collect();
    for time in ["first", "second"] {
        let output = run(&program, &args, &environment);
        assert!(output.status.success(), "{time}: {}", stderr_of(&output));
    }
    server.expect_schema("michelangelo").await;
}

async fn the_job_creates_the_schema(product: Product) {
    let Some(mut server) = Server::of(product).await else {
        return;
    };
    let job = documents(JOB);
    let files = TempDir::new().expect("a temporary directory");
    for (name, text) in job[0]["data"].as_object().expect("files") {
        fs::write(files.path().join(name), text.as_str().expect("text")).expect("writable");
    }
    let container = &job[1]["spec"]["template"]["spec"]["containers"][0];
    run_container(&mut server, container, files.path()).await;
}

async fn the_init_container_creates_the_schema(product: Product) {
    let Some(mut server) = Server::of(product).await else {
        return;
    };
    let [patch] = documents(INIT_CONTAINER).try_into().expect("one document");
    let container = &patch["spec"]["template"]["spec"]["initContainers"][0];
    run_container(&mut server, container, &path("deploy/helm/kindex/files/schema")).await;
}
