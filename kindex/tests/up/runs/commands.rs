//! `kindex runs list` and its neighbors against a service, in every form.

use serde_json::{Value, json};

use super::server::Server;
use crate::text_of;

/// A request with the standard library's means: POST is all that is needed.
fn post(server: &Server, path: &str, body: &Value) {
    use std::io::{Read as _, Write as _};
    let body = body.to_string();
    let mut stream = std::net::TcpStream::connect(server.rest).expect("the service listens");
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        server.rest,
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
}

/// A service with two runs of one project and one of another.
fn stocked() -> Server {
    let server = Server::start();
    for (run, project) in [("first", "vision"), ("second", "vision"), ("other", "speech")] {
        let open = json!({"project": project, "run_id": run, "name": format!("{run} try"), "config": {"lr": 0.1}});
        post(&server, "/api/v1/runs", &open);
        let points: Vec<Value> = (0..4)
            .map(|step| json!({"name": "loss", "step": step, "value": step as f64 / 4.0}))
            .collect();
        let odd = json!({"name": "odd", "step": 7, "value": "-Infinity"});
        let metrics: Vec<Value> = points.into_iter().chain([odd]).collect();
        post(
            &server,
            "/api/v1/ingest/batch",
            &json!({"run_id": run, "batch_id": "b", "metrics": metrics}),
        );
    }
    server
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn lines(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn runs_are_listed_in_every_form_of_one_project_and_of_all() {
    let server = stocked();
    let table = server.shows(&["list", "-p", "vision"]);
    let rows = lines(&table);
    assert_eq!(rows[0], ["RUN", "NAME", "STATUS", "POINTS", "DURATION", "AGE"]);
    assert_eq!(
        (rows.len(), &rows[1][..5]),
        (3, &["second", "second", "try", "running", "5"][..]),
        "the newest first"
    );
    let all = server.shows(&["list"]);
    assert_eq!(lines(&all)[1][..2], ["speech", "other"], "{all}");
    assert_eq!(lines(&all).len(), 4, "{all}");
    let json = json_of(&server.shows(&["list", "-o", "json"]));
    assert_eq!(
        (&json["total"], &json["runs"][0]["project_id"]),
        (&json!(3), &json!("speech"))
    );
    let yaml = server.shows(&["list", "-p", "vision", "--name", "first", "-o", "yaml"]);
    assert!(
        yaml.contains("run_id: first") && !yaml.contains("run_id: second"),
        "{yaml}"
    );
    let page = server.runs(&["list", "--limit", "2", "-o", "json"]);
    let note = text_of(&page.stderr);
    let token = note.rsplit_once("--continue ").expect("how to go on").1.trim();
    let rest = json_of(&server.shows(&["list", "--limit", "2", "--continue", token, "-o", "json"]));
    assert_eq!(rest["runs"].as_array().map(Vec::len), Some(1), "{rest}");
    let refused = server.refuses(&["list", "--status", "done"]);
    assert!(refused.contains("is not a status"), "{refused}");
}

#[test]
fn a_run_and_its_curves_are_shown_in_every_form() {
    let server = stocked();
    let table = server.shows(&["get", "first"]);
    for line in [["project", "vision"], ["status", "running"], ["points", "5"]] {
        assert!(lines(&table).iter().any(|row| row[..] == line), "{line:?}: {table}");
    }
    assert!(
        table.contains("-Infinity at step 7") && table.contains("param lr"),
        "{table}"
    );
    assert_eq!(
        json_of(&server.shows(&["get", "first", "-o", "json"]))["params"],
        json!({"lr": "0.1"})
    );
    let yaml = server.shows(&["get", "first", "-o", "yaml"]);
    assert!(
        yaml.contains("last_value: '-Infinity'")
            || yaml.contains("last_value: -Infinity")
            || yaml.contains("\"-Infinity\""),
        "{yaml}"
    );
    let refused = server.refuses(&["get", "none"]);
    assert!(refused.contains("none"), "{refused}");

    let curve = server.shows(&["metrics", "first", "--name", "loss", "--from", "1", "--to", "2"]);
    assert_eq!(
        lines(&curve),
        [
            vec!["METRIC", "STEP", "VALUE"],
            vec!["loss", "1", "0.25"],
            vec!["loss", "2", "0.5"]
        ]
    );
    let odd = server.shows(&["metrics", "first", "--name", "odd"]);
    assert_eq!(lines(&odd)[1], ["odd", "7", "-Infinity"]);
    let bands = server.shows(&["metrics", "first", "--name", "loss", "--max-points", "2"]);
    assert_eq!(lines(&bands)[0], ["METRIC", "STEP", "MEAN", "MIN", "MAX", "POINTS"]);
    let json = json_of(&server.shows(&["metrics", "first", "-o", "json"]));
    assert_eq!(json["available_metrics"], json!(["loss", "odd"]));
    let yaml = server.shows(&["metrics", "first", "-o", "yaml"]);
    assert!(yaml.contains("available_metrics:"), "{yaml}");
    let refused = server.refuses(&["metrics", "first", "--name", "acc"]);
    assert!(
        refused.contains("has no metric acc") && refused.contains("loss, odd"),
        "{refused}"
    );
}

#[test]
fn a_run_is_killed_by_hand_and_deleted_after_a_confirmation() {
    let server = stocked();
    let unconfirmed = server.runs(&["kill", "first"]);
    assert_eq!(unconfirmed.status.code(), Some(2));
    assert!(text_of(&unconfirmed.stderr).contains("--yes"));
    assert_eq!(server.shows(&["kill", "first", "--yes"]), "run first is killed\n");
    assert!(server.shows(&["list", "--status", "killed"]).contains("first"));
    assert_eq!(server.shows(&["delete", "first", "-y"]), "run first is deleted\n");
    assert!(server.refuses(&["get", "first"]).contains("first"));
    let left = json_of(&server.shows(&["list", "-p", "vision", "-o", "json"]));
    assert_eq!(left["total"], 1, "{left}");
}

#[test]
fn a_folder_is_verified_in_every_form_while_the_service_works() {
    let server = stocked();
    let table = server.shows(&["verify"]);
    assert!(lines(&table).iter().any(|row| row[..] == ["points", "15"]), "{table}");
    let json = json_of(&server.shows(&["verify", "-o", "json"]));
    assert_eq!((&json["runs"], &json["findings"]), (&json!(3), &json!([])));
    assert!(server.shows(&["verify", "-o", "yaml"]).contains("points: 15"));
}

#[test]
fn a_key_is_made_used_listed_and_revoked() {
    let server = stocked();
    let made = server.runs(&[
        "key",
        "create",
        "--user",
        "ana",
        "--project",
        "vision",
        "--scopes",
        "ingest,query",
    ]);
    assert!(made.status.success(), "{}", text_of(&made.stderr));
    let secret = text_of(&made.stdout).trim().to_owned();
    let note = text_of(&made.stderr);
    let id = note.split_whitespace().nth(1).expect("an id").to_owned();
    assert!(!note.contains(&secret), "{note}");
    crate::wait_for("the key", || !server.runs(&["list"]).status.success());
    assert!(server.refuses(&["list"]).contains("--api-key or KINDEX_RUNS_API_KEY"));
    let listed = json_of(&server.shows(&["list", "--api-key", &secret, "-o", "json"]));
    assert_eq!(listed["total"], 2, "of the key's project alone: {listed}");
    assert!(
        server
            .refuses(&["list", "-p", "speech", "--api-key", &secret])
            .contains("for the project vision alone")
    );
    assert!(
        server
            .refuses(&["delete", "first", "-y", "--api-key", &secret])
            .contains("this needs admin")
    );
    let keys = server.shows(&["key", "list"]);
    let row = lines(&keys)
        .into_iter()
        .find(|row| row[0] == id)
        .unwrap_or_else(|| panic!("{keys}"));
    assert_eq!(row[1..5], ["ana", "vision", "ingest,query", "valid"]);
    assert!(!keys.contains(&secret), "{keys}");
    assert_eq!(server.shows(&["key", "revoke", &id]), format!("{id} is revoked\n"));
    crate::wait_for("the end of the key", || {
        !server.runs(&["list", "--api-key", &secret]).status.success()
    });
    assert!(
        server
            .refuses(&["key", "revoke", &id])
            .contains("there is no valid key")
    );
}
