//! What is refused: by which code, with which details, and that nothing of it reaches the cluster.

use kindex_generated::kinds::model;
use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::client::Client;
use crate::api::stage::{MODELS, Stage, send};

async fn refused(client: &Client, call: &str, request: Value) -> Status {
    let answer = client.call(&model::KIND, call, request.clone()).await;
    answer.expect_err(&format!("{call} {request}"))
}

fn fields(status: &Status) -> Vec<String> {
    let details = status.get_error_details();
    let violations = details.bad_request().map(|bad| bad.field_violations.clone());
    violations
        .into_iter()
        .flatten()
        .map(|violation| violation.field)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_have_codes_and_details() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    stage.create_archived("archived", json!({}), json!({})).await;
    let named = |name: &str| json!({"model": {"metadata": {"name": name, "namespace": "default"}}});
    let at = |name: &str| json!({"name": name, "namespace": "default"});

    let absent = refused(&client, "Get*", at("absent")).await;
    assert_eq!(absent.code(), Code::NotFound);
    let details = absent.get_error_details();
    let info = details.error_info().unwrap();
    assert_eq!(
        (info.reason.as_str(), info.domain.as_str()),
        ("NotFound", "michelangelo.api")
    );
    assert_eq!(info.metadata["name"], "absent");
    assert_eq!(info.metadata["kind"], "models");

    let taken = refused(&client, "Create*", named("archived")).await;
    assert_eq!(taken.code(), Code::AlreadyExists);
    let got = client.call(&model::KIND, "Get*", at("archived")).await.unwrap();
    assert_eq!(got["model"]["metadata"]["name"], "archived");

    let mut stale = named("archived");
    stale["model"]["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(
        refused(&client, "Update*", stale).await.code(),
        Code::FailedPrecondition
    );

    let invalid = refused(&client, "Create*", named("No Name")).await;
    assert_eq!(invalid.code(), Code::InvalidArgument);
    assert_eq!(fields(&invalid), ["metadata.name"], "{invalid:?}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_malformed_is_refused_before_anything_is_written() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    let object = |metadata: Value, spec: Value| json!({"model": {"metadata": metadata, "spec": spec}});
    let here = json!({"name": "m", "namespace": "default"});
    for (call, request, field) in [
        ("Create*", json!({}), ""),
        (
            "Create*",
            object(json!({"namespace": "default"}), json!({})),
            "metadata.name",
        ),
        ("Create*", object(json!({"name": "m"}), json!({})), "metadata.namespace"),
        (
            "Create*",
            object(json!({"name": "m", "namespace": "a/b"}), json!({})),
            "metadata.namespace",
        ),
        ("Create*", object(here.clone(), json!({"kind": 4711})), "spec.kind"),
        ("Update*", json!({}), ""),
        (
            "Update*",
            object(json!({"namespace": "default"}), json!({})),
            "metadata.name",
        ),
        ("Update*Status", json!({}), ""),
        ("Get*", json!({"name": "m"}), "metadata.namespace"),
        ("Get*", json!({"namespace": "default"}), "metadata.name"),
        ("Get*", json!({"namespace": "default", "name": ".."}), "metadata.name"),
        ("Delete*", json!({"namespace": "default"}), "metadata.name"),
        (
            "Delete*",
            json!({"namespace": "default", "name": "m", "deleteOptions": {"dryRun": ["x"]}}),
            "dryRun",
        ),
        ("Delete*Collection", json!({}), "metadata.namespace"),
        (
            "Delete*Collection",
            json!({"namespace": "default", "listOptions": {"limit": 1}}),
            "limit",
        ),
        ("List*", json!({"listOptions": {"limit": -1}}), "limit"),
        (
            "List*",
            json!({"listOptionsExt": {"orderBy": [{"field": "name", "dir": 7}]}}),
            "orderBy.dir",
        ),
    ] {
        let status = refused(&client, call, request.clone()).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{call} {request}: {status:?}");
        assert_eq!(fields(&status), [field], "{call} {request}: {status:?}");
    }
    let mut other = object(here, json!({}));
    other["model"]["typeMeta"] = json!({"kind": "Project"});
    assert_eq!(fields(&refused(&client, "Create*", other).await), ["kind"]);

    let (_, list) = send(&stage.cluster, "GET", MODELS, &Value::Null).await;
    assert_eq!(list["items"], json!([]), "nothing was written");
    stage.end().await;
}
