//! Objects that hold each other in a cycle, with kubectl against `kindex up`: their deletions wait for each other
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

/// Creates the pipelines; the reference of each.
fn create(run: &Running) -> [String; 3] {
    for name in NAMES {
        run.kubectl(&["create", "-f", "-"], &pipeline(name));
        wait_for("the row", || run.get(&["pipelines", "-n", "default"]).contains(name));
    }
    NAMES.map(|name| {
        let uid = run.kubectl(&["get", "pipeline", name, "-o", "jsonpath={.metadata.uid}"], "");
        format!("pipeline.michelangelo.api/{uid}")
    })
}

/// From now on, the pipelines hold each other.
fn close(run: &Running, references: &[String; 3]) {
    let server = server(run);
    for (at, target) in NAMES.iter().enumerate() {
        let holder = &references[(at + 1) % 3];
        let path = format!("/api/v1/pipelines/default/{target}/references/{holder}");
        run.kubectl(&["--server", &server, "replace", "--raw", &path, "-f", "-"], "{}");
    }
}

fn server(run: &Running) -> String {
    format!("http://{}", run.api().expect("it says where"))
}

/// Whether an event of each of these has the whole path.
fn have_path(run: &Running, names: &[&str]) -> bool {
    let events: Value = serde_json::from_str(&run.kubectl(&["get", "events", "-o", "json"], "")).expect("JSON");
    let events = events["items"].as_array().expect("a list");
    names.iter().all(|name| {
        let begin = NAMES.iter().position(|other| other == name).expect("one of them");
        let path = (begin..=begin + 3).map(|at| format!("pipeline.michelangelo.api default/{}", NAMES[at % 3]));
        let path = path.collect::<Vec<_>>().join(" is held by ");
        let mut events = events.iter().filter(|event| event["reason"] == "DeletionCycle");
        events.any(|event| {
            let message = event["message"].as_str().unwrap_or_default();
            event["involvedObject"]["name"] == *name && message.contains(&path)
        })
    })
}

#[test]
fn objects_that_hold_each_other_go_once_a_reference_is_dropped_with_force() {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&["--blocked-after", "1"]);
    let references = create(&run);
    close(&run, &references);
    run.kubectl(&["delete", "pipelines", "first", "second", "third", "--wait=false"], "");
    wait_for("the path on all of them", || have_path(&run, &NAMES));
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

/// The first of three is archived before the cycle closes. Some are deleted, and of these one is reported with the
/// holder that nobody has deleted; then the others are.
fn is_reported_through_the_archive(at_first: &[&str], reported: &str, then: &[&str]) {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&["--blocked-after", "1"]);
    let references = create(&run);
    run.kubectl(&["annotate", "pipeline", "first", "michelangelo/Immutable=true"], "");
    wait_for("it to be archived", || {
        run.execute("UPDATE pipeline SET uid = uid WHERE evicted_time IS NOT NULL") == 1
    });
    close(&run, &references);
    let server = server(&run);
    let delete = |names: &[&str]| {
        let command = [&["--server", &server, "delete", "--wait=false", "pipelines"], names].concat();
        run.kubectl(&command, "");
    };
    delete(at_first);
    wait_for("a holder to be waited for", || {
        run.kubectl(&["get", "events", "-o", "json"], "").contains(reported)
    });
    delete(then);
    wait_for("the path on all of them", || have_path(&run, &NAMES));
}

#[test]
fn a_cycle_through_the_archive_is_reported_on_all_if_its_archived_object_is_deleted_last() {
    let reported = "still in use by pipeline.michelangelo.api default/first";
    is_reported_through_the_archive(&["second", "third"], reported, &["first"]);
}

#[test]
fn a_cycle_through_the_archive_is_reported_on_all_if_its_archived_object_is_deleted_first() {
    let reported = "still in use by pipeline.michelangelo.api default/second";
    is_reported_through_the_archive(&["first"], reported, &["second", "third"]);
}
