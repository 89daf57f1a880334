//! Objects that name archived ones, with kubectl against `kindex up`: they hold them by rows, and are deleted with them
//! or waited for as in the cluster. Also of what was archived before there was a graph.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::process::{Running, kubectl_is_there, wait_for};

const PIPELINE: &str = "
apiVersion: michelangelo.api/v2
kind: Pipeline
metadata: {name: p, namespace: default}
spec: {type: PIPELINE_TYPE_TRAIN}
";
const RUN: &str = "
apiVersion: michelangelo.api/v2
kind: PipelineRun
metadata: {name: r, namespace: default}
spec: {pipeline: {namespace: default, name: p}}
";
const FAMILY: &str = "
apiVersion: michelangelo.api/v2
kind: ModelFamily
metadata: {name: fraud, namespace: default}
spec: {name: fraud}
";
const MODEL: &str = "
apiVersion: michelangelo.api/v2
kind: Model
metadata: {name: one, namespace: default}
spec: {algorithm: a, modelFamily: {name: fraud, namespace: default}}
";

fn count(run: &Running, table: &str, condition: &str) -> u64 {
    run.execute(&format!("UPDATE {table} SET uid = uid WHERE {condition}"))
}

/// Applies an object and lets it leave for the archive.
fn archive(run: &Running, resource: &str, name: &str, text: &str) {
    run.kubectl(&["apply", "-f", "-"], text);
    run.kubectl(&["annotate", resource, name, "michelangelo/Immutable=true"], "");
    wait_for("it to be archived", || {
        let left = run.kubectl(&["get", resource, name, "--ignore-not-found", "-o", "name"], "");
        left.is_empty() && count(run, resource, "evicted_time IS NOT NULL") == 1
    });
}

/// Deletes an object of the archive.
fn delete(run: &Running, resource: &str, name: &str) {
    let server = format!("http://{}", run.api().expect("it says where"));
    run.kubectl(&["--server", &server, "delete", resource, name, "--wait=false"], "");
}

/// What the API server answers to JSON.
fn post(run: &Running, path: &str, body: &str) -> String {
    let mut server = TcpStream::connect(run.api().expect("it says where")).expect("it listens");
    let head = "Host: localhost\r\nConnection: close\r\nContent-Type: application/json";
    let request = format!(
        "POST {path} HTTP/1.1\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    server.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    server.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn a_run_of_an_archived_pipeline_holds_it_and_goes_with_it() {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&["--blocked-after", "1"]);
    archive(&run, "pipeline", "p", PIPELINE);
    run.kubectl(&["create", "-f", "-"], RUN);
    // As programs do it, which leave the namespace to the path.
    let second = r#"{"apiVersion": "michelangelo.api/v2", "kind": "PipelineRun", "metadata": {"name": "s"},
                     "spec": {"pipeline": {"name": "p"}}}"#;
    let answer = post(
        &run,
        "/apis/michelangelo.api/v2/namespaces/default/pipelineruns",
        second,
    );
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    wait_for("the rows", || count(&run, "kindex_reference", "kind = 'Pipeline'") == 2);
    let events = run.kubectl(&["get", "events", "-o", "jsonpath={.items[*].reason}"], "");
    assert!(!events.contains("ReferenceRefused"), "{events}");
    run.until_verified();
    delete(&run, "pipeline", "p");
    wait_for("the pipeline to go last", || {
        let gone = "delete_time IS NOT NULL";
        count(&run, "pipeline", gone) == 1 && count(&run, "pipelinerun", gone) == 2
    });
    assert_eq!(count(&run, "kindex_reference", "1 = 1"), 0);
    let first = "delete_time <= (SELECT MAX(delete_time) FROM pipeline)";
    assert_eq!(count(&run, "pipelinerun", first), 2);
    run.until_verified();
}

#[test]
fn a_model_of_an_archived_family_blocks_it_and_no_other_one_joins_it_then() {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&["--blocked-after", "1"]);
    archive(&run, "modelfamily", "fraud", FAMILY);
    run.kubectl(&["create", "-f", "-"], MODEL);
    wait_for("the row", || {
        count(&run, "kindex_reference", "kind = 'ModelFamily'") == 1
    });
    delete(&run, "modelfamily", "fraud");
    wait_for("the event", || {
        let events = run.kubectl(&["get", "events", "-o", "jsonpath={.items[*].message}"], "");
        events.contains("still in use by model.michelangelo.api default/one")
    });
    let server = format!("http://{}", run.api().expect("it says where"));
    let another = MODEL.replace("name: one", "name: two");
    for way in [&["create", "-f", "-"][..], &["apply", "--server-side", "-f", "-"]] {
        let refused = run.refused(&[&["--server", &server][..], way].concat(), &another);
        assert!(
            refused.contains("names modelfamily/default/fraud, which is being deleted; see `kindex why"),
            "{way:?}: {refused}"
        );
    }
    assert_eq!(count(&run, "modelfamily", "delete_time IS NULL"), 1, "it waits");
    run.kubectl(&["delete", "model", "one", "--wait=false"], "");
    wait_for("the family to go", || {
        count(&run, "modelfamily", "delete_time IS NOT NULL") == 1
    });
    assert_eq!(count(&run, "kindex_reference", "1 = 1"), 0);
}

#[test]
fn what_was_archived_before_there_was_a_graph_goes_in_its_order_all_the_same() {
    if !kubectl_is_there() {
        return;
    }
    let mut run = Running::start(&["--deletion=false"]);
    archive(&run, "pipeline", "p", PIPELINE);
    archive(&run, "pipelinerun", "r", RUN);
    archive(&run, "modelfamily", "fraud", FAMILY);
    archive(&run, "model", "one", MODEL);
    assert_eq!(count(&run, "kindex_reference", "1 = 1"), 0, "nobody has placed any");
    run.kill();
    run.restart_with(&["--blocked-after", "1"]);

    delete(&run, "pipeline", "p");
    delete(&run, "modelfamily", "fraud");
    let gone = "delete_time IS NOT NULL";
    wait_for("the pipeline to go", || count(&run, "pipeline", gone) == 1);
    assert_eq!(count(&run, "pipelinerun", gone), 1, "it has gone along");
    wait_for("the event", || {
        let events = run.kubectl(&["get", "events", "-o", "jsonpath={.items[*].message}"], "");
        events.contains("still in use by model.michelangelo.api default/one (archived)")
    });
    assert_eq!(count(&run, "modelfamily", gone), 0, "a model names it");
    delete(&run, "model", "one");
    wait_for("the family to go", || count(&run, "modelfamily", gone) == 1);
}

#[test]
fn without_a_graph_what_is_archived_goes_at_once() {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&["--deletion=false"]);
    archive(&run, "pipeline", "p", PIPELINE);
    archive(&run, "pipelinerun", "r", RUN);
    delete(&run, "pipeline", "p");
    assert_eq!(count(&run, "pipeline", "delete_time IS NOT NULL"), 1);
    assert_eq!(
        count(&run, "pipelinerun", "delete_time IS NULL"),
        1,
        "nobody takes it along"
    );
}
