//! The two faces of events. `events` of the core group and of `events.k8s.io` are the same stored objects with some
//! fields under other names.

use serde_json::{Map, Value};

/// `events.k8s.io/v1` name, core name.
const RENAMED: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// From `events.k8s.io/v1` to the core form, which is stored.
pub(crate) fn to_core(event: Value) -> Value {
    rename(event, "v1", |name| {
        RENAMED.iter().find(|(new, _)| *new == name).map(|(_, core)| *core)
    })
}

/// From the core form to `events.k8s.io/v1`.
pub(super) fn from_core(event: Value) -> Value {
    rename(event, "events.k8s.io/v1", |name| {
        RENAMED.iter().find(|(_, core)| *core == name).map(|(new, _)| *new)
    })
}

fn rename(event: Value, api_version: &str, new_name: impl Fn(&str) -> Option<&'static str>) -> Value {
    let Value::Object(fields) = event else {
        return event;
    };
    let mut renamed: Map<String, Value> = fields
        .into_iter()
        .map(|(name, value)| (new_name(&name).map_or(name, str::to_owned), value))
        .collect();
    renamed.insert("apiVersion".to_owned(), api_version.into());
    Value::Object(renamed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_comes_back_as_it_went() {
        let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "n", "regarding": {"name": "a"}, "type": "Normal"});
        let core = to_core(event.clone());
        assert_eq!(core["message"], "n");
        assert_eq!(core["involvedObject"]["name"], "a");
        assert_eq!(core["apiVersion"], "v1");
        assert_eq!(from_core(core), event);
    }
}
