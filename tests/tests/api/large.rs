//! Selectors and conditions as large as SQL takes them, and one part more: the first are answered, the second are
//! refused as the caller's error, with the limit and with what to do instead. In both protocols, on each engine.

use std::fmt::Write as _;

use kindex_generated::kinds::model;
use serde_json::{Value, json};
use tonic::Code;

use super::grpc::client::Client;
use super::stage::{MODELS, Stage, send};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_much_for_sql_is_refused_with_its_limit_on_sqlite() {
    refused_with_limits(Stage::on_sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_much_for_sql_is_refused_with_its_limit_on_mariadb() {
    if let Some(stage) = Stage::on_mariadb().await {
        refused_with_limits(stage).await;
    }
}

/// A selector of a part with its number, so often.
fn parts(count: usize, part: &str) -> String {
    let parts: Vec<String> = (0..count).map(|at| part.replace('#', &at.to_string())).collect();
    parts.join(",")
}

/// The parameter of a list in REST, and the option of the same meaning in gRPC; the most of it, and the message for
/// more.
struct Limit {
    parameter: &'static str,
    option: &'static str,
    text: fn(usize) -> String,
    most: usize,
    expected: [&'static str; 2],
}

const SELECTORS: [Limit; 3] = [
    Limit {
        parameter: "labelSelector",
        option: "labelSelector",
        text: |count| parts(count, "k#=v"),
        most: 100,
        expected: ["at most 100 requirements", "`in (…)`, or split it into several"],
    },
    Limit {
        parameter: "labelSelector",
        option: "labelSelector",
        text: |count| format!("k in ({})", parts(count, "v#")),
        most: 2000,
        expected: ["at most 2000 values", "split it into several"],
    },
    Limit {
        parameter: "fieldSelector",
        option: "fieldSelector",
        text: |count| parts(count, "metadata.name!=a#"),
        most: 500,
        expected: ["at most 500 comparisons", "by IN, or split it into several"],
    },
];

/// What the cluster itself takes: its own limits are others.
const OF_THE_CLUSTER: usize = 1000;

async fn refused_with_limits(stage: Stage) {
    let client = Client::plain(stage.address).await;
    for limit in &SELECTORS {
        for count in [limit.most, limit.most + 1] {
            let text = (limit.text)(count);
            let (code, answer) = list(&stage, limit.parameter, &text).await;
            let options = json!({"listOptions": {limit.option: text}});
            let called = client.call(&model::KIND, "List*", options).await;
            if count > limit.most {
                assert_eq!((code, &answer["reason"]), (400, &json!("BadRequest")), "{answer}");
                let refused = called.unwrap_err();
                assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
                for message in [answer["message"].as_str().unwrap(), refused.message()] {
                    assert!(limit.expected.iter().all(|part| message.contains(part)), "{message}");
                }
            } else if count <= OF_THE_CLUSTER {
                assert_eq!(code, 200, "{answer}");
                called.unwrap();
            }
        }
    }
    conditions(&client).await;
    stage.end().await;
}

/// Conditions on columns are gRPC's alone.
async fn conditions(client: &Client) {
    let text = |text: &str| json!({"@type": "type.googleapis.com/google.protobuf.StringValue", "value": text});
    let comparisons = |count: usize| {
        let one = |at: usize| json!({"fieldName": "metadata.name", "operator": 2, "matchValue": text(&at.to_string())});
        json!({"criterion": (0..count).map(one).collect::<Vec<_>>()})
    };
    let values = |count: usize| {
        let values: Vec<String> = (0..count).map(|at| at.to_string()).collect();
        let list = json!({"@type": "type.googleapis.com/google.protobuf.ListValue", "value": values});
        json!({"criterion": [{"fieldName": "metadata.name", "operator": 7, "matchValue": list}]})
    };
    for (most, operation, message) in [
        (500, &comparisons as &dyn Fn(usize) -> Value, "at most 500 comparisons"),
        (2000, &values as &dyn Fn(usize) -> Value, "at most 2000 values"),
    ] {
        for count in [most, most + 1] {
            let request = json!({"namespace": "default", "listOptionsExt": {"operation": operation(count)}});
            let called = client.call(&model::KIND, "List*", request).await;
            match called {
                Ok(_) => assert_eq!(count, most),
                Err(refused) => {
                    assert_eq!(
                        (count, refused.code()),
                        (most + 1, Code::InvalidArgument),
                        "{refused:?}"
                    );
                    let parts = [message, "split it into several"];
                    assert!(parts.iter().all(|part| refused.message().contains(part)), "{refused:?}");
                }
            }
        }
    }
}

async fn list(stage: &Stage, parameter: &str, text: &str) -> (u16, Value) {
    let mut encoded = String::new();
    for byte in text.bytes() {
        write!(encoded, "%{byte:02x}").unwrap();
    }
    send(
        &stage.api,
        "GET",
        &format!("{MODELS}?{parameter}={encoded}"),
        &Value::Null,
    )
    .await
}
