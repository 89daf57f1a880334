//! References in `kindex verify`: nothing where all is well, and each sort of difference where something was planted.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Output;
use std::thread;

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
/// That of its holder.
const FOREIGN_UID: &str = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

fn verify(run: &Running) -> Output {
    verify_with(run, &[])
}

fn verify_with(run: &Running, flags: &[&str]) -> Output {
    run.command(&[&["verify", "-o", "json", "--settle", "0.2"], flags].concat())
}

/// A service that says of each holder that it is in this state: its URL.
fn service_with_holder(state: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = url_of(&listener);
    thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.expect("a connection"), state);
        }
    });
    url
}

fn url_of(listener: &TcpListener) -> String {
    format!("http://{}", listener.local_addr().expect("an address"))
}

/// Answers whoever asks about a holder; whether it was a question.
fn answer(mut stream: TcpStream, state: &str) -> bool {
    let holder = json!({"kind": "Server", "group": "other.example.com", "namespace": "prod", "name": "s",
        "uid": FOREIGN_UID, "state": state});
    let holder = holder.to_string();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{holder}",
        holder.len()
    );
    let is_request = BufReader::new(&stream)
        .lines()
        .map_while(Result::ok)
        .any(|line| line.is_empty());
    if is_request {
        stream.write_all(answer.as_bytes()).expect("somebody waits for it");
    }
    is_request
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

/// The same without a program that has to start first: a service has to answer within seconds.
fn set_finalizers_at_once(run: &Running, finalizers: &[String]) {
    let patch = json!({"metadata": {"finalizers": finalizers}}).to_string();
    let path = "/apis/michelangelo.api/v2/namespaces/default/modelfamilys/one";
    let mut stream = TcpStream::connect(run.cluster()).expect("the cluster is there");
    write!(
        stream,
        "PATCH {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
         Content-Type: application/merge-patch+json\r\nContent-Length: {}\r\n\r\n{patch}",
        run.token(),
        patch.len()
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
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
    // The ingester may still be about to store what the field was changed to.
    wait_for("equality of some kinds alone", || {
        let some = run.command(&["verify", "--kind", "models", "-o", "json"]);
        assert!(report(&some)["references"].is_null(), "of some kinds alone");
        some.status.success()
    });
}

/// A family that has references of holders of another service.
fn held_family(references: &[String]) -> Running {
    let run = Running::start(&["--deletion=false"]);
    let family = json!({"apiVersion": "michelangelo.api/v2", "kind": "ModelFamily", "spec": {"name": "one"},
        "metadata": {"name": "one", "namespace": "default", "finalizers": references}});
    run.kubectl(&["apply", "-f", "-"], &family.to_string());
    wait_for("equality", || {
        let output = verify(&run);
        output.status.success() && notes(&report(&output)).contains(&references[0])
    });
    run
}

fn notes(found: &Value) -> String {
    found["references"]["notes"].to_string()
}

/// As if each holder were a question of its own, and a service that hangs kept all of them waiting.
#[test]
fn a_service_that_is_silent_is_asked_about_few_holders() {
    if !kubectl_is_there() {
        return;
    }
    let holder = |number: u32| format!("server.other.example.com/7f7a15ab-f1cc-4f3b-b1c0-{number:012}");
    let run = held_family(&(0..30).map(holder).collect::<Vec<_>>());
    let output = verify_with(&run, &["--service", "other.example.com=http://127.0.0.1:1"]);
    let found = report(&output);
    let notes = notes(&found);
    assert_eq!(notes.matches(" has server.other.example.com/").count(), 30, "{found}");
    let unasked = notes.matches("was not asked again").count();
    assert!((20..30).contains(&unasked), "{unasked}: {found}");
    assert_eq!(output.status.code(), Some(0), "{found}");
}

/// As if what changes while services are asked were a difference.
#[test]
fn a_reference_that_its_holder_releases_meanwhile_is_no_difference() {
    if !kubectl_is_there() {
        return;
    }
    let run = held_family(&[FOREIGN.to_owned()]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let service = format!("other.example.com={}", url_of(&listener));
    let mut left = finalizers(&run);
    left.retain(|finalizer| finalizer != FOREIGN);
    thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let (stream, _) = listener.accept().expect("a connection");
            set_finalizers_at_once(&run, &left);
            answer(stream, "Deleted")
        });
        let output = verify_with(&run, &["--service", &service]);
        // Nobody would wait for a question that never comes.
        let _end = TcpStream::connect(listener.local_addr().expect("an address"));
        assert!(asked.join().expect("no panic"), "nobody was asked");
        let found = report(&output);
        assert!(!notes(&found).contains(FOREIGN), "it has answered in time: {found}");
        assert_eq!(found["references"]["leftBehind"], json!([]), "{found}");
        assert_eq!(output.status.code(), Some(0), "{found}");
    });
}

/// As if no service were asked about its holders.
#[test]
fn what_another_service_has_left_behind_is_a_difference() {
    if !kubectl_is_there() {
        return;
    }
    let run = held_family(&[FOREIGN.to_owned()]);
    let has_reference = format!("modelfamily/default/one has {FOREIGN}");
    let deleted = format!("{has_reference}, and its service says that server/prod/s is deleted");
    for (state, left_behind, code) in [("Live", json!([]), 0), ("Deleted", json!([deleted]), 1)] {
        let service = format!("other.example.com={}", service_with_holder(state));
        let output = verify_with(&run, &["--service", &service]);
        let found = report(&output);
        assert_eq!(found["references"]["leftBehind"], left_behind, "{found}");
        assert!(!notes(&found).contains(FOREIGN), "{found}");
        assert_eq!(output.status.code(), Some(code), "{found}");
    }
}
