//! Bad requests over plain HTTP, and the Status each is answered with.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::cluster::TestCluster;

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// A request over a connection of its own; the status line's code, the headers and the body.
async fn send(cluster: &TestCluster, method: &str, path: &str, headers: &str, body: &str) -> (u16, String, String) {
    // What has no type may be a page's.
    let is_untyped = method == "POST" && !headers.to_ascii_lowercase().contains("content-type");
    let json = if is_untyped { JSON } else { "" };
    let headers = format!("Host: localhost\r\n{}{json}{headers}", cluster.server.authorization());
    send_plain(cluster, method, path, &headers, body).await
}

/// The same with these headers alone.
pub(super) async fn send_plain(
    cluster: &TestCluster,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> (u16, String, String) {
    let mut stream = TcpStream::connect(cluster.server.address).await.unwrap();
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    // A server that has seen enough may close before it has read everything.
    let _closed = stream.write_all(body.as_bytes()).await;
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, head.to_owned(), body.to_owned())
}

async fn refused(cluster: &TestCluster, method: &str, path: &str, headers: &str, body: &str) -> (u16, String, String) {
    let (code, _, body) = send(cluster, method, path, headers, body).await;
    // Where no group answers, there is no Status either.
    if body == "404 page not found\n" {
        return (code, String::new(), body);
    }
    let status: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (&status["kind"], &status["status"]),
        (&json!("Status"), &json!("Failure")),
        "{status}"
    );
    assert_eq!(status["code"], code);
    let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
    (code, text("reason"), text("message"))
}

/// Method, path (`~` stands for the widgets), headers, body; code and reason of the answer.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    u16,
    &'static str,
);

const JSON: &str = "Content-Type: application/json\r\n";
const MERGE: &str = "Content-Type: application/merge-patch+json\r\n";
const STRATEGIC: &str = "Content-Type: application/strategic-merge-patch+json\r\n";
const APPLY: &str = "Content-Type: application/apply-patch+yaml\r\n";
const HTML: &str = "Content-Type: text/html\r\n";
const PROTOBUF: &str = "Content-Type: application/vnd.kubernetes.protobuf\r\n";
const WANTS_PROTOBUF: &str = "Accept: application/vnd.kubernetes.protobuf\r\n";

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("GET", "/nowhere", "", "", 404, ""),
    ("GET", "/apis/example.com/v2/widgets", "", "", 404, ""),
    ("GET", "/apis/example.com/v1/namespaces/default/gadgets", "", "", 404, ""),
    ("GET", "/apis/example.com/v1/widgets/a", "", "", 404, ""),
    ("GET", "~/a/scale", "", "", 404, "NotFound"),
    ("POST", "/apis", "", "{}", 405, "MethodNotAllowed"),
    ("PUT", "~", "", "{}", 400, "BadRequest"),
    ("POST", "~", "", "{bad", 400, "BadRequest"),
    ("POST", "~", "", "[]", 400, "BadRequest"),
    ("POST", "~", "", "{}", 400, "BadRequest"),
    ("POST", "~", HTML, "{}", 415, "UnsupportedMediaType"),
    ("POST", "~", PROTOBUF, "k8s", 400, "BadRequest"),
    ("PATCH", "~/a", JSON, "{}", 415, "UnsupportedMediaType"),
    ("PATCH", "~/a", STRATEGIC, "{}", 415, "UnsupportedMediaType"),
    ("PATCH", "~/a", MERGE, "[", 400, "BadRequest"),
    ("PATCH", "~/a", MERGE, "7", 400, "BadRequest"),
    ("PATCH", "~/a", APPLY, "{}", 422, "Invalid"),
    ("GET", "~", WANTS_PROTOBUF, "", 406, "NotAcceptable"),
    ("GET", "~?labelSelector=a%20b", "", "", 400, "BadRequest"),
    ("GET", "~?fieldSelector=spec.size%3D1", "", "", 400, "BadRequest"),
    ("GET", "~?limit=x", "", "", 400, "BadRequest"),
    ("GET", "~?continue=nonsense", "", "", 400, "BadRequest"),
    ("GET", "~?resourceVersionMatch=Exact", "", "", 422, "Invalid"),
    ("GET", "~?resourceVersion=100000", "", "", 504, "Timeout"),
    ("GET", "~?watch=1&resourceVersion=100000", "", "", 504, "Timeout"),
    ("GET", "~?watch=1&sendInitialEvents=true", "", "", 422, "Invalid"),
    ("DELETE", "~/a", "", "{\"propagationPolicy\":\"Sideways\"}", 422, "Invalid"),
    ("DELETE", "~/a", "", "{\"dryRun\":[\"Some\"]}", 422, "Invalid"),
];

#[tokio::test]
async fn every_bad_request_has_its_status() {
    let cluster = TestCluster::with_widgets().await;
    cluster.create("a", 1).await;
    for (method, path, headers, body, code, reason) in CASES {
        let path = path.replace('~', WIDGETS);
        let (found, why, message) = refused(&cluster, method, &path, headers, body).await;
        assert_eq!(
            (found, why.as_str()),
            (*code, *reason),
            "{method} {path} {body}: {message}"
        );
    }
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_and_deep_nesting_is_survived() {
    let cluster = TestCluster::with_widgets().await;
    let (code, reason, message) = refused(&cluster, "POST", WIDGETS, "", &" ".repeat(3 * 1024 * 1024 + 1)).await;
    assert_eq!((code, reason.as_str()), (413, "RequestEntityTooLarge"));
    assert_eq!(message, "Request entity too large: limit is 3145728");
    for media in ["application/json", "application/yaml"] {
        let headers = format!("Content-Type: {media}\r\n");
        let (code, ..) = refused(&cluster, "POST", WIDGETS, &headers, &"[".repeat(1_000_000)).await;
        assert_eq!(code, 400);
    }
}

#[tokio::test]
async fn an_invalid_object_is_refused_with_a_cause_for_each_field() {
    let cluster = TestCluster::with_widgets().await;
    let body = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "Bad_Name", "labels": {"a b": "c"}},
        "spec": {"color": "pink"}});
    let (code, _, text) = send(&cluster, "POST", WIDGETS, "", &body.to_string()).await;
    let status: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 422);
    assert_eq!(status["details"]["kind"], "Widget");
    let fields: Vec<_> = status["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| cause["field"].as_str().unwrap())
        .collect();
    for field in ["metadata.name", "metadata.labels", "spec.size", "spec.color"] {
        assert!(fields.contains(&field), "{field} is not in {fields:?}");
    }
}

#[tokio::test]
async fn unknown_and_repeated_fields_are_ignored_warned_of_or_refused() {
    let cluster = TestCluster::with_widgets().await;
    let body = |name: &str| {
        format!(
            "{{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\",\"metadata\":{{\"name\":\"{name}\",\"x\":1}},\
             \"spec\":{{\"size\":1,\"size\":2,\"weight\":3}}}}"
        )
    };
    let path = |mode: &str| format!("{WIDGETS}?fieldValidation={mode}");
    let (code, head, text) = send(&cluster, "POST", &path("Warn"), "", &body("a")).await;
    assert_eq!(code, 201);
    for doubt in [
        "unknown field \\\"spec.weight\\\"",
        "unknown field \\\"metadata.x\\\"",
        "duplicate field \\\"spec.size\\\"",
    ] {
        assert!(
            head.to_lowercase().contains(&format!("warning: 299 - \"{doubt}\"")),
            "{doubt} is not in {head}"
        );
    }
    let created: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(created["spec"], json!({"color": "red", "size": 2}));
    let (code, head, _) = send(&cluster, "POST", &path("Ignore"), "", &body("b")).await;
    assert_eq!(code, 201);
    assert!(!head.to_lowercase().contains("warning"), "{head}");
    let (code, reason, message) = refused(&cluster, "POST", &path("Strict"), "", &body("c")).await;
    assert_eq!((code, reason.as_str()), (400, "BadRequest"));
    assert_eq!(
        message,
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: duplicate field \"spec.size\", unknown \
         field \"metadata.x\", unknown field \"spec.weight\""
    );
    // Of a patch, what it made is shown with the field that is not known.
    let strict = format!("{WIDGETS}/a?fieldValidation=Strict");
    let (code, _, message) = refused(&cluster, "PATCH", &strict, MERGE, r#"{"spec":{"weight":4}}"#).await;
    assert_eq!(code, 422);
    for part in [
        "patch: Invalid value: ",
        r#"\"weight\":4"#,
        "strict decoding error: unknown field \"spec.weight\"",
    ] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
}

#[tokio::test]
async fn a_definition_that_breaks_the_rules_names_each() {
    let cluster = TestCluster::empty().await;
    let body = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example", "scope": "Galaxy", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": false, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"spec": {"properties": {"a": {"type": "string"}}}}}}}]}});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, _, message) = refused(&cluster, "POST", path, "", &body.to_string()).await;
    assert_eq!(code, 422);
    for part in [
        "metadata.name: Invalid value: \"things.example.com\": must be spec.names.plural+\".\"+spec.group",
        "spec.group: Invalid value: \"example\": should be a domain with at least one dot",
        "spec.scope: Unsupported value: \"Galaxy\"",
        "must have exactly one version marked as storage version",
        "properties[spec].type: Required value: must not be empty for specified object fields",
    ] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
}
