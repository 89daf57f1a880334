//! `openapi.json` is what the service does: every answer that a test gets, and every request that succeeds, is as
//! described there, with no field more.

use std::collections::BTreeSet;

use http::StatusCode;
use kindex_runs::rest::ROUTES;
use serde_json::{Value, json};

use crate::description::{COMPARED, DESCRIPTION, Name};
use crate::server::Server;

#[tokio::test]
async fn every_route_is_described_with_its_scope() {
    let server = Server::start().await;
    let document = server.get("/openapi.json").await.json();
    let mut described = BTreeSet::new();
    for (path, method) in DESCRIPTION.calls.keys() {
        let security = &document["paths"][path][method.to_lowercase()]["security"];
        let scope = security[0]["bearer"][0].as_str().map(str::to_owned);
        let key_or_none = json!([{"bearer": [&scope]}, {"apiKey": [&scope]}, {}]);
        assert_eq!(
            *security,
            if scope.is_some() { key_or_none } else { json!([]) },
            "{path}"
        );
        described.insert((method.clone(), path.clone(), scope));
    }
    let served = ROUTES.iter().map(|route| {
        let scope = route.scope.map(|scope| scope.word().to_owned());
        (route.method.to_owned(), route.path.to_owned(), scope)
    });
    assert_eq!(served.collect::<BTreeSet<_>>(), described);
}

/// What is read, of a run that is running and of one that has ended.
const READ: [&str; 12] = [
    "/",
    "/health",
    "/openapi.json",
    "/api/v1/runs",
    "/api/v1/runs?offset=5&limit=1",
    "/api/v1/runs/r",
    "/api/v1/runs/r/params",
    "/api/v1/runs/r/metrics?max_points=1",
    "/api/v1/runs/r/artifacts",
    "/api/v1/runs/r/artifacts/m.bin/url",
    "/api/v1/runs/search?project=demo&q=first",
    "/api/v1/projects/demo/stats?since=2026-01-01T00:00:00Z",
];

/// A run with all that a run can have, of which every call is made that succeeds.
#[tokio::test]
async fn what_all_routes_answer_is_as_described() {
    let server = Server::start().await;
    log_all(&server).await;
    read_all(&server).await;
    let end = json!({"status": "failed", "exit_code": "1", "summary": {"best": 0.5, "why": "NaN"}});
    post(&server, "/api/v1/runs/r/finish", &end).await;
    read_all(&server).await;
    let deleted = server.ask(server.request("DELETE", "/api/v1/runs/r"), "").await;
    assert_eq!(deleted.status, StatusCode::OK);
    let all: BTreeSet<Name> = DESCRIPTION.calls.keys().cloned().collect();
    assert_eq!(COMPARED.take(), all);
}

async fn post(server: &Server, path: &str, body: &Value) -> Value {
    let answer = server.post(path, body.to_string()).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}: {:?}", answer.body);
    answer.json()
}

async fn log_all(server: &Server) {
    let open = json!({
        "project": "demo", "run_id": "r", "name": "first", "description": "all", "parent_run_id": "p",
        "tags": [{"key": "team", "value": "vision"}], "config": {"lr": 0.1, "deep": {"er": null}},
        "system_info": {"hostname": "h", "gpus": [{"index": 1, "name": "g"}], "memory_bytes": 5},
        "git_info": {"commit": "c0ffee", "dirty": true},
    });
    let batch = json!({
        "run_id": "r", "batch_id": "b", "seq": "1", "params": {"epochs": 3}, "tags": [{"key": "k", "value": "v"}],
        "metrics": [
            {"name": "loss", "step": 1, "value": 0.5, "timestamp": 1_767_225_600.5},
            {"name": "loss", "step": "2", "value": "NaN", "timestamp": "2026-01-01T00:00:01Z"},
            {"name": "up", "step": 1, "value": "Infinity"}, {"name": "no name", "step": 1, "value": 0},
        ],
    });
    post(server, "/api/v1/runs", &json!({"project": "demo", "run_id": "p"})).await;
    post(server, "/api/v1/runs", &open).await;
    post(server, "/api/v1/runs", &open).await;
    let stored = post(server, "/api/v1/ingest/batch", &batch).await;
    assert_eq!(stored["warnings"][0]["code"], "INVALID_METRIC_NAME");
    let more = [
        ("/api/v1/ingest/batch", batch),
        ("/api/v1/runs/r/params", json!({"params": {"lr": 5, "more": "x"}})),
        ("/api/v1/runs/r/tags", json!({"tags": {"a": "b"}, "remove_keys": ["k"]})),
        ("/api/v1/runs/r/heartbeat", json!({"client_time": 1_767_225_600})),
    ];
    for (path, body) in &more {
        post(server, path, body).await;
    }
    let metadata = json!({"name": "m.bin", "type": "ARTIFACT_TYPE_MODEL", "step": 5});
    let announced = json!({"metadata": metadata, "expected_size_bytes": 3});
    let upload = post(server, "/api/v1/runs/r/artifacts", &announced).await;
    put(server, &upload, "abc").await;
    let id = upload["upload_id"].as_str().expect("an id");
    let received = json!({"actual_size_bytes": "3", "md5_checksum": "900150983cd24fb0d6963f7d28e17f72"});
    post(server, &format!("/api/v1/artifacts/{id}/finalize"), &received).await;
}

async fn read_all(server: &Server) {
    for path in READ {
        let answer = server.get(path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {:?}", answer.body);
    }
    for alignment in ["", "step", "relative_time", "absolute_time", "progress"] {
        let compare = json!({"run_ids": ["r", "p"], "alignment": alignment});
        post(server, "/api/v1/runs/compare", &compare).await;
    }
}

/// Sends a file to where its announcement says.
async fn put(server: &Server, upload: &Value, content: &'static str) {
    let url = upload["presigned_url"].as_str().expect("an address");
    let mut request = http::Request::builder().method("PUT").uri(url);
    for (name, value) in upload["required_headers"].as_object().expect("headers") {
        if name != "Content-Length" {
            request = request.header(name, value.as_str().expect("a text"));
        }
    }
    let answer = server.ask(request, content).await;
    assert_eq!(answer.status, StatusCode::OK, "{:?}", answer.body);
}

/// What a server must not answer is seen.
#[test]
fn an_answer_with_a_field_less_or_more_or_a_time_as_debug_text_is_found() {
    let heartbeat = ("/api/v1/runs/{id}/heartbeat".to_owned(), "POST".to_owned());
    let schema = DESCRIPTION.calls[&heartbeat].answer.as_ref().expect("an answer");
    let good = json!({"server_time": "2026-01-01T00:00:00.5Z", "request_resync": false});
    assert!(schema.is_valid(&good));
    for (field, value) in [
        ("server_time", json!("SystemTime { tv_sec: 1767225600, tv_nsec: 0 }")),
        ("server_time", json!(1_767_225_600)),
        ("server_time", Value::Null),
        ("request_resync", json!("false")),
        ("other", json!(1)),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(!schema.is_valid(&bad), "{bad}");
    }
    assert!(!schema.is_valid(&json!({"server_time": "2026-01-01T00:00:00Z"})));
}
