//! `metadata`: the rules for names, labels, annotations, finalizers and owners.

use kindex_kube_api::status::FieldProblem;
use kindex_kube_api::{meta, names};
use serde_json::Value;

use crate::resource::{Resource, ResourceType};

/// Keys and values of all annotations together.
const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;

/// Everything that is wrong with the metadata of an object that is about to be stored.
pub(super) fn problems(resource: &Resource, object: &Value) -> Vec<FieldProblem> {
    let mut found = Vec::new();
    check_name(resource, object, &mut found);
    for (key, value) in pairs(object, "labels") {
        for problem in names::qualified_name_problems(key) {
            found.push(FieldProblem::invalid("metadata.labels", key, &problem));
        }
        for problem in names::label_value_problems(value) {
            found.push(FieldProblem::invalid("metadata.labels", value, &problem));
        }
    }
    let mut bytes = 0;
    for (key, value) in pairs(object, "annotations") {
        bytes += key.len() + value.len();
        for problem in names::qualified_name_problems(&key.to_lowercase()) {
            found.push(FieldProblem::invalid("metadata.annotations", key, &problem));
        }
    }
    if bytes > ANNOTATIONS_MAX_BYTES {
        found.push(FieldProblem::too_long("metadata.annotations", ANNOTATIONS_MAX_BYTES));
    }
    for finalizer in meta::finalizers(object) {
        for problem in names::qualified_name_problems(finalizer) {
            found.push(FieldProblem::invalid("metadata.finalizers", finalizer, &problem));
        }
    }
    check_owners(object, &mut found);
    found
}

fn pairs<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let fields = object["metadata"][field].as_object();
    fields
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

fn check_name(resource: &Resource, object: &Value, found: &mut Vec<FieldProblem>) {
    let rule = match resource.resource_type {
        ResourceType::Namespace => names::dns_label_problem,
        ResourceType::Custom
        | ResourceType::Definition
        | ResourceType::CoreEvent
        | ResourceType::Event
        | ResourceType::Plain
        | ResourceType::Review => names::subdomain_problem,
    };
    let base = object["metadata"]["generateName"].as_str().unwrap_or_default();
    // Something follows, so that a dash at its end does not matter.
    if let Some(problem) = rule(base.strip_suffix('-').unwrap_or(base)).filter(|_| !base.is_empty()) {
        found.push(FieldProblem::invalid("metadata.generateName", base, &problem));
    }
    let name = meta::name(object);
    if name.is_empty() {
        found.push(FieldProblem::required(
            "metadata.name",
            "name or generateName is required",
        ));
        return;
    }
    if let Some(problem) = rule(name) {
        found.push(FieldProblem::invalid("metadata.name", name, &problem));
    }
}

fn check_owners(object: &Value, found: &mut Vec<FieldProblem>) {
    let mut controllers = Vec::new();
    let owners = &object["metadata"]["ownerReferences"];
    for owner in owners.as_array().into_iter().flatten() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().unwrap_or_default().is_empty() {
                let rule = match field {
                    "apiVersion" => "version must not be empty",
                    _ => "must not be empty",
                };
                found.push(FieldProblem::invalid(
                    format!("metadata.ownerReferences.{field}"),
                    "",
                    rule,
                ));
            }
        }
        if owner["controller"] == true {
            let text = |field: &str| owner[field].as_str().unwrap_or_default();
            controllers.push(format!("{}/{}", text("kind"), text("name")));
        }
    }
    if let [first, second, ..] = controllers.as_slice() {
        let rule = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}"
        );
        let shown = owners.to_string();
        found.push(FieldProblem::invalid_number("metadata.ownerReferences", &shown, &rule));
    }
}

/// What a client should be told about finalizers that may clash with those of others.
pub(crate) fn warnings(resource: &Resource, object: &Value) -> Vec<String> {
    if resource.resource_type != ResourceType::Custom {
        return Vec::new();
    }
    let standard = ["foregroundDeletion", "orphan", "kubernetes"];
    meta::finalizers(object)
        .into_iter()
        .filter(|finalizer| !finalizer.contains('/') && !standard.contains(finalizer))
        .map(|finalizer| {
            format!(
                "metadata.finalizers: \"{finalizer}\": prefer a domain-qualified finalizer name to avoid accidental \
                 conflicts with other finalizer writers"
            )
        })
        .collect()
}
