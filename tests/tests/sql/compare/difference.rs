//! Where two answers differ, by path: `type`, `warnings`, and `body/…` with `*` for the places of a list. Where one
//! request has two codes, `code` stands for the whole answer.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::server::Answer;

/// What the two servers say at a path: the embedded cluster, then the kube-apiserver.
pub(super) type Differences = BTreeMap<String, (Value, Value)>;

/// Every path at which the answers differ, with the first pair of values that was met there.
pub(super) fn between(ours: &Answer, theirs: &Answer) -> Differences {
    let mut found = Differences::new();
    if ours.code != theirs.code {
        let short = |answer: &Answer| json!([answer.code, answer.body.get("message").unwrap_or(&answer.body)]);
        found.insert("code".to_owned(), (short(ours), short(theirs)));
        return found;
    }
    let parts = |answer: &Answer| {
        [
            ("type", json!(answer.content_type)),
            ("warnings", json!(answer.warnings)),
        ]
    };
    for ((name, ours), (_, theirs)) in parts(ours).into_iter().zip(parts(theirs)) {
        if ours != theirs {
            found.insert(name.to_owned(), (ours, theirs));
        }
    }
    compare("body", &ours.body, &theirs.body, &mut found);
    found
}

fn compare(path: &str, ours: &Value, theirs: &Value, found: &mut Differences) {
    match (ours, theirs) {
        (Value::Object(left), Value::Object(right)) => {
            let names = left.keys().chain(right.keys().filter(|name| !left.contains_key(*name)));
            for name in names {
                let path = format!("{path}/{}", name.replace('/', "~1"));
                let of = |side: &serde_json::Map<String, Value>| side.get(name).cloned().unwrap_or(json!("(absent)"));
                compare(&path, &of(left), &of(right), found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (ours, theirs) in left.iter().zip(right) {
                compare(&format!("{path}/*"), ours, theirs, found);
            }
        }
        _ if ours == theirs => {}
        _ => {
            found
                .entry(path.to_owned())
                .or_insert_with(|| (ours.clone(), theirs.clone()));
        }
    }
}
