//! Traces of a running kindex, received by a collector of the test's own that decodes
//! what an OpenTelemetry collector would.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

use kindex_harness::ports::Closed;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use super::process::{Running, wait_for};
use super::site::{Site, on_clusters};

/// The name of the spans of commits of the runs service.
const COMMIT: &str = "commit group";

/// Listens for exports; the requests come out of the channel. A sender is answered when its
/// export is there: what an ended process sent is received.
fn collector() -> (String, mpsc::Receiver<ExportTraceServiceRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("bound");
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.expect("a connection"));
            if sender.send(receive(&mut reader)).is_err() {
                return;
            }
            answer(reader.get_mut());
        }
    });
    (format!("http://{address}"), requests)
}

/// The request of one HTTP exchange.
fn receive(reader: &mut BufReader<TcpStream>) -> ExportTraceServiceRequest {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line of the request");
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_ascii_lowercase());
    }
    assert_eq!(head[0], "post /v1/traces http/1.1");
    assert!(
        head.contains(&"content-type: application/x-protobuf".to_owned()),
        "{head:?}"
    );
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
    let length = length.and_then(|length| length.parse().ok()).expect("a length");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the whole body");
    ExportTraceServiceRequest::decode(&*body).expect("an export")
}

/// Its answer, after which the connection ends.
fn answer(stream: &mut TcpStream) {
    // Said beforehand: a sender that takes the connection for open loses its next export.
    let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/x-protobuf\r\n\
        Content-Length: 0\r\n\r\n";
    stream.write_all(answer).expect("the sender listens");
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match &found.value {
        Some(AnyValue {
            value: Some(Value::StringValue(text)),
        }) => Some(text),
        _ => None,
    }
}

on_clusters!(the_work_is_seen_as_spans_by_a_collector_that_the_environment_names,);

fn the_work_is_seen_as_spans_by_a_collector_that_the_environment_names(site: &Site) {
    let (endpoint, requests) = collector();
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str())];
    let output = Running::once_on(site, &environment, &["--samples", "--once"]).finish();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    // The process has ended: whatever it had to say was received.
    let exports: Vec<_> = requests.try_iter().flat_map(|request| request.resource_spans).collect();
    for export in &exports {
        let resource = export.resource.as_ref().expect("a resource");
        assert_eq!(text(&resource.attributes, "service.name"), Some("kindex"));
    }
    let spans: Vec<&Span> = exports
        .iter()
        .flat_map(|export| &export.scope_spans)
        .flat_map(|scope| &scope.spans)
        .collect();
    for name in ["list page", "batch", "projection", "commit", "effect"] {
        assert!(spans.iter().any(|span| span.name == name), "no span {name:?}");
    }
    let batch = spans
        .iter()
        .find(|span| span.name == "batch" && text(&span.attributes, "kind") == Some("PipelineRun"))
        .expect("a batch of the kind");
    for name in ["projection", "commit"] {
        let part = |span: &&&Span| span.name == name && span.parent_span_id == batch.span_id;
        let part = spans.iter().find(part).expect("a part of the batch");
        assert_eq!(part.trace_id, batch.trace_id);
        assert!(part.start_time_unix_nano <= part.end_time_unix_nano, "{name}");
    }
}

/// A span of a name with the attributes, and its number in the trace.
fn find<'a>(spans: &'a [Span], name: &str, attributes: &[(&str, &str)]) -> Option<&'a Span> {
    let has = |span: &&Span| {
        let mut wanted = attributes.iter();
        wanted.all(|(key, value)| text(&span.attributes, key) == Some(*value))
    };
    spans.iter().filter(|span| span.name == name).find(has)
}

/// The spans of commits that link to that of a request.
fn commits_of<'a>(spans: &'a [Span], request: &'a Span) -> impl Iterator<Item = &'a Span> {
    let is_linked = move |span: &&Span| span.links.iter().any(|link| link.span_id == request.span_id);
    spans.iter().filter(|span| span.name == COMMIT).filter(is_linked)
}

/// Sends one request of HTTP/1.1; the status of its answer.
fn post(address: SocketAddr, path: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}");
    write!(
        stream,
        "{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer.split(' ').nth(1).expect("a status").to_owned()
}

#[test]
fn a_request_to_runs_is_a_span_of_its_callers_trace_and_its_commit_links_to_it() {
    const TRACE: [u8; 16] = [0xab; 16];
    const PARENT: [u8; 8] = [0xcd; 8];
    const SECRET: &str = "mlrun_not-to-be-told";
    let (endpoint, requests) = collector();
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ];
    let run = Running::start_in(&environment, &[]);
    let parent = format!("traceparent: 00-{}-{}-01\r\n", "ab".repeat(16), "cd".repeat(8));
    let headers = format!("{parent}Authorization: Bearer {SECRET}\r\n");
    let opens = format!(r#"{{"project": "demo", "run_id": "traced", "tags": {{"a": "{SECRET}"}}}}"#);
    assert_eq!(post(run.runs(), "/api/v1/runs", &headers, &opens), "200");
    let batch = r#"{"run_id": "traced", "batch_id": "1", "metrics": [{"name": "loss", "step": 0, "value": 0.5}]}"#;
    assert_eq!(post(run.runs(), "/api/v1/ingest/batch", &headers, batch), "200");
    assert_eq!(post(run.runs(), "/api/v1/ingest/batch", "", "{}"), "422");

    let stored = [("transport", "rest"), ("call", "ingest/batch"), ("code", "200")];
    let mut exports = Vec::new();
    let mut seen: Vec<Span> = Vec::new();
    // That of a commit may end after those of requests.
    wait_for("the spans of all requests, and of the commit", || {
        let new: Vec<_> = requests.try_iter().collect();
        let spans = new.iter().flat_map(|export| &export.resource_spans);
        seen.extend(spans.flat_map(|of| &of.scope_spans).flat_map(|of| of.spans.clone()));
        exports.extend(new);
        let is_refused = find(&seen, "request", &[("code", "422")]).is_some();
        let request = find(&seen, "request", &stored);
        is_refused && request.is_some_and(|request| commits_of(&seen, request).next().is_some())
    });
    let request = find(&seen, "request", &stored).expect("a span");
    assert_eq!(
        (&request.trace_id[..], &request.parent_span_id[..]),
        (&TRACE[..], &PARENT[..])
    );
    let alone = find(&seen, "request", &[("code", "422")]).expect("a span");
    assert!(
        alone.parent_span_id.is_empty() && alone.trace_id != TRACE,
        "its caller has no trace"
    );
    let commit = commits_of(&seen, request).next().expect("a span of its commit");
    assert!(commit.parent_span_id.is_empty(), "many requests share it");
    let commits = seen.iter().filter(|span| span.name == COMMIT);
    assert!(commits.count() <= 2, "what nobody asked for has no spans");
    assert!(
        !format!("{exports:?}").contains(SECRET),
        "no span holds what a caller sent"
    );
}

#[test]
fn a_collector_that_is_away_is_no_reason_to_stop() {
    let closed = Closed::take();
    let endpoint = format!("http://{}", closed.address);
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str())];
    let output = Running::once_on(&Site::Embedded, &environment, &["--samples", "--once"]).finish();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert!(
        log.contains("BatchSpanProcessor"),
        "the log says that traces are not sent: {log}"
    );
}
