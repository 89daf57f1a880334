//! Label selectors and field selectors, as a request's query has them.

use super::{Budget, each_seed, size};
use crate::request::Query;
use crate::selector::{FieldSelector, LabelSelector, field_text};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

const RUNS: u64 = 500;
/// A term of two letters is a key and a set with a value.
const READING: Budget = Budget {
    held: 40,
    allocated: 200,
};
/// An object is looked at as it is: what a comparison of it makes is nothing but names of fields.
const MATCHING: Budget = Budget { held: 1, allocated: 20 };

/// Terms, and parts of them in the wrong places.
fn selector(random: &mut StdRng, bytes: usize, words: &[&str]) -> String {
    let mut text = String::new();
    let repeated = random.random_bool(0.5).then(|| *words.choose(random).expect("some"));
    while text.len() < bytes {
        text.push_str(repeated.unwrap_or_else(|| words.choose(random).expect("some")));
        if random.random_bool(0.9) {
            text.push(',');
        }
    }
    text.trim_end_matches(',').to_owned()
}

const LABELS: &[&str] = &[
    "a",
    "!a",
    "a=b",
    "a!=b",
    "a in (b,c)",
    "a notin (b)",
    "a>1",
    "a<1",
    "(",
    ")",
    "in",
    "!",
    "=",
    "a=",
    "é",
    "a in (,,,,,)",
];
const FIELDS: &[&str] = &[
    "metadata.name=a",
    "spec.x!=b",
    "spec.x==c",
    "a",
    "=",
    "!=",
    "\\",
    "spec.x=\\,",
    "spec.x=\\=",
    "é=é",
    "spec.x!=",
];

/// An object whose fields and labels are as large as objects are.
fn large() -> Value {
    let labels = (0..1000)
        .map(|at| (format!("l{at}"), json!("x")))
        .collect::<serde_json::Map<_, _>>();
    json!({"metadata": {"name": "x".repeat(200_000), "labels": labels}, "spec": {"x": "y".repeat(500_000)}})
}

#[test]
fn no_generated_selector_costs_more_than_its_bytes_are_worth() {
    let (object, mut matched) = (large(), 0);
    each_seed(RUNS, |what, random| {
        let (labels_bytes, fields_bytes) = (size(random), size(random));
        let labels = selector(random, labels_bytes, LABELS);
        let fields = selector(random, fields_bytes, FIELDS);
        let bytes = labels.len() + fields.len();
        let parsed = READING.check(what, bytes, || {
            let text = format!("labelSelector={}&fieldSelector={}", encoded(&labels), encoded(&fields));
            let _whole = Query::parse(&text).list();
            (LabelSelector::parse(&labels), FieldSelector::parse(&fields))
        });
        MATCHING.check(what, bytes, || {
            if let Ok(labels) = &parsed.0 {
                labels.matches_json(&object["metadata"]["labels"]);
                matched += 1;
            }
            if let Ok(fields) = &parsed.1 {
                fields.matches(|field| field_text(&object, field));
                matched += 1;
            }
        });
    });
    assert!(matched > RUNS / 10, "{matched} selectors of {RUNS} requests were read");
}

#[test]
fn a_thousand_looks_at_a_large_field_copy_nothing_of_it() {
    let object = large();
    let text = vec!["spec.x!=b"; 1000].join(",");
    let fields = FieldSelector::parse(&text).expect("a selector");
    let is_selected = MATCHING.check("a thousand terms", text.len(), || {
        fields.matches(|field| field_text(&object, field))
    });
    assert!(is_selected, "all terms were looked at");
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}
