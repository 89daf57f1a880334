//! What clients should not send: requests with a part that is broken at random. Each is answered, with a reason and
//! never with the server's own failure, and nothing that was there is harmed.

use std::collections::BTreeMap;

use http_body_util::BodyExt;
use kube::client::Body;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::stage::{MODELS, Stage, manifest, model, send};

/// So many requests each time; `KINDEX_NONSENSE` makes them more, `KINDEX_SEED` others.
const REQUESTS: u64 = 600;
const SEED: u64 = 20_261_122;

/// Values that a field does not expect.
const ODD: &[&str] = &[
    "null",
    "true",
    "0",
    "-1",
    "1e400",
    "18446744073709551616",
    "\"\"",
    "\"\\u0000\"",
    "\"../../x\"",
    "[]",
    "{}",
    "[[[[]]]]",
    "{\"\":{}}",
    "\"2026-13-45T99:99:99Z\"",
    "\"\\ud800\"",
    "\"ＡＢＣ\"",
];
const TYPES: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
    "application/grpc",
    "text/plain",
    "",
    ";;;",
];
const PARAMETERS: &[&str] = &[
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "labelSelector",
    "fieldSelector",
    "timeoutSeconds",
    "dryRun",
    "fieldManager",
    "force",
    "fieldValidation",
    "includeDeleted",
    "at",
    "pretty",
    "propagationPolicy",
    "gracePeriodSeconds",
    "sendInitialEvents",
    "allowWatchBookmarks",
];
const VALUES: &[&str] = &[
    "",
    "0",
    "-1",
    "1",
    "99999999999999999999",
    "true",
    "All",
    "None",
    "a=b",
    "a in (b",
    "!",
    "==",
    "metadata.name=kept",
    "Exact",
    "Strict",
    "2026-01-01T00:00:00Z",
    "yesterday",
    "%00",
    "%ff%fe",
    "eyJ9",
    "Background",
    "x%20y",
];

/// What kube-apiserver refuses with the code of a failure of its own, and the embedded cluster therefore as well.
const REFUSED_AS_500: &[&str] = &[
    "resourceVersion should not be set on objects to be created",
    "strconv.ParseUint",
];

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// The text with some of its values replaced, or with some of its bytes.
fn broken(text: &str, random: &mut StdRng) -> Vec<u8> {
    let mut text = text.to_owned();
    for _ in 0..random.random_range(0..3) {
        let marks: Vec<usize> = text.match_indices(':').map(|(at, _)| at + 1).collect();
        let Some(&at) = marks.choose(random) else { break };
        let end = text[at..].find([',', '}']).map_or(text.len(), |end| at + end);
        text.replace_range(at..end, ODD.choose(random).unwrap());
    }
    let mut bytes = text.into_bytes();
    match random.random_range(0..4) {
        0 => bytes.truncate(random.random_range(0..=bytes.len())),
        1 if !bytes.is_empty() => {
            let at = random.random_range(0..bytes.len());
            bytes[at] = random.random();
        }
        2 => bytes.extend((0..random.random_range(0..40)).map(|_| random.random::<u8>())),
        _ => {}
    }
    bytes
}

fn request(random: &mut StdRng) -> http::Request<Body> {
    let name = ["kept", "stored", "absent", "NO_NAME", "%2e%2e", "a%00b"]
        .choose(random)
        .unwrap();
    let method = *["GET", "POST", "PUT", "PATCH", "DELETE"].choose(random).unwrap();
    let mut path = match (method, random.random_range(0..8)) {
        ("POST", _) => MODELS.to_owned(),
        (_, 0) => "/apis/michelangelo.api/v2/models".to_owned(),
        (_, 1) => format!("{}/status", model(name)),
        (_, 2) => format!("{}/scale", model(name)),
        ("GET", 3) => MODELS.to_owned(),
        // Whole collections are deleted elsewhere.
        _ => model(name),
    };
    if method == "DELETE" && !path.contains("absent") {
        path = model("absent");
    }
    let parameters = (0..random.random_range(0..4)).map(|_| {
        let name = PARAMETERS.choose(random).unwrap();
        format!("{name}={}", VALUES.choose(random).unwrap().replace(' ', "+"))
    });
    let query: Vec<String> = parameters.collect();
    let whole = manifest(
        json!({"name": name, "namespace": "default", "labels": {"a": "b"}, "resourceVersion": "1", "finalizers": ["x/y"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}),
        json!({"algorithm": "one", "description": "two"}),
    );
    let patch = json!([{"op": "replace", "path": "/spec/algorithm", "value": "x"}, {"op": "remove", "path": "/a"}]);
    let text = if random.random_bool(0.2) {
        patch.to_string()
    } else {
        whole.to_string()
    };
    let body = if method == "GET" {
        Vec::new()
    } else {
        broken(&text, random)
    };
    http::Request::builder()
        .method(method)
        .uri(format!("{path}?{}", query.join("&")))
        .header("content-type", *TYPES.choose(random).unwrap())
        .header(
            "accept",
            *["application/json", "application/yaml", "*/*", "image/png"]
                .choose(random)
                .unwrap(),
        )
        .body(Body::from(body))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_is_refused_and_harms_nothing() {
    let stage = Stage::on_sqlite().await;
    stage
        .create("kept", json!({"team": "x"}), json!({"algorithm": "one"}))
        .await;
    stage
        .create_archived("stored", json!({"team": "x"}), json!({"algorithm": "one"}))
        .await;
    let seed = setting("KINDEX_SEED", SEED);
    let mut random = StdRng::seed_from_u64(seed);
    let mut codes: BTreeMap<u16, u32> = BTreeMap::new();
    for number in 0..setting("KINDEX_NONSENSE", REQUESTS) {
        let request = request(&mut random);
        let shown = format!("{} {}", request.method(), request.uri());
        let response = stage
            .api
            .send(request)
            .await
            .unwrap_or_else(|error| panic!("{number} {shown}: {error}"));
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let answer = String::from_utf8_lossy(&body);
        assert!(
            (200..500).contains(&code) || REFUSED_AS_500.iter().any(|text| answer.contains(text)),
            "seed {seed}, {number}, {shown}: {code} {answer}"
        );
        *codes.entry(code).or_default() += 1;
    }
    for code in [200, 400, 404, 415, 422] {
        assert!(codes.contains_key(&code), "{code} is among {codes:?}");
    }
    for name in ["kept", "stored"] {
        let (code, object) = send(&stage.api, "GET", &model(name), &Value::Null).await;
        assert_eq!((code, &object["metadata"]["name"]), (200, &json!(name)), "{object}");
    }
    stage.end().await;
}
