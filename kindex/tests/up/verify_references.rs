//! References in `kindex verify`: nothing where all is well, and each sort of difference where something was planted.

use std::process::Output;

use serde_json::{Value, json};

use super::process::{Running, kubectl_is_there, wait_for};

const OBJECTS: &str = "
apiVersion: michelangelo.api/v2
kind: ModelFamily
metadata: {name: one, namespace: default}
spec: {name: one}
---
apiVersion: michelangelo.api/v2
kind: Model
metadata: {name: m, namespace: default}
spec: {algorithm: a, modelFamily: {name: one, namespace: default}}
";
const NOBODY: &str = "model.michelangelo.api/00000000-f1cc-4f3b-b1c0-232ae8d852ce";
const FOREIGN: &str = "server.other.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

fn verify(run: &Running) -> Output {
    run.command(&["verify", "-o", "json", "--settle", "0.2"])
}

fn report(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let notes = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}\n{notes}"))
}

fn classes(report: &Value) -> Vec<String> {
    let differences = report["references"]["differences"].as_array().expect("differences");
    let classes = differences
        .iter()
        .map(|one| one["class"].as_str().expect("text").to_owned());
    classes.collect()
}

fn finalizers(run: &Running) -> Vec<String> {
    let text = run.kubectl(&["get", "modelfamily", "one", "-o", "json"], "");
    let object: Value = serde_json::from_str(&text).expect("JSON");
    serde_json::from_value(object["metadata"]["finalizers"].clone()).expect("texts")
}

fn set_finalizers(run: &Running, finalizers: &[String]) {
    let patch = json!({"metadata": {"finalizers": finalizers}}).to_string();
    run.kubectl(&["patch", "modelfamily", "one", "--type=merge", "-p", &patch], "");
}

fn name_family(run: &Running, family: &Value) {
    let patch = json!({"spec": {"modelFamily": family}}).to_string();
    run.kubectl(&["patch", "model", "m", "--type=merge", "-p", &patch], "");
}

fn is_of_model(finalizer: &str) -> bool {
    finalizer.starts_with("model.michelangelo.api/")
}

#[test]
fn each_difference_of_references_is_found_and_nothing_else() {
    if !kubectl_is_there() {
        return;
    }
    let mut run = Running::start(&[]);
    run.kubectl(&["apply", "-f", "-"], OBJECTS);
    wait_for("the reference", || finalizers(&run).iter().any(|one| is_of_model(one)));
    wait_for("equality", || verify(&run).status.success());
    let clean = report(&verify(&run));
    assert_eq!(clean["references"]["placed"], true, "{clean}");
    assert_eq!(clean["references"]["references"], 1, "{clean}");

    // Nobody puts it back.
    run.restart_with(&["--deletion=false"]);
    let held = finalizers(&run);
    let without: Vec<_> = held.iter().filter(|one| !is_of_model(one)).cloned().collect();
    set_finalizers(&run, &without);
    let output = verify(&run);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(classes(&report(&output)), ["reference-missing"]);

    let orphaned = [NOBODY.to_owned(), FOREIGN.to_owned()];
    set_finalizers(&run, &[held.clone(), orphaned.to_vec()].concat());
    let output = verify(&run);
    let found = report(&output);
    assert_eq!(classes(&found), ["holder-missing"], "{found}");
    let notes = found["references"]["notes"].to_string();
    assert!(notes.contains("server.other.example.com"), "{notes}");

    set_finalizers(&run, &held);
    name_family(&run, &Value::Null);
    assert_eq!(classes(&report(&verify(&run))), ["holder-elsewhere"]);

    set_finalizers(&run, &without);
    name_family(&run, &json!({"name": "gone", "namespace": "default"}));
    let output = verify(&run);
    assert_eq!(output.status.code(), Some(1));
    let found = report(&output);
    assert_eq!(classes(&found), ["dangling"]);
    let (holder, target) = (&found["references"]["differences"][0], "ModelFamily default/gone");
    let detail = format!("it names {target} in model_family, which does not exist");
    assert_eq!((&holder["kind"], &holder["name"]), (&json!("Model"), &json!("m")));
    assert_eq!(holder["detail"], json!(detail));

    name_family(&run, &Value::Null);
    run.plant(
        "INSERT INTO kindex_reference (kind, uid, name, holder_kind, holder_group, holder_uid, place_time, placed_by) \
         VALUES ('Model', 'gone', 'model.michelangelo.api/u', 'model', 'michelangelo.api', 'u', \
         '2026-01-01T00:00:00.000000Z', NULL); \
         INSERT INTO kindex_tombstone (kind, uid, request_time) VALUES ('Model', 'gone', '2026-01-01T00:00:00.000000Z')",
    );
    let output = verify(&run);
    assert_eq!(classes(&report(&output)), ["reference-stray", "tombstone-stray"]);
    assert_eq!(output.status.code(), Some(1));
    let some = run.command(&["verify", "--kind", "models", "-o", "json"]);
    assert!(
        some.status.success() && report(&some)["references"].is_null(),
        "of some kinds alone"
    );
}
