//! What is particular to a built-in kind when it is written.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kindex_kube_api::meta;
use serde_json::{Value, json};

use crate::resource::{Resource, ResourceType};

/// Keeps a namespace until its content is gone.
const NAMESPACE_FINALIZER: &str = "kubernetes";

/// `stringData` of a secret is a way of writing `data`.
pub(super) fn unfold_secret(resource: &Resource, object: &mut Value) {
    if resource.names.kind != "Secret" {
        return;
    }
    let Some(Value::Object(texts)) = object.as_object_mut().and_then(|fields| fields.remove("stringData")) else {
        return;
    };
    if !object["data"].is_object() {
        object["data"] = json!({});
    }
    for (key, text) in texts {
        object["data"][key] = STANDARD.encode(text.as_str().unwrap_or_default()).into();
    }
}

/// What creation adds to an object of its kind.
pub(super) fn prepare_created(resource: &Resource, object: &mut Value) {
    match resource.resource_type {
        ResourceType::Namespace => {
            let name = meta::name(object).to_owned();
            if !object["metadata"]["labels"].is_object() {
                object["metadata"]["labels"] = json!({});
            }
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name.into();
            object["spec"] = json!({"finalizers": [NAMESPACE_FINALIZER]});
            object["status"] = json!({"phase": "Active"});
        }
        ResourceType::Definition => {
            crate::definition::apply_defaults(object);
            crate::definition::record_stored_version(object);
        }
        ResourceType::Custom
        | ResourceType::CoreEvent
        | ResourceType::Event
        | ResourceType::Plain
        | ResourceType::Review => {}
    }
}

/// What an update adds to an object of its kind.
pub(super) fn prepare_updated(resource: &Resource, before: &Value, object: &mut Value) {
    match resource.resource_type {
        // The finalizers of a namespace change through /finalize alone.
        ResourceType::Namespace => copy(before, object, "spec"),
        ResourceType::Definition => {
            crate::definition::apply_defaults(object);
            crate::definition::record_stored_version(object);
        }
        ResourceType::Custom
        | ResourceType::CoreEvent
        | ResourceType::Event
        | ResourceType::Plain
        | ResourceType::Review => {}
    }
}

/// Gives `object` the field of `before`, or takes it away where `before` has none.
pub(super) fn copy(before: &Value, object: &mut Value, field: &str) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    match before.get(field) {
        Some(value) => fields.insert(field.to_owned(), value.clone()),
        None => fields.remove(field),
    };
}

/// Marks an object as being deleted, as its kind requires. The generation counts the mark as a change.
pub(crate) fn mark_deleting(resource: &Resource, object: &mut Value, now: Timestamp) {
    let now = meta::time(now);
    meta::set(object, "deletionTimestamp", Some(now.clone().into()));
    if resource.resource_type != ResourceType::Namespace && resource.resource_type != ResourceType::Definition {
        meta::set(object, "deletionGracePeriodSeconds", Some(0.into()));
    }
    if let Some(generation) = object["metadata"]["generation"].as_u64()
        && resource.resource_type != ResourceType::Definition
    {
        meta::set(object, "generation", Some((generation + 1).into()));
    }
    match resource.resource_type {
        ResourceType::Namespace => object["status"]["phase"] = "Terminating".into(),
        ResourceType::Definition => {
            meta::add_finalizer(object, crate::definition::CLEANUP_FINALIZER);
            crate::definition::mark_terminating(object, &now);
        }
        ResourceType::Custom
        | ResourceType::CoreEvent
        | ResourceType::Event
        | ResourceType::Plain
        | ResourceType::Review => {}
    }
}

/// Whether nothing keeps an object that is being deleted.
pub(crate) fn is_released(resource: &Resource, object: &Value) -> bool {
    let held = match resource.resource_type {
        ResourceType::Namespace => object["spec"]["finalizers"]
            .as_array()
            .is_some_and(|finalizers| !finalizers.is_empty()),
        ResourceType::Custom
        | ResourceType::Definition
        | ResourceType::CoreEvent
        | ResourceType::Event
        | ResourceType::Plain
        | ResourceType::Review => false,
    };
    !held && meta::finalizers(object).is_empty()
}
