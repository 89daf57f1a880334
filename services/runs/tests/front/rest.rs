//! REST, as existing clients use it.

use crate::server::Server;

#[tokio::test]
async fn the_requests_of_existing_clients_run_unchanged() {
    let server = Server::start().await;
    assert_eq!(server.get("/health").await.body, "ok");
    let open = r#"{"project":"demo","name":"first","run_id":"r","tags":{"team":"vision"},"config":{"lr":0.1}}"#;
    let opened = server.post("/api/v1/runs", open).await.json();
    assert_eq!(
        (&opened["run_id"], &opened["offline"], &opened["resumed"]),
        (&"r".into(), &false.into(), &false.into())
    );
    assert!(
        opened["resume_token"]
            .as_str()
            .is_some_and(|token| token.split('.').count() == 3)
    );

    let batch = r#"{"run_id":"r","batch_id":"b","seq":1,"metrics":[
        {"name":"loss","value":0.5,"step":1,"timestamp":1767225600.5},{"name":"loss","value":0.25,"step":2}],
        "params":[{"name":"epochs","value":"3"}],"tags":[{"key":"k","value":"v"}],"timestamp":1767225600.5,
        "stats":{"metric_count":2,"param_count":1,"tag_count":1,"coalesced_count":0}}"#;
    let stored = server.post("/api/v1/ingest/batch", batch).await.json();
    assert_eq!(
        (&stored["status"], &stored["accepted"], &stored["duplicate"]),
        (&"ok".into(), &4.into(), &false.into())
    );
    assert!(stored.get("warnings").is_none());

    let shown = server.get("/api/v1/runs/r").await.json();
    assert_eq!(
        (&shown["status"], &shown["metrics_count"], &shown["params_count"]),
        (&"running".into(), &2.into(), &2.into())
    );
    assert_eq!(shown["tags"], serde_json::json!({"team": "vision", "k": "v"}));
    assert_eq!(
        shown["metrics_summary"],
        serde_json::json!([{"name": "loss", "last_value": 0.25, "last_step": 2}])
    );
    assert!(shown["created_at"].as_str().is_some_and(|time| time.ends_with('Z')));
}

#[tokio::test]
async fn the_requests_of_dashboards_run_unchanged() {
    let server = Server::start().await;
    let open = r#"{"project":"demo","run_id":"r","tags":{"team":"vision"}}"#;
    assert_eq!(server.post("/api/v1/runs", open).await.status, 200);
    let batch = r#"{"run_id":"r","batch_id":"b","metrics":[
        {"name":"loss","value":0.5,"step":1},{"name":"loss","value":0.25,"step":2}]}"#;
    assert_eq!(server.post("/api/v1/ingest/batch", batch).await.status, 200);
    let listed = server
        .get("/api/v1/runs?project=demo&status=running&tags=team:vision&limit=5")
        .await
        .json();
    assert_eq!(
        (&listed["total"], &listed["runs"][0]["run_id"]),
        (&1.into(), &"r".into())
    );
    let behind = server.get("/api/v1/runs?project=demo&offset=1").await.json();
    assert_eq!(behind["runs"], serde_json::json!([]));

    let series = server
        .get("/api/v1/runs/r/metrics?names=loss&max_points=100")
        .await
        .json();
    assert_eq!(series["available_metrics"], serde_json::json!(["loss"]));
    assert_eq!(series["series"][0]["total_points"], 2);
    assert_eq!(series["series"][0]["points"][1]["mean"], 0.25);

    let ended = server
        .post("/api/v1/runs/r/finish", r#"{"status":"finished"}"#)
        .await
        .json();
    assert_eq!((&ended["status"], &ended["total_metrics"]), (&"ok".into(), &2.into()));
    let compared = server
        .post("/api/v1/runs/compare", r#"{"run_ids":["r"],"metric_names":["loss"]}"#)
        .await
        .json();
    assert_eq!(
        (&compared["alignment"], &compared["common_metrics"][0]),
        (&"step".into(), &"loss".into())
    );
    assert_eq!(compared["runs"][0]["series"][0]["points"][0]["value"], 0.5);
}

#[tokio::test]
async fn each_refusal_has_its_status_and_says_why() {
    let server = Server::start().await;
    server.run("r").await;
    server.post("/api/v1/runs/r/finish", r#"{"status":"killed"}"#).await;
    for (path, body, status, code) in [
        ("/api/v1/runs", "{", 400, "INVALID_JSON"),
        ("/api/v1/runs", "{}", 422, "REQUIRED"),
        ("/api/v1/runs", r#"{"project":"BAD NAME!"}"#, 400, "INVALID_NAME"),
        (
            "/api/v1/runs",
            r#"{"project":"demo","run_id":"r"}"#,
            412,
            "RUN_TERMINAL",
        ),
        ("/api/v1/runs/r/finish", r#"{"status":"done"}"#, 400, "INVALID_STATUS"),
        ("/api/v1/runs/none/heartbeat", "", 404, "RUN_NOT_FOUND"),
        ("/api/v1/runs/r/heartbeat", "", 412, "RUN_TERMINAL"),
        ("/api/v1/nothing", "", 404, "ROUTE_NOT_FOUND"),
        (
            "/api/v1/ingest/batch",
            r#"{"run_id":"r","batch_id":"b","metrics":[{"name":"a","step":1,"value":null}]}"#,
            400,
            "INVALID_FIELD",
        ),
    ] {
        let answer = server.post(path, body).await;
        let json = answer.json();
        assert_eq!(
            (answer.status.as_u16(), &json["error"]["details"][0]["code"]),
            (status, &code.into()),
            "{path} {json}"
        );
        assert_eq!(json["error"]["details"][0]["severity"], "error");
    }
    let large = vec![b' '; 5 * 1024 * 1024];
    assert_eq!(server.post("/api/v1/runs", large).await.status, 413);
    assert_eq!(
        server.ask(server.request("PATCH", "/api/v1/runs"), "").await.status,
        405
    );
}

#[tokio::test]
async fn tags_change_after_the_end_and_parameters_keep_their_first_value() {
    let server = Server::start().await;
    server.run("r").await;
    server.post("/api/v1/runs/r/params", r#"{"params":{"lr":0.1}}"#).await;
    let other = server
        .post("/api/v1/runs/r/params", r#"{"params":{"lr":0.2}}"#)
        .await
        .json();
    assert_eq!(
        (&other["existing_count"], &other["warnings"][0]["code"]),
        (&1.into(), &"PARAM_IMMUTABLE".into())
    );
    assert_eq!(
        server.get("/api/v1/runs/r/params").await.json(),
        serde_json::json!({"params": {"lr": "0.1"}})
    );
    server.post("/api/v1/runs/r/finish", r#"{"status":"finished"}"#).await;
    let set = server
        .post("/api/v1/runs/r/tags", r#"{"tags":{"best":"yes","a":"b"}}"#)
        .await
        .json();
    assert_eq!(set["updated_count"], 2);
    let removed = server
        .post("/api/v1/runs/r/tags", r#"{"remove_keys":["a"]}"#)
        .await
        .json();
    assert_eq!(removed["removed_count"], 1);
    assert_eq!(
        server.get("/api/v1/runs/r").await.json()["tags"],
        serde_json::json!({"best": "yes"})
    );
}

#[tokio::test]
async fn an_artifact_is_sent_checked_and_fetched() {
    let server = Server::start().await;
    server.run("r").await;
    let text = b"weights";
    let metadata = r#"{"metadata":{"name":"models/best.pt","type":"ARTIFACT_TYPE_MODEL","mime_type":"application/x-pt","size_bytes":7},"expected_size_bytes":7}"#;
    let opened = server.post("/api/v1/runs/r/artifacts", metadata).await.json();
    let url = opened["presigned_url"].as_str().unwrap_or_else(|| panic!("{opened}"));
    let mut request = http::Request::builder().method("PUT").uri(url);
    for (name, value) in opened["required_headers"].as_object().expect("headers") {
        request = request.header(name, value.as_str().expect("a text"));
    }
    let sent = server.ask(request, &text[..]).await;
    assert_eq!(sent.status, 200, "{:?}", sent.body);
    let path = format!(
        "/api/v1/artifacts/{}/finalize",
        opened["upload_id"].as_str().expect("an id")
    );
    let finalize = r#"{"actual_size_bytes":7,"md5_checksum":"c0ed4a81a2e2ef8f80b8a2e9e3a7a7c2"}"#;
    assert_ne!(server.post(&path, finalize).await.status, 200, "another content");
    let opened = server.post("/api/v1/runs/r/artifacts", metadata).await.json();
    let mut request = http::Request::builder()
        .method("PUT")
        .uri(opened["presigned_url"].as_str().expect("a URL"));
    for (name, value) in opened["required_headers"].as_object().expect("headers") {
        request = request.header(name, value.as_str().expect("a text"));
    }
    let sent = server.ask(request, &text[..]).await;
    let checksum = sent.headers["etag"]
        .to_str()
        .expect("a text")
        .trim_matches('"')
        .to_owned();
    let path = format!(
        "/api/v1/artifacts/{}/finalize",
        opened["upload_id"].as_str().expect("an id")
    );
    let finalize = format!(r#"{{"actual_size_bytes":7,"md5_checksum":"{checksum}"}}"#);
    assert_eq!(server.post(&path, finalize).await.status, 200);
    let listed = server.get("/api/v1/runs/r/artifacts?types=model").await.json();
    assert_eq!(listed["artifacts"][0]["name"], "models/best.pt");
    let found = server.get("/api/v1/runs/r/artifacts/models%2Fbest.pt/url").await.json();
    let request = http::Request::builder()
        .method("GET")
        .uri(found["presigned_url"].as_str().expect("a URL"));
    assert_eq!(server.ask(request, "").await.body, &text[..]);
}

#[tokio::test]
async fn a_restart_keeps_every_answered_batch() {
    let server = Server::start().await;
    server.run("r").await;
    let body = r#"{"run_id":"r","batch_id":"b","metrics":[{"name":"loss","step":1,"value":0.5}]}"#;
    assert_eq!(server.post("/api/v1/ingest/batch", body).await.json()["accepted"], 1);
    let server = Server::open(server.stop().await, |_| {}).await;
    let again = server.post("/api/v1/ingest/batch", body).await.json();
    assert_eq!((&again["accepted"], &again["duplicate"]), (&0.into(), &true.into()));
    assert_eq!(server.get("/api/v1/runs/r").await.json()["metrics_count"], 1);
}
