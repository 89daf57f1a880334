//! What answers over REST look like, whatever was asked.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use http::{Request, header};
use kindex_runs::store::Faults;
use serde_json::{Value, json};

use crate::both::{Client, Transport};
use crate::description::Answer;
use crate::server::Server;

#[tokio::test]
async fn answers_are_packed_for_those_that_take_gzip() {
    let server = Server::start().await;
    let client = Client {
        server: &server,
        transport: Transport::Rest,
    };
    client.open("r", "", &[]).await.expect("a run");
    let points: Vec<_> = (0..500).map(|step| ("loss", step, 0.5, None)).collect();
    client.log("r", "b", None, &points).await.expect("stored");
    let ask = async |path: &str, coding: &str| {
        let request = server.request("GET", path).header("accept-encoding", coding);
        server.ask(request, "").await
    };
    let plain = ask("/api/v1/runs/r/metrics", "identity").await;
    assert!(!plain.headers.contains_key(header::CONTENT_ENCODING));
    let packed = ask("/api/v1/runs/r/metrics", "br, gzip").await;
    assert_eq!(
        (&packed.headers["content-encoding"], &packed.headers["vary"]),
        (&"gzip".parse().unwrap(), &"accept-encoding".parse().unwrap())
    );
    assert!(packed.body.len() * 4 < plain.body.len());
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&packed.body[..])
        .read_to_end(&mut unpacked)
        .expect("gzip");
    assert!(unpacked == plain.body);
    let small = ask("/api/v1/runs/none", "gzip").await;
    assert_eq!(
        (small.status.as_u16(), small.headers.get(header::CONTENT_ENCODING)),
        (404, None)
    );
}

/// An artifact of ten bytes, and its address.
async fn artifact(server: &Server) -> String {
    server.run("r").await;
    let metadata = json!({"name": "a", "type": "ARTIFACT_TYPE_OTHER", "mime_type": "text/plain", "size_bytes": 10});
    let body = json!({"metadata": metadata, "expected_size_bytes": 10}).to_string();
    let opened = server.post("/api/v1/runs/r/artifacts", body).await.json();
    let url = opened["presigned_url"].as_str().expect("a URL");
    let request = Request::put(url).header("content-type", "text/plain");
    assert_eq!(server.ask(request, "0123456789").await.status, 200);
    let path = format!(
        "/api/v1/artifacts/{}/finalize",
        opened["upload_id"].as_str().expect("an id")
    );
    let claim = r#"{"actual_size_bytes":10,"md5_checksum":"781e5e245d69b566979b86e28d23f2c7"}"#;
    assert_eq!(server.post(&path, claim).await.status, 200);
    let found = server.get("/api/v1/runs/r/artifacts/a/url").await.json();
    found["presigned_url"].as_str().expect("a URL").to_owned()
}

#[tokio::test]
async fn a_part_of_an_artifact_is_fetched_and_its_head_alone() {
    let server = Server::start().await;
    let url = artifact(&server).await;
    let range = async |range: &str, more: Option<(&str, &str)>| {
        let request = Request::get(&url).header("range", range);
        let request = more
            .into_iter()
            .fold(request, |request, (name, value)| request.header(name, value));
        let answer = server.ask(request, "").await;
        let range = answer
            .headers
            .get(header::CONTENT_RANGE)
            .map(|range| range.to_str().expect("a text").to_owned());
        (
            answer.status.as_u16(),
            range,
            String::from_utf8(answer.body.to_vec()).expect("a text"),
        )
    };
    let part = |range: &str, text: &str| (206, Some(range.to_owned()), text.to_owned());
    let whole = (200, None, "0123456789".to_owned());
    assert_eq!(range("bytes=2-4", None).await, part("bytes 2-4/10", "234"));
    assert_eq!(range("bytes=7-", None).await, part("bytes 7-9/10", "789"));
    assert_eq!(range("bytes=-2", None).await, part("bytes 8-9/10", "89"));
    assert_eq!(range("bytes=0-0,5-6", None).await, whole);
    assert_eq!(
        range("bytes=10-", None).await,
        (416, Some("bytes */10".to_owned()), String::new())
    );
    let etag = "\"781e5e245d69b566979b86e28d23f2c7\"";
    assert_eq!(range("bytes=2-4", Some(("if-range", etag))).await.0, 206);
    assert_eq!(range("bytes=2-4", Some(("if-range", "\"other\""))).await, whole);
    let head = server.ask(Request::head(&url), "").await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    assert_eq!(
        (&head.headers["content-length"], &head.headers["accept-ranges"]),
        (&"10".parse().unwrap(), &"bytes".parse().unwrap())
    );
    assert_eq!(head.headers["etag"], etag);
}

#[tokio::test]
async fn another_method_is_refused_with_those_that_there_are() {
    let server = Server::start().await;
    let url = artifact(&server).await;
    for (method, url, allowed) in [
        ("POST", url.clone(), vec!["GET", "HEAD", "PUT"]),
        ("DELETE", url, vec!["GET", "HEAD", "PUT"]),
        (
            "PUT",
            format!("{}/api/v1/runs", server.rest),
            vec!["GET", "HEAD", "POST"],
        ),
        ("GET", format!("{}/api/v1/ingest/batch", server.rest), vec!["POST"]),
    ] {
        let answer = server.ask(Request::builder().method(method).uri(&url), "").await;
        assert_eq!(answer.status, 405, "{method} {url}");
        let allow = answer.headers[header::ALLOW].to_str().expect("a text").to_owned();
        let mut listed: Vec<&str> = allow.split(',').map(str::trim).collect();
        listed.sort_unstable();
        assert_eq!(listed, allowed, "{method} {url}");
        assert_eq!(answer.json()["error"]["details"][0]["code"], "METHOD_NOT_ALLOWED");
    }
}

fn ids(listed: &Value) -> Vec<&str> {
    let runs = listed["runs"].as_array().unwrap_or_else(|| panic!("{listed}"));
    runs.iter().map(|run| run["run_id"].as_str().expect("an id")).collect()
}

#[tokio::test]
async fn without_a_project_all_runs_are_listed_that_the_key_may_see() {
    let server = Server::start().await;
    for (project, run) in [("vision", "a"), ("speech", "b"), ("vision", "c")] {
        let body = json!({"project": project, "run_id": run}).to_string();
        assert_eq!(server.post("/api/v1/runs", body).await.status, 200);
    }
    let all = server.get("/api/v1/runs").await.json();
    assert_eq!((ids(&all), &all["total"]), (vec!["c", "b", "a"], &json!(3)));
    let first = server.get("/api/v1/runs?limit=2&project=").await.json();
    assert_eq!(ids(&first), ["c", "b"]);
    let token = first["next_page_token"].as_str().expect("a token");
    let rest = server
        .get(&format!("/api/v1/runs?limit=2&page_token={token}"))
        .await
        .json();
    assert_eq!(ids(&rest), ["a"]);
    assert_eq!(ids(&server.get("/api/v1/runs?offset=1").await.json()), ["b", "a"]);
    let own = server.key(Some("vision"), "query").await;
    let everything = server.key(None, "query").await;
    let narrow = server.key(None, "ingest").await;
    let with = async |key: &str, path: &str| -> Answer {
        server
            .ask(server.request("GET", path).header("x-api-key", key), "")
            .await
    };
    assert_eq!(
        ids(&with(&own, "/api/v1/runs").await.json()),
        ["c", "a"],
        "a key of a project sees no other one"
    );
    assert_eq!(ids(&with(&everything, "/api/v1/runs").await.json()), ["c", "b", "a"]);
    assert_eq!(with(&narrow, "/api/v1/runs").await.status, 403);
    assert_eq!(with(&own, "/api/v1/runs?project=speech").await.status, 403);
}

#[tokio::test]
async fn a_run_is_updated_when_data_arrives_and_at_its_end() {
    let paused = crate::states::PausedServer::start().await;
    let server = &paused.server;
    server.run("r").await;
    let updated = async || {
        let listed = server.get("/api/v1/runs?project=demo").await.json()["runs"][0].clone();
        let shown = server.get("/api/v1/runs/r").await.json();
        assert_eq!(listed["updated_at"], shown["updated_at"]);
        let seconds = |field: &str| -> i64 {
            let time: jiff::Timestamp = shown[field].as_str().expect("a time").parse().expect("a time");
            time.as_second()
        };
        seconds("updated_at") - seconds("created_at")
    };
    assert_eq!(updated().await, 0);
    paused.advance_seconds(40);
    assert_eq!(updated().await, 0, "nothing has changed");
    let body = r#"{"run_id":"r","batch_id":"b","metrics":[{"name":"loss","step":1,"value":1}]}"#;
    assert_eq!(server.post("/api/v1/ingest/batch", body).await.status, 200);
    assert_eq!(updated().await, 40);
    paused.advance_seconds(10);
    assert_eq!(
        server
            .post("/api/v1/runs/r/finish", r#"{"status":"finished"}"#)
            .await
            .status,
        200
    );
    paused.advance_seconds(10);
    assert_eq!(updated().await, 50);
}

#[tokio::test]
async fn a_run_is_opened_with_its_config_or_not_at_all() {
    let left = Arc::new(AtomicI64::new(i64::MAX));
    let counted = left.clone();
    let server = Server::with(|options| {
        options.store.in_background = false;
        // Counted over all transactions of a request.
        options.store.faults = Some(Faults(Arc::new(move |_| counted.fetch_sub(1, Ordering::SeqCst) == 1)));
    })
    .await;
    let body = r#"{"project":"demo","run_id":"r","tags":{"a":"1"},"config":{"lr":0.1,"seed":7}}"#;
    let mut failures = 0;
    for statement in 1.. {
        left.store(statement, Ordering::SeqCst);
        let answer = server.post("/api/v1/runs", body).await;
        left.store(i64::MAX, Ordering::SeqCst);
        let shown = server.get("/api/v1/runs/r").await;
        if answer.status == 200 {
            assert_eq!(shown.json()["params"], json!({"lr": "0.1", "seed": "7"}));
            break;
        }
        failures += 1;
        assert_eq!(
            (answer.status.as_u16(), shown.status.as_u16()),
            (503, 404),
            "statement {statement}"
        );
    }
    assert!(failures >= 4, "{failures} statements");
    let again = r#"{"project":"demo","run_id":"r","config":{"lr":0.2,"new":1}}"#;
    let again = server.post("/api/v1/runs", again).await.json();
    let codes: Vec<&Value> = again["warnings"]
        .as_array()
        .expect("warnings")
        .iter()
        .map(|warning| &warning["code"])
        .collect();
    assert!(codes.contains(&&json!("PARAM_IMMUTABLE")), "{again}");
    let params = server.get("/api/v1/runs/r/params").await.json();
    assert_eq!(params["params"], json!({"lr": "0.1", "seed": "7", "new": "1"}));
}

#[tokio::test]
async fn doubles_are_spelled_alike_in_every_answer() {
    let server = Server::start().await;
    let client = Client {
        server: &server,
        transport: Transport::Rest,
    };
    client.open("r", "", &[]).await.expect("a run");
    let odd = [
        (f64::NAN, "\"NaN\""),
        (f64::INFINITY, "\"Infinity\""),
        (f64::NEG_INFINITY, "\"-Infinity\""),
        (-0.0, "-0.0"),
    ];
    let points: Vec<_> = odd
        .iter()
        .zip(0..)
        .map(|((value, _), step)| ("loss", step, *value, None))
        .collect();
    client.log("r", "b", None, &points).await.expect("stored");
    let text = |answer: Answer| String::from_utf8(answer.body.to_vec()).expect("a text");
    let series = text(server.get("/api/v1/runs/r/metrics").await);
    let compared = text(server.post("/api/v1/runs/compare", r#"{"run_ids":["r"]}"#).await);
    for (place, (_, spelled)) in odd.iter().enumerate() {
        let one = format!(r#""step":{place},"mean":{spelled},"min":{spelled},"max":{spelled},"count":1"#);
        assert!(series.contains(&one), "{one}: {series}");
        assert!(
            compared.contains(&format!(r#""value":{spelled}"#)),
            "{spelled}: {compared}"
        );
    }
    for (value, spelled) in odd {
        client
            .log("r", spelled, None, &[("last", 9, value, None)])
            .await
            .expect("stored");
        let shown = text(server.get("/api/v1/runs/r").await);
        assert!(
            shown.contains(&format!(r#""last_value":{spelled}"#)),
            "{spelled}: {shown}"
        );
    }
    let band = text(server.get("/api/v1/runs/r/metrics?names=loss&max_points=1").await);
    assert!(
        band.contains(r#""mean":-0.0,"min":-0.0,"max":-0.0,"count":4"#),
        "{band}"
    );
    let summary = r#"{"status":"finished","summary":{"a":"NaN","b":"-Infinity","c":-0.0,"d":"best"}}"#;
    assert_eq!(server.post("/api/v1/runs/r/finish", summary).await.status, 200);
    let shown = text(server.get("/api/v1/runs/r").await);
    assert!(
        shown.contains(r#""summary":{"a":"NaN","b":"-Infinity","c":-0.0,"d":"best"}"#),
        "{shown}"
    );
}
