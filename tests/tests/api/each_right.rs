//! Each verb by each way takes one right and no other: a caller who has exactly that one is served, and a caller who
//! has exactly one of the others is refused. REST, the groups for aggregation, and gRPC.

use kindex_generated::kinds::model;
use kube::Client;
use serde_json::{Value, json};
use tonic::Code;

use super::following::list_version;
use super::grpc::client::Client as GrpcClient;
use super::rights::{FIRST, secure};
use super::stage::{MODELS, Stage, manifest, send_with};

/// All there are, of models.
const RIGHTS: [&str; 10] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "update/status",
    "patch/status",
];
const APPLY: &str = "application/apply-patch+yaml";
/// The two places of an object.
const NAMES: [&str; 2] = ["live", "gone"];

/// A request, and the right that it takes.
struct Route {
    method: &'static str,
    path: String,
    right: &'static str,
    /// Of the body.
    media: &'static str,
}

impl Route {
    /// What the one has who is served. Changes of an archived object are tried in the cluster as a creation by the
    /// caller, which takes the right to that as well.
    fn rights(&self) -> String {
        match (self.method, self.is_of_archived(), self.right.contains("/status")) {
            ("PUT" | "PATCH", true, false) => format!("{}+create", self.right),
            _ => self.right.to_owned(),
        }
    }

    fn is_of_archived(&self) -> bool {
        self.path.contains("/gone")
    }
}

fn route(method: &'static str, path: impl Into<String>, right: &'static str) -> Route {
    let media = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    Route {
        method,
        path: path.into(),
        right,
        media,
    }
}

fn patch(media: &'static str, path: String) -> Route {
    Route {
        media,
        ..route("PATCH", path, "patch")
    }
}

/// Every way to ask over REST; those that delete come last. Watches go on from a version: without one they list, which
/// takes the right to that as well.
async fn routes(stage: &Stage) -> Vec<Route> {
    let version = list_version(&stage.cluster).await;
    let mut routes = Vec::new();
    let watch = "watch=true&timeoutSeconds=1";
    let past = "at=2126-01-01T00:00:00Z";
    for name in NAMES {
        let object = format!("{MODELS}/{name}");
        for query in ["", "?includeDeleted=true", "?uid=1", &format!("?{past}")] {
            routes.push(route("GET", format!("{object}{query}"), "get"));
        }
        routes.push(route("PUT", object.clone(), "update"));
        routes.push(route("PUT", format!("{object}/status"), "update/status"));
        routes.push(route("PATCH", object.clone(), "patch"));
        routes.push(route("PATCH", format!("{object}/status"), "patch/status"));
        routes.push(patch(APPLY, format!("{object}?fieldManager=me")));
        routes.push(patch("application/json-patch+json", object.clone()));
        // Nothing is changed, and all is told.
        for (method, right) in [("PUT", "update"), ("PATCH", "patch"), ("DELETE", "delete")] {
            routes.push(route(method, format!("{object}?dryRun=All"), right));
        }
    }
    let everywhere = MODELS.replace("/namespaces/default", "");
    for list in [MODELS, &everywhere] {
        for query in [
            "",
            "?limit=1",
            "?includeDeleted=true",
            "?labelSelector=a",
            &format!("?{past}"),
        ] {
            routes.push(route("GET", format!("{list}{query}"), "list"));
        }
        routes.push(route(
            "GET",
            format!("{list}?{watch}&resourceVersion={version}"),
            "watch",
        ));
    }
    for query in ["?dryRun=All", ""] {
        routes.push(route("POST", format!("{MODELS}{query}"), "create"));
    }
    routes.push(route("DELETE", format!("{MODELS}?dryRun=All"), "deletecollection"));
    routes.extend(NAMES.map(|name| route("DELETE", format!("{MODELS}/{name}"), "delete")));
    routes.push(route("DELETE", MODELS, "deletecollection"));
    routes
}

async fn stage() -> Stage {
    let stage = Stage::with_rights().await;
    let root = [
        ("authorization", "Bearer root-token"),
        ("content-type", "application/json"),
    ];
    for (name, annotations) in [("live", json!({})), ("gone", json!({super::stage::FINAL: "true"}))] {
        let body = manifest(
            json!({"name": name, "annotations": annotations}),
            json!({"algorithm": "one"}),
        );
        let (code, answer) = send_with(&stage.api, "POST", MODELS, &root, body.to_string()).await;
        assert_eq!(code, 201, "{answer}");
    }
    stage.wait_until_archived("gone").await;
    stage
}

/// The code of the answer to a caller with this one right.
async fn code(client: &Client, route: &Route, right: &str) -> (u16, Value) {
    let (user, token) = (format!("only-{right}"), format!("Bearer only-{right}-token"));
    let headers = [
        ("authorization", token.as_str()),
        // Counts from the front proxy alone.
        ("x-remote-user", user.as_str()),
        ("content-type", route.media),
    ];
    let name = if route.path.contains("/gone") { "gone" } else { "live" };
    let body = match route.method {
        "POST" => manifest(json!({"name": "new"}), json!({})).to_string(),
        "PUT" => manifest(json!({"name": name, "resourceVersion": "1"}), json!({})).to_string(),
        "PATCH" if route.media == APPLY => manifest(json!({"name": name}), json!({})).to_string(),
        "PATCH" if route.media.contains("json-patch") => {
            json!([{"op": "add", "path": "/spec/algorithm", "value": right}]).to_string()
        }
        "PATCH" => json!({"metadata": {"labels": {"by": right.replace(['/', '+'], "-")}}}).to_string(),
        _ => String::new(),
    };
    send_with(client, route.method, &route.path, &headers, body).await
}

/// First those who may not, then the one who may: nothing that is refused has an effect.
async fn each_right_counts(client: &Client, routes: &[Route]) {
    for route in routes {
        let Route {
            method, path, right, ..
        } = route;
        for other in RIGHTS.into_iter().filter(|other| other != right) {
            let (code, answer) = code(client, route, other).await;
            assert_eq!(code, 403, "{method} {path} with {other} alone: {answer}");
        }
        let right = &route.rights();
        let (code, answer) = code(client, route, right).await;
        assert!(
            ![401, 403, 405, 500].contains(&code),
            "{method} {path} with {right} alone: {code} {answer}"
        );
        let is_refused_to_all = *method == "PUT" || route.media == APPLY && route.is_of_archived();
        if !path.contains("uid=") && !is_refused_to_all {
            assert!(
                matches!(code, 200 | 201),
                "{method} {path} with {right} alone: {code} {answer}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_of_rest_takes_one_right_and_no_other() {
    let stage = stage().await;
    each_right_counts(&stage.api, &routes(&stage).await).await;
    stage.end().await;
}

/// What is asked of the cluster in the caller's name takes the right to that as well.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_lists_and_a_change_that_is_tried_as_a_creation_take_a_second_right() {
    let stage = stage().await;
    let object = format!("{MODELS}/gone");
    for (route, second) in [
        (
            route("GET", format!("{MODELS}?watch=true&timeoutSeconds=1"), "watch"),
            "list",
        ),
        (route("PATCH", object.clone(), "patch"), "create"),
        (patch("application/json-patch+json", object), "create"),
    ] {
        let Route {
            method, path, right, ..
        } = &route;
        let (alone, answer) = code(&stage.api, &route, right).await;
        assert_eq!(alone, 403, "{method} {path} with {right} alone: {answer}");
        let both = format!("{right}+{second}");
        let (with_both, answer) = code(&stage.api, &route, &both).await;
        assert_eq!(with_both, 200, "{method} {path} with {both}: {answer}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_aggregated_request_takes_one_right_and_no_other() {
    let stage = stage().await;
    let aggregated = |mut route: Route| {
        route.path = route.path.replacen("/apis/", "/apis/archive.", 1);
        route
    };
    let served = routes(&stage)
        .await
        .into_iter()
        .filter(|route| !["POST", "PUT"].contains(&route.method) && route.media != APPLY);
    let served: Vec<Route> = served.map(aggregated).collect();
    let proxy = secure(&stage, Some(FIRST));
    for method in ["POST", "PUT"] {
        let path = if method == "POST" {
            MODELS.to_owned()
        } else {
            format!("{MODELS}/live")
        };
        let unserved = aggregated(route(method, path, "create"));
        let (code, answer) = code(&proxy, &unserved, "create+update").await;
        assert_eq!(
            code, 405,
            "{method}: objects are created and replaced under their own group: {answer}"
        );
    }
    each_right_counts(&proxy, &served).await;
    stage.end().await;
}

/// Every call, and the right that it takes; those that delete come last.
fn calls() -> Vec<(&'static str, Value, &'static str)> {
    let at = |name: &str| json!({"namespace": "default", "name": name});
    let named = |name: &str| {
        let metadata = json!({"name": name, "namespace": "default", "resourceVersion": "1"});
        json!({"model": {"metadata": metadata, "spec": {"algorithm": "one"}}})
    };
    let mut calls = Vec::new();
    for name in NAMES {
        calls.push(("Get*", at(name), "get"));
        calls.push(("Update*", named(name), "update"));
        calls.push(("Update*Status", named(name), "update/status"));
    }
    for namespace in ["default", ""] {
        calls.push(("List*", json!({"namespace": namespace}), "list"));
        let search = json!({"namespace": namespace, "listOptionsExt": {"pagination": {"limit": 1}}});
        calls.push(("List*", search, "list"));
    }
    let mut new = named("new");
    new["model"]["metadata"]["resourceVersion"] = json!("");
    calls.push(("Create*", new, "create"));
    calls.extend(NAMES.map(|name| ("Delete*", at(name), "delete")));
    calls.push(("Delete*Collection", json!({"namespace": "default"}), "deletecollection"));
    calls
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_of_grpc_takes_one_right_and_no_other() {
    let stage = stage().await;
    let plain = GrpcClient::plain(stage.address).await;
    let with = |right: &str| plain.with_token(&format!("only-{right}-token"));
    let version = list_version(&stage.cluster).await;
    let watched = json!({"namespace": "default", "listOptions": {"resourceVersion": version}});
    for right in RIGHTS {
        let refused = with(right).watch(&model::KIND, watched.clone()).await.err();
        let expected = (right != "watch").then_some(Code::PermissionDenied);
        assert_eq!(
            refused.map(|status| status.code()),
            expected,
            "a watch with {right} alone"
        );
    }
    // Who has rights in one namespace has none in all.
    let jane = plain.with_token("jane-token");
    let everywhere = calls().into_iter().filter(|(_, request, _)| request["namespace"] == "");
    for (call, request, _) in everywhere {
        let status = jane
            .call(&model::KIND, call, request.clone())
            .await
            .expect_err("of all namespaces");
        assert_eq!(status.code(), Code::PermissionDenied, "{call} {request}: {status:?}");
    }
    for (call, request, right) in calls() {
        for other in RIGHTS.into_iter().filter(|other| *other != right) {
            let answer = with(other).call(&model::KIND, call, request.clone()).await;
            let status = answer.expect_err(&format!("{call} {request} with {other} alone"));
            assert_eq!(
                status.code(),
                Code::PermissionDenied,
                "{call} {request} with {other} alone: {status:?}"
            );
        }
        match with(right).call(&model::KIND, call, request.clone()).await {
            Ok(_) => {}
            Err(status) => {
                let is_of_the_object = matches!(status.code(), Code::Aborted | Code::FailedPrecondition);
                assert!(
                    call.starts_with("Update") && is_of_the_object,
                    "{call} {request} with {right} alone: {status:?}"
                );
            }
        }
    }
    stage.end().await;
}
