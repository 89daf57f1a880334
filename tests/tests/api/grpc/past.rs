//! Reads of the past and of what was deleted, which the metadata of a call asks for; and the page that shows how, run
//! as it stands with grpcurl.

use std::process::Command;

use jiff::Timestamp;
use kindex_generated::kinds::{model, project};
use kindex_harness::require::require;
use kindex_harness::wait::{WAIT_MAX, eventually};
use kindex_harness::{grpcurl, tools};
use kindex_query::Life;
use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::client::Client;
use crate::api::stage::{Stage, send};

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/how-to/grpc.md"));

fn with(client: &Client, name: &'static str, value: &str) -> Client {
    let mut client = client.clone();
    client.metadata.append(name, value.parse().unwrap());
    client
}

async fn algorithms(client: &Client, ext: bool) -> Vec<String> {
    let mut request = json!({"namespace": "default"});
    if ext {
        request["listOptionsExt"] = json!({});
    }
    let answer = client.call(&model::KIND, "List*", request).await.unwrap();
    let items = answer["modelList"]["items"].as_array().cloned().unwrap_or_default();
    let algorithm = |item: &Value| item["spec"]["algorithm"].as_str().unwrap().to_owned();
    items.iter().map(algorithm).collect()
}

async fn get(client: &Client) -> Result<Value, Status> {
    let name = json!({"namespace": "default", "name": "a"});
    let answer = client.call(&model::KIND, "Get*", name).await;
    answer.map(|mut answer| answer["model"].take())
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_and_lists_are_read_as_they_were_at_a_moment() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    let before = Timestamp::now().to_string();
    stage.create("a", json!({}), json!({"algorithm": "one"})).await;
    eventually("stored", async || stage.life("a").await == Some(Life::Live)).await;
    let then = Timestamp::now().to_string();
    let past = with(&client, "kindex-at", &then);
    let mut object = get(&client).await.unwrap();
    object["spec"]["algorithm"] = json!("two");
    client
        .call(&model::KIND, "Update*", json!({"model": object}))
        .await
        .unwrap();
    eventually("the second version is stored", async || {
        let now = with(&client, "kindex-at", &Timestamp::now().to_string());
        get(&now).await.is_ok_and(|object| object["spec"]["algorithm"] == "two")
    })
    .await;
    assert_eq!(get(&past).await.unwrap()["spec"]["algorithm"], "one");
    assert_eq!(algorithms(&past, false).await, ["one"]);
    assert_eq!(algorithms(&client, false).await, ["two"]);

    let earlier = with(&client, "kindex-at", &before);
    assert_eq!(get(&earlier).await.unwrap_err().code(), Code::NotFound);
    assert!(algorithms(&earlier, false).await.is_empty());
    let nothing_kept = past.call(&project::KIND, "List*", json!({})).await.unwrap_err();
    assert_eq!(nothing_kept.code(), Code::InvalidArgument, "{nothing_kept:?}");
    assert!(nothing_kept.message().contains("keeps no history"), "{nothing_kept:?}");
    let conditions = past.call(&model::KIND, "List*", json!({"listOptionsExt": {}})).await;
    assert_eq!(conditions.unwrap_err().code(), Code::InvalidArgument);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_objects_are_shown_to_who_asks_for_them() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    let all = with(&client, "kindex-include-deleted", "true");
    stage.create("a", json!({}), json!({"algorithm": "one"})).await;
    let name = json!({"namespace": "default", "name": "a"});
    client.call(&model::KIND, "Delete*", name).await.unwrap();
    stage.wait_until_deleted("a").await;
    assert_eq!(get(&client).await.unwrap_err().code(), Code::NotFound);
    let deleted = get(&all).await.unwrap();
    assert!(deleted["metadata"]["deletionTimestamp"].is_object(), "{deleted}");
    for conditions in [false, true] {
        assert!(algorithms(&client, conditions).await.is_empty());
        assert_eq!(algorithms(&all, conditions).await, ["one"], "{conditions}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_that_says_no_state_is_refused_with_its_name() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    for (name, value, call, description) in [
        ("kindex-at", "yesterday", "Get*", "RFC 3339"),
        ("kindex-include-deleted", "yes", "List*", "neither true nor false"),
        ("kindex-deleted", "true", "List*", "is unknown"),
        ("kindex-at", "2026-11-01T12:00:00Z", "Delete*", "is for Get and List"),
        (
            "kindex-include-deleted",
            "true",
            "Delete*Collection",
            "is for Get and List",
        ),
    ] {
        let refused = with(&client, name, value).call(&model::KIND, call, json!({})).await;
        let refused = refused.expect_err(name);
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
        let details = refused.get_error_details();
        assert_eq!(details.error_info().unwrap().reason, "BadRequest", "{refused:?}");
        let [violation] = details.bad_request().unwrap().field_violations.as_slice() else {
            panic!("one violation: {refused:?}")
        };
        assert_eq!(violation.field, name);
        assert!(violation.description.contains(description), "{violation:?}");
    }
    let watch = with(&client, "kindex-include-deleted", "true");
    let refused = watch.watch(&model::KIND, json!({"namespace": "default"})).await;
    assert_eq!(refused.err().unwrap().code(), Code::InvalidArgument);
    stage.end().await;
}

/// The commands under a heading of the page, without those that set what the test sets.
fn commands(heading: &str) -> Vec<String> {
    let (_, section) = PAGE.split_once(&format!("\n## {heading}\n")).expect(heading);
    let section = section.split("\n## ").next().unwrap();
    let mut commands: Vec<String> = Vec::new();
    for line in section.lines().skip_while(|line| !line.starts_with("$ ")) {
        match line.strip_prefix("$ ") {
            Some(command) => commands.push(command.to_owned()),
            None if line.starts_with(' ') => {
                let command = commands.last_mut().unwrap();
                command.push('\n');
                command.push_str(line);
            }
            None => {}
        }
    }
    let is_ours = |command: &String| {
        ["kindex up", "export SERVER=", "export THEN="]
            .iter()
            .any(|own| command.starts_with(own))
    };
    commands.retain(|command| !is_ours(command));
    assert!(!commands.is_empty(), "{heading}");
    commands
}

/// What each command under a heading prints; each must succeed.
async fn run(stage: &Stage, heading: &str, then: &str) -> Vec<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", tools::tools().display());
    let mut printed = Vec::new();
    for command in commands(heading) {
        let mut shell = Command::new("bash");
        shell.args(["-euc", &command]).env("PATH", &path).env("THEN", then);
        shell.env("SERVER", stage.address.to_string());
        shell.env("MODELS", "michelangelo.api.v2.ModelService");
        let run = tokio::task::spawn_blocking(move || shell.output());
        let run = tokio::time::timeout(WAIT_MAX, run).await;
        let output = run.expect("an end").unwrap().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {stderr}");
        printed.push(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    printed
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_page_do_what_it_says() {
    if !require("grpcurl", grpcurl::installed()) {
        return;
    }
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    let namespace = json!({"kind": "Namespace", "metadata": {"name": "ingester-test"}});
    send(&stage.cluster, "POST", "/api/v1/namespaces", &namespace).await;
    // As one of the samples.
    let sample = json!({"model": {"metadata": {"namespace": "ingester-test", "name": "ingester-test-model"}}});
    client.call(&model::KIND, "Create*", sample).await.unwrap();
    let life = async |name: &str| {
        let rows = stage
            .store
            .rows_of_name(&model::KIND, "ingester-test", name)
            .await
            .unwrap();
        rows.first().map(|row| row.life)
    };
    eventually("stored", async || life("ingester-test-model").await == Some(Life::Live)).await;
    let then = Timestamp::now().to_string();

    let printed = run(&stage, "Look around", &then).await;
    assert!(printed[0].contains("michelangelo.api.v2.ModelService"), "{printed:?}");
    let printed = run(&stage, "Create, read, delete", &then).await;
    assert!(printed.iter().any(|text| text.contains("xgboost")), "{printed:?}");
    eventually("deleted", async || life("fraud").await == Some(Life::Deleted)).await;
    run(&stage, "List", &then).await;
    let printed = run(&stage, "References", &then).await;
    let [put, shown, tree, released] = printed.as_slice() else {
        panic!("four commands: {printed:?}")
    };
    for text in [put, shown, tree] {
        assert!(text.contains("7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce"), "{text}");
    }
    assert!(
        tree.contains("holders") && !released.contains("references"),
        "{printed:?}"
    );
    let printed = run(&stage, "The past, and what was deleted", &then).await;
    let [deleted, all, past] = printed.as_slice() else {
        panic!("three commands: {printed:?}")
    };
    assert!(deleted.contains("deletionTimestamp"), "{deleted}");
    assert!(all.contains("fraud") && all.contains("ingester-test-model"), "{all}");
    assert!(
        !past.contains("fraud") && past.contains("ingester-test-model"),
        "{past}"
    );
    stage.end().await;
}
