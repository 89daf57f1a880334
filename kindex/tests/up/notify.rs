//! A web server that gets notices of objects whose deletion waits.

use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use kindex_harness::scrape::Scrape;
use kindex_harness::wait::WAIT_MAX;
use serde_json::Value;

use super::process::{KINDEX, Running, kubectl_is_there, wait_for};
use super::text_of;

const OBJECTS: &str = "
apiVersion: michelangelo.api/v2
kind: ModelFamily
metadata: {name: used, namespace: default}
spec: {}
---
apiVersion: michelangelo.api/v2
kind: Model
metadata: {name: m, namespace: default}
spec: {algorithm: a, modelFamily: {name: used, namespace: default}}
";

/// The body of a request.
fn body(request: &mut impl BufRead) -> Value {
    let mut length = 0;
    loop {
        let mut line = String::new();
        request.read_line(&mut line).expect("a line");
        let line = line.trim().to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(bytes) = line.strip_prefix("content-length:") {
            length = bytes.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    request.read_exact(&mut body).expect("a body");
    serde_json::from_slice(&body).expect("JSON")
}

/// A web server that takes everything: its URL, and what it gets.
fn server() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
    let (send, got) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let notice = body(&mut BufReader::new(&stream));
            let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
            stream.write_all(answer).expect("somebody waits for it");
            if send.send(notice).is_err() {
                return;
            }
        }
    });
    (url, got)
}

fn value(run: &Running, metric: &str, label: (&str, &str)) -> f64 {
    Scrape::parse(&run.request("/metrics").1).sum_of(metric, &[label])
}

#[test]
fn a_web_server_is_notified_once_over_a_restart() {
    if !kubectl_is_there() {
        return;
    }
    let (url, got) = server();
    let mut run = Running::start(&["--blocked-after", "1", "--notify", &url]);
    run.kubectl(&["apply", "-f", "-"], OBJECTS);
    wait_for("the reference", || {
        let family = ["get", "modelfamily/used", "-o", "jsonpath={.metadata.finalizers}"];
        run.kubectl(&family, "").contains("model.michelangelo.api/")
    });
    run.kubectl(&["delete", "modelfamily/used", "--wait=false"], "");
    let in_use = "still in use by model.michelangelo.api default/m";
    let notice = loop {
        let notice = got.recv_timeout(WAIT_MAX).expect("a notice");
        if notice["message"] == in_use {
            break notice;
        }
    };
    assert_eq!(notice["kind"], "ModelFamily", "{notice}");
    assert_eq!(notice["name"], "used", "{notice}");
    assert_eq!(notice["reason"], "DeletionBlocked", "{notice}");
    wait_for("the metric", || {
        value(&run, "kindex_deletion_web_notices_total", ("result", "sent")) >= 1.0
    });

    run.restart();
    wait_for("the next process to report it", || {
        value(&run, "kindex_deletion_blocked", ("kind", "ModelFamily")) >= 1.0
    });
    run.kubectl(&["delete", "model/m"], "");
    wait_for("the family to go", || {
        run.kubectl(&["get", "modelfamilys", "-o", "name"], "").is_empty()
    });
    let repeats = got.try_iter().filter(|notice| notice["message"] == in_use);
    assert_eq!(repeats.count(), 0);
}

#[test]
fn an_address_that_nothing_can_be_posted_to_is_refused_at_the_start() {
    for (flags, why) in [
        (["--notify", "hooks"].as_slice(), "it is not the URL of a web server"),
        (
            &["--notify", "http://hooks", "--notify-token-file", "token"],
            "without TLS, no token is sent",
        ),
        (&["--notify-token-file", "token"], "--notify <URL>"),
        (
            &["--deletion=false", "--notify", "http://hooks"],
            "--notify has no effect with --deletion=false",
        ),
        (
            &["--kubeconfig", "nowhere", "--notify", "http://hooks"],
            "--notify has no effect with --kubeconfig",
        ),
    ] {
        let mut run = Running::once(&[&["--once"], flags].concat());
        let output = run.finish();
        let text = text_of(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(why), "{text}");
        assert!(!run.data_dir().exists(), "nothing was made before {text}");
    }
    let alone = Command::new(KINDEX).args(["deletion", "--notify", "hooks"]).output();
    let output = alone.expect("kindex runs");
    let text = text_of(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("write it as https://HOST/PATH"), "{text}");
}
