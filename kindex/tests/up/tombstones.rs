//! Deleting what is archived itself, with kubectl against `kindex up`: its holders go along or are waited for, and it
//! goes last, over kills in between.

use super::process::{Running, kubectl_is_there, wait_for};
use super::text_of;

const PIPELINE: &str = "
apiVersion: michelangelo.api/v2
kind: Pipeline
metadata: {name: p, namespace: default}
spec: {type: PIPELINE_TYPE_TRAIN}
";
const MODEL: &str = "
apiVersion: michelangelo.api/v2
kind: Model
metadata: {name: m, namespace: default}
spec: {algorithm: a}
";
const REFERENCES: &str = "/api/v1/pipelines/default/p/references";

fn run_of_pipeline(name: &str) -> String {
    format!(
        "apiVersion: michelangelo.api/v2\nkind: PipelineRun\n\
         metadata: {{name: {name}, namespace: default}}\n\
         spec: {{pipeline: {{namespace: default, name: p}}}}\n"
    )
}

/// A run that holds the pipeline, and is one of another pipeline by now.
fn move_away(run: &Running) {
    run.kubectl(&["create", "-f", "-"], &run_of_pipeline("moved"));
    hold(run, "pipelinerun", "moved");
    run.kubectl(&["apply", "-f", "-"], &PIPELINE.replace("name: p,", "name: q,"));
    let other = r#"{"spec":{"pipeline":{"name":"q"}}}"#;
    run.kubectl(&["patch", "pipelinerun", "moved", "--type=merge", "-p", other], "");
    wait_for("the reference on the other pipeline", || {
        let finalizers = run.kubectl(&["get", "pipeline", "q", "-o", "jsonpath={.metadata.finalizers}"], "");
        finalizers.contains("pipelinerun.michelangelo.api/")
    });
}

fn count(run: &Running, table: &str, condition: &str) -> u64 {
    run.execute(&format!("UPDATE {table} SET uid = uid WHERE {condition}"))
}

fn server(run: &Running) -> String {
    format!("http://{}", run.api().expect("it says where"))
}

/// Lets an object of the cluster hold the pipeline.
fn hold(run: &Running, resource: &str, name: &str) {
    let uid = run.kubectl(&["get", resource, name, "-o", "jsonpath={.metadata.uid}"], "");
    let path = format!("{REFERENCES}/{resource}.michelangelo.api/{uid}");
    run.kubectl(&["--server", &server(run), "replace", "--raw", &path, "-f", "-"], "{}");
}

fn phase(run: &Running) -> String {
    let path = r"jsonpath={.metadata.annotations.michelangelo\.api/deletion-phase}";
    let server = server(run);
    run.kubectl(
        &[
            "--server",
            &server,
            "get",
            "pipeline",
            "p",
            "--ignore-not-found",
            "-o",
            path,
        ],
        "",
    )
}

/// A pipeline in the archive, with a run there, a live one, and a live model, which all hold it.
fn archived() -> Running {
    let run = Running::start(&["--blocked-after", "1"]);
    run.kubectl(&["apply", "-f", "-"], PIPELINE);
    run.kubectl(&["create", "-f", "-"], &run_of_pipeline("archived"));
    let path = "jsonpath={.metadata.finalizers}";
    wait_for("its reference", || {
        let finalizers = run.kubectl(&["get", "pipeline", "p", "-o", path], "");
        finalizers.contains("pipelinerun.michelangelo.api/")
    });
    run.kubectl(
        &["annotate", "pipelinerun", "archived", "michelangelo/Immutable=true"],
        "",
    );
    wait_for("the run to be archived", || {
        count(&run, "pipelinerun", "evicted_time IS NOT NULL") == 1 && count(&run, "kindex_reference", "1 = 1") == 1
    });
    run.kubectl(&["annotate", "pipeline", "p", "michelangelo/Immutable=true"], "");
    wait_for("the pipeline to be archived", || {
        run.kubectl(&["get", "pipelines", "-o", "name"], "").trim().is_empty()
            && count(&run, "pipeline", "evicted_time IS NOT NULL") == 1
    });
    run.kubectl(&["create", "-f", "-"], &run_of_pipeline("live"));
    run.kubectl(&["create", "-f", "-"], MODEL);
    hold(&run, "pipelinerun", "live");
    hold(&run, "model", "m");
    assert_eq!(count(&run, "kindex_reference", "kind = 'Pipeline'"), 3);
    run
}

#[test]
fn an_archived_pipeline_takes_its_runs_along_and_waits_for_a_model_over_kills() {
    if !kubectl_is_there() {
        return;
    }
    let mut run = archived();
    move_away(&run);
    assert_eq!(count(&run, "kindex_reference", "kind = 'Pipeline'"), 4);
    run.kubectl(
        &["--server", &server(&run), "delete", "pipeline", "p", "--wait=false"],
        "",
    );
    run.kill();
    run.restart();
    wait_for("the live run to go, and the other one to stay", || {
        let left = run.kubectl(&["get", "pipelineruns", "-o", "name"], "");
        left.trim() == "pipelinerun.michelangelo.api/moved"
    });
    wait_for("SQL to know", || {
        count(&run, "pipelinerun", "delete_time IS NOT NULL") == 2
    });
    wait_for("the row of the model to be left", || {
        count(&run, "kindex_reference", "1 = 1") == 1 && phase(&run) == "DELETING"
    });
    wait_for("the event", || {
        let events = run.kubectl(&["get", "events", "-o", "jsonpath={.items[*].message}"], "");
        events.contains("still in use by model.michelangelo.api default/m")
    });
    let why = text_of(&run.command(&["why", "pipeline/p"]).stdout);
    assert!(why.contains("model/default/m  Live"), "{why}");
    assert!(why.contains("\nIts deletion so far:\n  Deleting "), "{why}");
    assert_eq!(
        count(&run, "pipeline", "name = 'p' AND delete_time IS NULL"),
        1,
        "it waits"
    );

    run.kubectl(&["delete", "model", "m", "--wait=false"], "");
    run.kill();
    run.restart();
    wait_for("the pipeline to go", || {
        count(&run, "pipeline", "delete_time IS NOT NULL") == 1
    });
    assert_eq!(count(&run, "kindex_tombstone", "1 = 1"), 0);
    assert_eq!(count(&run, "kindex_reference", "1 = 1"), 0);
    let verified = run.command(&["verify", "--settle", "0.2"]);
    assert!(verified.status.success(), "{}", text_of(&verified.stdout));
}
