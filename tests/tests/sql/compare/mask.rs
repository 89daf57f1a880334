//! Takes out of an answer what two servers cannot have in common: uids, times, versions, addresses, tokens, and the
//! order of what different managers own, which depends on the second in which they wrote, and of several complaints
//! about one object, which the API server finds in the order of a hash table.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::server::Answer;

/// Fields that hold such a value, whatever it is.
const FIELDS: &[&str] = &[
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "time",
    "lastTransitionTime",
    "continue",
];

/// What stands at a path that nobody serves.
const NO_PAGE: &str = "404 page not found";

static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        // First, as one may look like an age: 24h5s.
        (r"(?i)\b(generated[-_])[a-z0-9]{5}\b", "${1}SUFFIX"),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z", "TIME"),
        (
            r"(?i)(resource ?version: +)\d+( \(\d+\))?(, current: \d+)?",
            "${1}VERSION",
        ),
        (r"(ResourceVersion in (?:the precondition|record) \()\d+", "${1}VERSION"),
        // At the end of a line of kubectl, or before the next column.
        (r"(?m)\b\d+[smh](\d+s)?$", "AGE"),
        (r"\b\d+[smh](\d+s)? {3,}", "AGE   "),
    ]
    .into_iter()
    .map(|(pattern, mask)| (Regex::new(pattern).expect("a pattern"), mask))
    .collect()
});

/// The answer without what differs by nature.
pub(super) fn masked(answer: &Answer, address: &str, saved: &[(String, String)]) -> Answer {
    let masks = Masks { address, saved };
    Answer {
        code: answer.code,
        content_type: answer.content_type.clone(),
        warnings: answer.warnings.iter().map(|warning| masks.warning(warning)).collect(),
        body: masks.value(&answer.body),
    }
}

struct Masks<'a> {
    address: &'a str,
    saved: &'a [(String, String)],
}

impl Masks<'_> {
    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::from(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => fields.iter().map(|(name, field)| self.field(name, field)).collect(),
            other => other.clone(),
        }
    }

    fn field(&self, name: &str, value: &Value) -> (String, Value) {
        let masked = match value {
            Value::String(text) if FIELDS.contains(&name) && !text.is_empty() => Value::from("MASKED"),
            // Complaints, and the resources of a group, are told in the order of a hash table.
            Value::Array(items) if matches!(name, "causes" | "resources") => {
                let mut items: Vec<Value> = items.iter().map(|item| self.value(item)).collect();
                items.sort_by_key(|item| (item["name"].to_string(), item.to_string()));
                Value::from(items)
            }
            // Several complaints are compared as causes.
            Value::String(text) if name == "message" && text.contains(" is invalid: [") => Value::from("SEVERAL"),
            Value::Array(entries) if name == "managedFields" => {
                let mut entries: Vec<Value> = entries.iter().map(|entry| self.value(entry)).collect();
                entries.sort_by_key(|entry| ["manager", "operation", "subresource"].map(|key| entry[key].to_string()));
                Value::from(entries)
            }
            other => self.value(other),
        };
        (self.text(name), masked)
    }

    /// A warning begins with its code, and may be about a version of the same number.
    fn warning(&self, warning: &str) -> String {
        match warning.split_once(' ') {
            Some((code, text)) => format!("{code} {}", self.text(text)),
            None => self.text(warning),
        }
    }

    fn text(&self, text: &str) -> String {
        // So does this answer.
        if text.trim_end() == NO_PAGE {
            return text.to_owned();
        }
        let text = text.replace(self.address, "ADDRESS");
        // Short numbers stand in too many places to be taken for a version.
        let is_version = |value: &str| value.len() > 2 && value.bytes().all(|byte| byte.is_ascii_digit());
        let known = self.saved.iter().filter(|(_, value)| is_version(value));
        let text = known.fold(text, |text, (_, value)| {
            let word = Regex::new(&format!(r"\b{value}\b")).expect("digits");
            word.replace_all(&text, "VERSION").into_owned()
        });
        PATTERNS.iter().fold(text, |text, (pattern, mask)| {
            pattern.replace_all(&text, *mask).into_owned()
        })
    }
}

/// As if the code of a warning, or of an answer, were a version where an object has that one.
#[test]
fn a_code_is_no_version() {
    let saved = ["299", "404"].map(|version| ("version".to_owned(), version.to_owned()));
    let masks = Masks {
        address: "http://cluster",
        saved: &saved,
    };
    assert_eq!(
        masks.warning("299 - \"version 299 of http://cluster\""),
        "299 - \"version VERSION of ADDRESS\""
    );
    assert_eq!(masks.text("404 page not found\n"), "404 page not found\n");
    assert_eq!(masks.text("page 404 of objects"), "page VERSION of objects");
}

/// As if one name in some thousands were masked otherwise.
#[test]
fn a_generated_name_is_masked_whatever_it_looks_like() {
    let masks = Masks {
        address: "http://cluster",
        saved: &[],
    };
    for suffix in ["x7k2q", "24h5s", "2456h", "98765"] {
        assert_eq!(masks.text(&format!("generated-{suffix}")), "generated-SUFFIX");
    }
}
