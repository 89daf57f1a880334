//! Requests of the tests, and what they wait for.

use http_body_util::BodyExt;
use kindex_harness::wait::eventually;
use kindex_model::kind::Kind;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

/// Creates the definitions of these kinds, with this `clientConfig` where there is one, and waits until these are
/// served.
pub(super) async fn install(client: &Client, kinds: &[&'static Kind], webhook: &Value) {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for kind in kinds {
        let mut manifest: Value = serde_saphyr::from_str(kind.manifest).unwrap();
        if !webhook.is_null() {
            manifest["spec"]["conversion"]["webhook"]["clientConfig"] = webhook.clone();
        }
        let (code, answer) = send(client, "POST", definitions, &manifest).await;
        assert_eq!(code, 201, "{answer}");
        let objects = format!("/apis/{}/{}/{}", kind.group, kind.version, kind.plural);
        eventually("served", async || {
            send(client, "GET", &objects, &Value::Null).await.0 == 200
        })
        .await;
    }
}

/// One request with a JSON body, or none; code and body of the answer.
pub(super) async fn send(client: &Client, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let media = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let text = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    send_with(client, method, path, &[("content-type", media)], text).await
}

/// One request with these headers.
pub(super) async fn send_with(
    client: &Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: String,
) -> (u16, Value) {
    let mut request = http::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body.into_bytes())).unwrap();
    let response = client.send(request).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let value = serde_json::from_slice(&body);
    (
        code,
        value.unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into()),
    )
}
