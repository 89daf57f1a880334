//! The kinds that are there without a CustomResourceDefinition: each a YAML file beside this one, in the form of a
//! definition, and what its table shows beyond plain fields.

use serde_json::{Value, json};

use crate::definition;
use crate::resource::{Resource, ResourceType};

const DECLARED: [(ResourceType, &str); 10] = [
    (ResourceType::Namespace, include_str!("namespaces.yaml")),
    (ResourceType::Plain, include_str!("configmaps.yaml")),
    (ResourceType::Plain, include_str!("secrets.yaml")),
    (ResourceType::CoreEvent, include_str!("events.yaml")),
    (ResourceType::Event, include_str!("events.k8s.io.yaml")),
    (ResourceType::Plain, include_str!("leases.yaml")),
    (ResourceType::Definition, include_str!("customresourcedefinitions.yaml")),
    (ResourceType::Review, include_str!("selfsubjectaccessreviews.yaml")),
    (ResourceType::Review, include_str!("selfsubjectrulesreviews.yaml")),
    (ResourceType::Review, include_str!("selfsubjectreviews.yaml")),
];

/// Namespaces that exist from the start.
pub(crate) const FIRST_NAMESPACES: [&str; 2] = ["default", "kube-system"];

/// All built-in resources.
pub(crate) fn resources() -> Vec<Resource> {
    DECLARED
        .iter()
        .flat_map(|(resource_type, text)| {
            let declared: Value = serde_saphyr::from_str(text).expect("the built-in kinds are valid YAML");
            definition::resources(&declared, *resource_type, 0, None)
        })
        .map(|mut resource| {
            if resource.resource_type == ResourceType::Event {
                // Both faces of events are stored in one place.
                resource.storage = "events".into();
            }
            resource
        })
        .collect()
}

/// The object with a field `columns` for those table cells that no path can reach.
pub(crate) fn with_columns(resource: &Resource, object: &Value) -> Option<Value> {
    let columns = match resource.resource_type {
        ResourceType::Custom | ResourceType::Definition | ResourceType::Namespace | ResourceType::Review => {
            return None;
        }
        ResourceType::Plain => {
            let count = |field: &str| object[field].as_object().map_or(0, serde_json::Map::len);
            json!({"data": count("data") + count("binaryData")})
        }
        ResourceType::CoreEvent => event_columns(
            object,
            "involvedObject",
            "firstTimestamp",
            "lastTimestamp",
            "count",
            "source",
        ),
        ResourceType::Event => event_columns(
            object,
            "regarding",
            "deprecatedFirstTimestamp",
            "deprecatedLastTimestamp",
            "deprecatedCount",
            "deprecatedSource",
        ),
    };
    let mut object = object.clone();
    object["columns"] = columns;
    Some(object)
}

fn event_columns(event: &Value, about: &str, first: &str, last: &str, count: &str, source: &str) -> Value {
    let present = |value: &Value| {
        if value.is_null() { None } else { Some(value.clone()) }
    };
    let about = &event[about];
    let object = format!(
        "{}/{}",
        about["kind"].as_str().unwrap_or_default().to_lowercase(),
        about["name"].as_str().unwrap_or_default()
    );
    let first_seen = present(&event[first]).or_else(|| present(&event["eventTime"]));
    let last_seen = present(&event["series"]["lastObservedTime"])
        .or_else(|| present(&event[last]))
        .or_else(|| first_seen.clone())
        .or_else(|| present(&event["metadata"]["creationTimestamp"]));
    let times = present(&event["series"]["count"])
        .or_else(|| present(&event[count]))
        .unwrap_or(json!(1));
    let parts = [&event[source]["component"], &event[source]["host"]];
    let source: Vec<_> = parts
        .into_iter()
        .filter_map(Value::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    json!({"object": object, "firstSeen": first_seen, "lastSeen": last_seen, "count": times, "source": source.join(", ")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_kind_has_a_structural_schema() {
        let resources = resources();
        assert_eq!(resources.len(), DECLARED.len());
        for resource in &resources {
            let parsed = kindex_kube_api::schema::Structural::parse(&resource.declared_schema);
            assert!(parsed.is_ok(), "{}: {:?}", resource.names.kind, parsed.err());
        }
    }

    #[test]
    fn an_event_was_last_seen_when_its_series_was() {
        let event = json!({"involvedObject": {"kind": "Widget", "name": "a"}, "eventTime": "t1",
            "series": {"count": 4, "lastObservedTime": "t2"}, "source": {"component": "c"}});
        let columns = event_columns(
            &event,
            "involvedObject",
            "firstTimestamp",
            "lastTimestamp",
            "count",
            "source",
        );
        assert_eq!(
            columns,
            json!({"object": "widget/a", "firstSeen": "t1", "lastSeen": "t2", "count": 4, "source": "c"})
        );
    }
}
