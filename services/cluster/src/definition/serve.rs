//! From a definition to the resources it defines, one for each served version.

use std::sync::Arc;

use kindex_kube_api::schema::Structural;
use kindex_kube_api::scope::Scope;
use kindex_kube_api::table::PrinterColumn;
use kindex_kube_api::{condition, meta};
use serde::Deserialize;
use serde_json::Value;

use crate::resource::{
    Conversion, Convert, Names, Resource, ResourceType, join_group, storage_api_version, storage_name,
};

/// The condition that the names were all granted once.
pub(super) const ESTABLISHED: &str = "Established";

/// The versions that a definition declares.
pub(super) fn versions(definition: &Value) -> impl Iterator<Item = &Value> {
    definition["spec"]["versions"].as_array().into_iter().flatten()
}

/// Whether the definition's names were ever all granted, so that its resources are served.
pub(crate) fn is_established(definition: &Value) -> bool {
    condition::is_true(&definition["status"]["conditions"], ESTABLISHED)
}

/// The resources of a definition that has been checked; `since` is the definition's resource version.
pub(crate) fn resources(
    definition: &Value,
    resource_type: ResourceType,
    since: u64,
    converter: Option<&Arc<dyn Convert>>,
) -> Vec<Resource> {
    let spec = &definition["spec"];
    let names = definition["status"].get("acceptedNames").unwrap_or(&spec["names"]);
    let names = Names::deserialize(names).unwrap_or_default();
    let group = spec["group"].as_str().unwrap_or_default();
    let storage_version = versions(definition)
        .find(|version| version["storage"] == true)
        .map(|v| v["name"].clone());
    let serves_storage_version =
        versions(definition).any(|version| version["storage"] == true && version["served"] == true);
    let storage_version = storage_version.as_ref().and_then(Value::as_str).unwrap_or_default();
    let storage: Arc<str> = storage_name(group, &names.plural).into();
    let conversion = Conversion::of(definition, converter);
    versions(definition)
        .filter(|version| version["served"] == true)
        .map(|version| {
            let name = version["name"].as_str().unwrap_or_default();
            Resource {
                group: group.to_owned(),
                version: name.to_owned(),
                api_version: join_group(group, name),
                names: names.clone(),
                namespaced: spec["scope"] == Scope::Namespaced.as_str(),
                resource_type,
                has_status: !version["subresources"]["status"].is_null(),
                schema: version
                    .pointer("/schema/openAPIV3Schema")
                    .and_then(|schema| Structural::parse(schema).ok()),
                declared_schema: version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default(),
                columns: columns(version),
                selectable: selectable(version),
                storage: Arc::clone(&storage),
                storage_version: storage_version.to_owned(),
                storage_api_version: storage_api_version(resource_type, group, storage_version),
                serves_storage_version,
                conversion: conversion.clone(),
                since,
                terminating: meta::is_deleting(definition),
                deprecation: deprecation(version, group, &names.kind),
            }
        })
        .collect()
}

/// The declared columns, or the creation time where none are declared.
fn columns(version: &Value) -> Vec<PrinterColumn> {
    let declared = version["additionalPrinterColumns"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let mut columns: Vec<_> = declared
        .iter()
        .filter_map(|column| PrinterColumn::deserialize(column).ok())
        .collect();
    if columns.is_empty() {
        columns.push(PrinterColumn::age());
    }
    columns
}

fn selectable(version: &Value) -> Vec<String> {
    let declared = version["selectableFields"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let paths = declared.iter().filter_map(|field| field["jsonPath"].as_str());
    paths.map(|path| path.trim_start_matches('.').to_owned()).collect()
}

fn deprecation(version: &Value, group: &str, kind: &str) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    let name = version["name"].as_str().unwrap_or_default();
    let said = version["deprecationWarning"].as_str().map(str::to_owned);
    Some(said.unwrap_or_else(|| format!("{group}/{name} {kind} is deprecated")))
}
