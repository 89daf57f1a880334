//! Deleting what archived objects refer to, with kubectl against `kindex up`: a pipeline with runs in the
//! cluster and in the archive.

use std::fmt::Write as _;

use serde_json::Value;

use super::process::{Running, kubectl_is_there, wait_for};
use super::text_of;

const PIPELINE: &str = "
apiVersion: michelangelo.api/v2
kind: Pipeline
metadata: {name: p, namespace: default}
spec: {type: PIPELINE_TYPE_TRAIN}
";
/// A family that waits for its model.
const FAMILY: &str = "
apiVersion: michelangelo.api/v2
kind: ModelFamily
metadata: {name: fraud, namespace: default}
spec: {name: fraud}
---
apiVersion: michelangelo.api/v2
kind: Model
metadata: {name: one, namespace: default}
spec: {algorithm: a, modelFamily: {name: fraud, namespace: default}}
";
const REFERENCES: &str = "/api/v1/pipelines/default/p/references";

/// Runs of the pipeline, each immutable where it is to be archived.
fn runs(names: impl Iterator<Item = String>, immutable: bool) -> String {
    let mut text = String::new();
    for name in names {
        let metadata = match immutable {
            true => format!("{{name: {name}, namespace: default, annotations: {{michelangelo/Immutable: \"true\"}}}}"),
            false => format!("{{name: {name}, namespace: default}}"),
        };
        let run = format!(
            "apiVersion: michelangelo.api/v2\nkind: PipelineRun\nmetadata: {metadata}\n\
             spec: {{pipeline: {{namespace: default, name: p}}}}\n---\n"
        );
        text.write_str(&run).expect("a text takes it");
    }
    text
}

fn finalizers(run: &Running) -> String {
    let path = "jsonpath={.metadata.finalizers}";
    run.kubectl(&["get", "pipeline", "p", "--ignore-not-found", "-o", path], "")
}

/// How many runs are in this state in SQL.
fn count(run: &Running, condition: &str) -> u64 {
    run.execute(&format!("UPDATE pipelinerun SET name = name WHERE {condition}"))
}

const ARCHIVED: &str = "delete_time IS NULL AND evicted_time IS NOT NULL";
const DELETED: &str = "delete_time IS NOT NULL";

fn rows(run: &Running) -> u64 {
    run.execute("UPDATE kindex_reference SET name = name WHERE kind = 'Pipeline'")
}

/// A pipeline with so many runs that are archived at once. Some may have no time to place their reference: these are
/// found by the field that names the pipeline.
fn archived(run: &Running, number: u64) {
    run.kubectl(&["apply", "-f", "-"], PIPELINE);
    let names = (0..number).map(|at| format!("archived-{at}"));
    run.kubectl(&["create", "-f", "-"], &runs(names, true));
    wait_for("the archive", || count(run, ARCHIVED) == number);
    wait_for("no finalizer of theirs", || !finalizers(run).contains("pipelinerun."));
}

/// Archives an object that holds another one by a finalizer. That one becomes a row.
fn archive(run: &Running, object: &str, finalizers: impl Fn() -> String) {
    let (kind, _) = object.split_once('/').expect("a kind and a name");
    let reference = format!("{kind}.michelangelo.api/");
    wait_for("the reference", || finalizers().contains(&reference));
    run.kubectl(&["annotate", object, "michelangelo/Immutable=true"], "");
    wait_for("the row", || !finalizers().contains(&reference));
}

/// A family whose model is archived, and which is deleted and waits for it.
fn delete_family_of_archived(run: &Running) {
    run.kubectl(&["apply", "-f", "-"], FAMILY);
    let path = "jsonpath={.metadata.finalizers}";
    archive(run, "model/one", || {
        run.kubectl(&["get", "modelfamily", "fraud", "-o", path], "")
    });
    run.kubectl(&["delete", "modelfamily", "fraud", "--wait=false"], "");
    wait_for("the event", || {
        let events = run.kubectl(&["get", "events", "-o", "jsonpath={.items[*].message}"], "");
        events.contains("still in use by model.michelangelo.api default/one (archived)")
    });
}

fn has_family(run: &Running) -> bool {
    !run.kubectl(&["get", "modelfamilys", "-o", "name"], "")
        .trim()
        .is_empty()
}

fn is_gone(run: &Running) -> bool {
    run.kubectl(&["get", "pipelines,pipelineruns", "-o", "name"], "")
        .trim()
        .is_empty()
}

#[test]
fn a_pipeline_takes_its_live_and_archived_runs_along_and_goes_last() {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&[]);
    run.kubectl(&["apply", "-f", "-"], PIPELINE);
    for name in ["archived-0", "archived-1", "archived-2"] {
        run.kubectl(&["apply", "-f", "-"], &runs([name.to_owned()].into_iter(), false));
        archive(&run, &format!("pipelinerun/{name}"), || finalizers(&run));
    }
    assert_eq!(rows(&run), 3);
    run.kubectl(&["apply", "-f", "-"], &runs(["live".to_owned()].into_iter(), false));
    wait_for("the reference", || finalizers(&run).contains("pipelinerun."));

    let server = format!("http://{}", run.api().expect("it says where"));
    let listed = run.kubectl(&["--server", &server, "get", "--raw", REFERENCES], "");
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["references"].as_array().expect("a list").len(), 4, "{listed}");
    let why = run.command(&["why", "pipeline/p"]);
    let said = text_of(&why.stdout);
    assert!(said.contains("pipelinerun/default/archived-0  Archived"), "{said}");
    assert!(said.contains("pipelinerun/default/live  Live"), "{said}");

    run.kubectl(&["delete", "pipeline", "p"], "");
    wait_for("all to go", || is_gone(&run));
    wait_for("SQL to know", || count(&run, DELETED) == 4);
    assert_eq!(rows(&run), 0, "nobody holds what is gone");
    let later = "UPDATE pipeline SET name = name WHERE delete_time >= \
                 (SELECT MAX(delete_time) FROM pipelinerun)";
    wait_for("the pipeline to go last", || run.execute(later) == 1);
    let verified = run.command(&["verify", "--settle", "0.2"]);
    assert!(verified.status.success(), "{}", text_of(&verified.stdout));
}

#[test]
fn an_archived_holder_that_may_stay_is_waited_for_and_named() {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&["--blocked-after", "1"]);
    delete_family_of_archived(&run);
    let server = format!("http://{}", run.api().expect("it says where"));
    run.kubectl(&["--server", &server, "delete", "model", "one"], "");
    wait_for("the family to go", || !has_family(&run));
}

#[test]
fn a_family_that_is_deleted_waits_for_its_archived_model_also_once_that_is_restored() {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&["--blocked-after", "1"]);
    delete_family_of_archived(&run);
    let restored = run.command(&["restore", "model/one"]);
    assert!(restored.status.success(), "{}", text_of(&restored.stdout));
    let uid = run.kubectl(&["get", "model", "one", "-o", "jsonpath={.metadata.uid}"], "");
    let row = format!("kind = 'ModelFamily' AND holder_uid = '{}'", uid.trim());
    let held = run.execute(&format!("UPDATE kindex_reference SET name = name WHERE {row}"));
    assert_eq!(held, 1, "the restored model holds the family");
    assert!(has_family(&run));
    run.kubectl(&["delete", "model", "one", "--wait=false"], "");
    wait_for("the family to go", || !has_family(&run));
}

#[test]
fn hundreds_of_archived_runs_go_with_their_pipeline_over_a_kill() {
    if !kubectl_is_there() {
        return;
    }
    let mut run = Running::start(&[]);
    archived(&run, 400);
    run.kubectl(&["delete", "pipeline", "p", "--wait=false"], "");
    wait_for("some to go", || count(&run, DELETED) > 0);
    run.kill();
    run.restart();
    wait_for("all to go", || is_gone(&run));
    assert_eq!((count(&run, ARCHIVED), count(&run, DELETED), rows(&run)), (0, 400, 0));
}
