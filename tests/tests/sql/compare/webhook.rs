//! A conversion webhook that both servers ask: right for most objects, and with one error for those of that name.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use kindex_serve::listen::{Incoming, Listener, Tls};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/tls/first.crt");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/tls/first.key");

/// A webhook for as long as it is kept.
pub(super) struct Webhook {
    /// What scripts call `${webhook}` and `${authority}`.
    pub(super) words: [(String, String); 2],
    _stop: DropGuard,
}

impl Webhook {
    pub(super) async fn start() -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/convert", socket.local_addr().unwrap());
        let listener = Listener {
            tls: Some(Tls::read(Path::new(CERTIFICATE), Path::new(KEY), None).unwrap()),
            ..Listener::new(socket)
        };
        let stop = CancellationToken::new();
        tokio::spawn(listener.serve(answer, stop.clone()));
        let authority = STANDARD.encode(std::fs::read(CERTIFICATE).unwrap());
        Self {
            words: [("webhook".to_owned(), url), ("authority".to_owned(), authority)],
            _stop: stop.drop_guard(),
        }
    }
}

async fn answer(request: Request<Incoming>) -> Response<Full<Bytes>> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let sent: Value = serde_json::from_slice(&body).unwrap();
    let (code, answer) = reviewed(&sent);
    let mut response = Response::new(Full::from(answer));
    *response.status_mut() = code;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    response
}

/// The answer, with the error of the first object's name.
fn reviewed(sent: &Value) -> (StatusCode, String) {
    let request = &sent["request"];
    let objects = request["objects"].as_array().unwrap();
    let error = objects[0]["metadata"]["name"].as_str().unwrap();
    let wanted = &request["desiredAPIVersion"];
    let converted: Vec<Value> = objects.iter().map(|object| converted(object, wanted)).collect();
    let mut review = json!({"kind": sent["kind"], "apiVersion": sent["apiVersion"], "response": {
        "uid": request["uid"], "convertedObjects": converted, "result": {"status": "Success"}}});
    let mut first = review["response"]["convertedObjects"][0].take();
    let response = &mut review["response"];
    match error {
        "refused" => response["result"] = json!({"status": "Failed", "message": "no form for it"}),
        "refused-silently" => response["result"] = json!({"status": "Failed"}),
        "of-another-uid" => response["uid"] = "another".into(),
        "of-another-name" => first["metadata"]["name"] = "another".into(),
        "of-another-namespace" => first["metadata"]["namespace"] = "another".into(),
        "of-another-owner" => first["metadata"]["uid"] = "another".into(),
        "of-another-kind" => first["kind"] = "Other".into(),
        "unchanged" => first.clone_from(&objects[0]),
        "numbered" => first["metadata"]["labels"] = json!({"number": 1}),
        "listed" => first["metadata"]["annotations"] = json!(["a"]),
        "unanswered" => review["response"] = Value::Null,
        "down" => return (StatusCode::INTERNAL_SERVER_ERROR, "down".to_owned()),
        "unfound" => return (StatusCode::NOT_FOUND, "nothing".to_owned()),
        _ => {}
    }
    match error {
        "lost" => review["response"]["convertedObjects"] = json!([]),
        "doubled" => review["response"]["convertedObjects"] = json!([first, first]),
        "unanswered" => {}
        _ => review["response"]["convertedObjects"][0] = first,
    }
    (StatusCode::OK, review.to_string())
}

/// `spec.size` of v1 is `spec.width` of v2. It tries to change all of the metadata.
fn converted(object: &Value, wanted: &Value) -> Value {
    let mut converted = object.clone();
    converted["apiVersion"] = wanted.clone();
    let (from, to) = match wanted.as_str() {
        Some(version) if version.ends_with("/v2") => ("size", "width"),
        _ => ("width", "size"),
    };
    if let Some(spec) = converted["spec"].as_object_mut()
        && let Some(value) = spec.remove(from)
    {
        spec.insert(to.to_owned(), value);
    }
    let metadata = &mut converted["metadata"];
    metadata["labels"] = json!({"seen-in": to});
    metadata["generation"] = 77.into();
    metadata["finalizers"] = json!(["example.com/never"]);
    converted
}
