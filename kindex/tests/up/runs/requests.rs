//! The requests of REST clients that there are, as they send them, with curl against the real binary.

use kindex_harness::require;
use serde_json::{Value, json};

use super::server::{Server, program};

/// None where curl is not installed and not required.
fn start() -> Option<Server> {
    require::require("curl", require::program("curl").is_some()).then(Server::start)
}

/// Status and body of a request, over HTTP/1.1 or, with prior knowledge, 2.
fn curl(server: &Server, args: &[&str], path: &str) -> (String, String) {
    let url = match path.starts_with("http") {
        true => path.to_owned(),
        false => format!("http://{}{path}", server.rest),
    };
    let always = ["--silent", "--show-error", "--write-out", "\n%{http_code}"];
    let args: Vec<&str> = always
        .into_iter()
        .chain(args.iter().copied())
        .chain([url.as_str()])
        .collect();
    let printed = program("curl", &args, "").unwrap_or_else(|error| panic!("{path}: {error}"));
    let (body, status) = printed.rsplit_once('\n').expect("a status");
    (status.to_owned(), body.to_owned())
}

fn post(server: &Server, path: &str, body: &str) -> Value {
    let (status, answer) = curl(
        server,
        &["--header", "Content-Type: application/json", "--data", body],
        path,
    );
    assert_eq!(status, "200", "{path} {body}: {answer}");
    serde_json::from_str(&answer).expect("JSON")
}

fn get(server: &Server, path: &str) -> Value {
    let (status, answer) = curl(server, &[], path);
    assert_eq!(status, "200", "{path}: {answer}");
    serde_json::from_str(&answer).expect("JSON")
}

#[test]
fn the_eight_routes_of_existing_clients_run_unchanged_with_curl() {
    let Some(server) = start() else { return };
    assert_eq!(curl(&server, &[], "/health"), ("200".to_owned(), "ok".to_owned()));
    assert_eq!(curl(&server, &[], "/").0, "200");
    let open =
        r#"{"project": "demo", "name": "first", "run_id": "r", "tags": {"team": "vision"}, "config": {"lr": 0.1}}"#;
    let opened = post(&server, "/api/v1/runs", open);
    assert_eq!((&opened["run_id"], &opened["offline"]), (&json!("r"), &json!(false)));
    let batch = r#"{"run_id": "r", "batch_id": "b-1", "seq": 1,
        "metrics": [{"name": "loss", "value": 0.5, "step": 1, "timestamp": 1767225600.25},
                    {"name": "loss", "value": NaN, "step": 2, "timestamp": 1767225601.25},
                    {"name": "loss", "value": -Infinity, "step": 3}],
        "params": [{"name": "epochs", "value": "3"}], "tags": [{"key": "k", "value": "v"}],
        "timestamp": 1767225600.25,
        "stats": {"metric_count": 3, "param_count": 1, "tag_count": 1, "coalesced_count": 0}}"#;
    let stored = post(&server, "/api/v1/ingest/batch", batch);
    assert_eq!(
        (&stored["status"], &stored["accepted"], &stored["duplicate"]),
        (&json!("ok"), &json!(5), &json!(false))
    );
    let again = post(&server, "/api/v1/ingest/batch", batch);
    assert_eq!(
        (&again["duplicate"], &again["deduplicated_points"]),
        (&json!(true), &json!(3))
    );

    let listed = get(
        &server,
        "/api/v1/runs?project=demo&status=running&q=fir&tags=team:vision&limit=10&offset=0",
    );
    assert_eq!(
        (&listed["total"], &listed["limit"], &listed["offset"]),
        (&json!(1), &json!(10), &json!(0))
    );
    let shown = get(&server, "/api/v1/runs/r");
    assert_eq!(
        shown["metrics_summary"],
        json!([{"name": "loss", "last_value": "-Infinity", "last_step": 3}])
    );
    assert_eq!(shown["params"], json!({"lr": "0.1", "epochs": "3"}));
    let series = get(
        &server,
        "/api/v1/runs/r/metrics?names=loss&max_points=1000&start_step=1&end_step=3",
    );
    let means: Vec<&Value> = series["series"][0]["points"]
        .as_array()
        .expect("points")
        .iter()
        .map(|point| &point["mean"])
        .collect();
    assert_eq!(means, [&json!(0.5), &json!("NaN"), &json!("-Infinity")]);
    let compared = post(
        &server,
        "/api/v1/runs/compare",
        r#"{"run_ids": ["r"], "metric_names": ["loss"], "max_points": 100, "alignment": "step"}"#,
    );
    assert_eq!(compared["common_metrics"], json!(["loss"]));
    assert_eq!(
        post(&server, "/api/v1/runs/r/finish", r#"{"status": "finished"}"#)["status"],
        "ok"
    );
}

#[test]
fn curl_speaks_http_2_and_takes_packed_answers() {
    let Some(server) = start() else { return };
    post(&server, "/api/v1/runs", r#"{"project": "demo", "run_id": "r"}"#);
    let points: Vec<Value> = (0..200)
        .map(|step| json!({"name": "loss", "step": step, "value": 0.5}))
        .collect();
    post(
        &server,
        "/api/v1/ingest/batch",
        &json!({"run_id": "r", "batch_id": "b", "metrics": points}).to_string(),
    );
    let path = "/api/v1/runs/r/metrics";
    let (status, plain) = curl(&server, &["--http2-prior-knowledge"], path);
    assert_eq!(status, "200", "{plain}");
    let (_, packed) = curl(&server, &["--compressed"], path);
    assert_eq!(plain, packed);
    let url = format!("http://{}{path}", server.rest);
    let args = [
        "--silent",
        "--header",
        "Accept-Encoding: gzip",
        "--output",
        "/dev/null",
        "--write-out",
        "%{size_download}",
    ];
    let args: Vec<&str> = args.into_iter().chain([url.as_str()]).collect();
    let size = program("curl", &args, "").expect("an answer");
    let size: usize = size.parse().expect("a number");
    assert!(size * 4 < plain.len(), "{size} of {} bytes", plain.len());
}

#[test]
fn an_artifact_goes_up_and_comes_down_with_curl() {
    let Some(server) = start() else { return };
    post(&server, "/api/v1/runs", r#"{"project": "demo", "run_id": "r"}"#);
    let metadata = r#"{"metadata": {"name": "models/a.txt", "type": "ARTIFACT_TYPE_MODEL", "mime_type": "text/plain", "size_bytes": 10}, "expected_size_bytes": 10}"#;
    let opened = post(&server, "/api/v1/runs/r/artifacts", metadata);
    let url = opened["presigned_url"].as_str().expect("a URL");
    let (status, said) = curl(
        &server,
        &[
            "--request",
            "PUT",
            "--header",
            "Content-Type: text/plain",
            "--data",
            "0123456789",
        ],
        url,
    );
    assert_eq!(status, "200", "{said}");
    let finalize = format!(
        "/api/v1/artifacts/{}/finalize",
        opened["upload_id"].as_str().expect("an id")
    );
    let md5 = "781e5e245d69b566979b86e28d23f2c7";
    post(
        &server,
        &finalize,
        &json!({"actual_size_bytes": 10, "md5_checksum": md5}).to_string(),
    );
    let found = get(&server, "/api/v1/runs/r/artifacts/models%2Fa.txt/url");
    let url = found["presigned_url"].as_str().expect("a URL");
    assert_eq!(curl(&server, &[], url), ("200".to_owned(), "0123456789".to_owned()));
    assert_eq!(
        curl(&server, &["--range", "2-4"], url),
        ("206".to_owned(), "234".to_owned())
    );
    assert_eq!(
        curl(&server, &["--range", "-3"], url),
        ("206".to_owned(), "789".to_owned())
    );
    assert_eq!(curl(&server, &["--range", "10-"], url).0, "416");
    let (status, head) = curl(&server, &["--head"], url);
    let head = head.to_lowercase();
    assert_eq!(status, "200", "{head}");
    assert!(
        head.contains("content-length: 10") && head.contains("accept-ranges: bytes"),
        "{head}"
    );
    let (status, head) = curl(&server, &["--request", "POST", "--include", "--data", ""], url);
    assert_eq!(status, "405", "{head}");
    let allowed = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("allow: ").map(str::to_owned));
    let allowed = allowed.unwrap_or_else(|| panic!("{head}"));
    assert!(
        ["get", "head", "put"].iter().all(|method| allowed.contains(method)),
        "{allowed}"
    );
}
