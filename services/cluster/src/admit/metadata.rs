//! `metadata`: the rules for names of resources, beside those that hold for all objects.

use kindex_kube_api::status::FieldProblem;
use kindex_kube_api::validation::metadata_problems;
use kindex_kube_api::{meta, names};
use serde_json::Value;

use crate::resource::{Resource, ResourceType};

/// Everything that is wrong with the metadata of an object that is about to be stored.
pub(super) fn problems(resource: &Resource, object: &Value) -> Vec<FieldProblem> {
    let mut found = Vec::new();
    check_name(resource, object, &mut found);
    found.extend(metadata_problems(object));
    found
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
