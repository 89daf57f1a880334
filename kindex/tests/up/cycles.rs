//! Objects that hold each other in a circle, with kubectl against `kindex up`: their deletions wait for each other
//! until somebody drops a reference.

use serde_json::Value;

use super::process::{Running, kubectl_is_there, wait_for};
use super::text_of;

/// Each is held by the next one, and the last by the first.
const NAMES: [&str; 3] = ["first", "second", "third"];

fn pipeline(name: &str) -> String {
    format!(
        "apiVersion: michelangelo.api/v2\nkind: Pipeline\nmetadata: {{name: {name}, namespace: default}}\n\
         spec: {{type: PIPELINE_TYPE_TRAIN}}\n"
    )
}

/// The pipelines hold each other; the reference of each.
fn circle(run: &Running) -> [String; 3] {
    let server = format!("http://{}", run.api().expect("it says where"));
    for name in NAMES {
        run.kubectl(&["create", "-f", "-"], &pipeline(name));
        wait_for("the row", || run.get(&["pipelines", "-n", "default"]).contains(name));
    }
    let references = NAMES.map(|name| {
        let uid = run.kubectl(&["get", "pipeline", name, "-o", "jsonpath={.metadata.uid}"], "");
        format!("pipeline.michelangelo.api/{uid}")
    });
    for (at, target) in NAMES.iter().enumerate() {
        let holder = &references[(at + 1) % 3];
        let path = format!("/api/v1/pipelines/default/{target}/references/{holder}");
        run.kubectl(&["--server", &server, "replace", "--raw", &path, "-f", "-"], "{}");
    }
    references
}

/// Whether an event tells one of them the whole path: the last one to wait gets it, at the latest.
fn is_path_reported(run: &Running) -> bool {
    let events: Value = serde_json::from_str(&run.kubectl(&["get", "events", "-o", "json"], "")).expect("JSON");
    let mut events = events["items"].as_array().expect("a list").iter();
    events.any(|event| {
        let begin = NAMES.iter().position(|name| event["involvedObject"]["name"] == *name);
        let Some(begin) = begin.filter(|_| event["reason"] == "DeletionCycle") else {
            return false;
        };
        let path = (begin..=begin + 3).map(|at| format!("pipeline.michelangelo.api default/{}", NAMES[at % 3]));
        let path = path.collect::<Vec<_>>().join(" is held by ");
        let message = event["message"].as_str().unwrap_or_default();
        message.contains(&path)
    })
}

#[test]
fn objects_that_hold_each_other_go_once_a_reference_is_dropped_with_force() {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&["--blocked-after", "1"]);
    let references = circle(&run);
    run.kubectl(&["delete", "pipelines", "first", "second", "third", "--wait=false"], "");
    wait_for("somebody to be told the path", || is_path_reported(&run));
    let why = run.command(&["why", "pipeline/first"]);
    let said = text_of(&why.stdout);
    assert!(why.status.success(), "{}", text_of(&why.stderr));
    assert!(said.contains("cycle: "), "{said}");

    let dropped = ["references", "drop", "pipeline/first", &references[1], "--force"];
    let dropped = run.command(&[&dropped[..], &["--reason", "nobody else can"]].concat());
    assert!(dropped.status.success(), "{}", text_of(&dropped.stderr));
    wait_for("all of them to go", || {
        run.kubectl(&["get", "pipelines", "-o", "name"], "").is_empty()
    });
}
