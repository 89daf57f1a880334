//! CustomResourceDefinition manifests. The schema of a kind's objects comes from `schema`; this file knows the
//! manifest around it. A kind whose CRD others own gets none: a partial schema over theirs would prune their fields.

mod conversion;
mod description;
mod json_schema;
mod schema;

use serde::Serialize;

use self::conversion::Conversion;
use self::json_schema::JsonSchema;
use self::schema::Messages;
use crate::artifact::{Artifacts, HEADER, RelativePath};
use crate::model::{Kind, Model, Path, PrinterColumn, Shape};

/// The most selectable fields of a version.
const SELECTABLE_FIELDS_MAX: usize = 8;

/// Where the manifest of a kind lies, if it has one.
pub(super) fn path(kind: &Kind) -> Option<RelativePath> {
    match kind.shape {
        Shape::Message | Shape::Inline(_) => {
            // Whoever installs the definitions of the folder installs none that no cluster has.
            let folder = if kind.cluster { "crds" } else { "sql_only" };
            Some(RelativePath::new(format!("schema/{folder}/{}.yaml", kind.plural)))
        }
        Shape::Crd { .. } => None,
    }
}

/// One manifest for each kind whose definition is Kindex's, of which a cluster gets those in `schema/crds`.
pub(super) fn emit(model: &Model) -> Artifacts {
    let manifest = |kind| Some((path(kind)?, manifest(model, kind)));
    model.kinds.iter().filter_map(manifest).collect()
}

fn manifest(model: &Model, kind: &Kind) -> String {
    let definition = CustomResourceDefinition {
        api_version: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        metadata: Metadata { name: kind.crd_name() },
        spec: Spec {
            conversion: conversion::of(kind),
            group: kind.group.as_str(),
            names: names(kind),
            scope: kind.scope.as_str(),
            versions: versions(model, kind),
        },
    };
    let yaml = serde_saphyr::to_string(&definition).expect("a manifest holds only text and numbers");
    let purpose = match kind.cluster {
        true => "",
        false => "# For the API server alone, which keeps the objects in SQL: no cluster needs this definition.\n",
    };
    format!("# {HEADER}\n{purpose}{yaml}")
}

fn names(kind: &Kind) -> Names<'_> {
    Names {
        categories: &kind.categories,
        kind: kind.name.as_str(),
        list_kind: &kind.list_kind,
        plural: &kind.plural,
        short_names: &kind.short_names,
        singular: &kind.singular,
    }
}

/// The kind's own version first.
fn versions<'a>(model: &Model, kind: &'a Kind) -> Vec<CrdVersion<'a>> {
    let own = CrdVersion {
        name: kind.version.as_str(),
        storage: kind.version == kind.storage,
        ..shaped(model, kind, Messages::of(kind), &kind.printer_columns, Some)
    };
    let others = kind.versions.iter().map(|version| {
        let messages = Messages::of_version(version);
        let here = |path| version.here(&path);
        CrdVersion {
            name: version.name.as_str(),
            deprecated: version.deprecated.is_some(),
            deprecation_warning: version.deprecated.as_deref(),
            served: version.served,
            storage: version.name == kind.storage,
            ..shaped(model, kind, messages, &version.printer_columns, here)
        }
    });
    std::iter::once(own).chain(others).collect()
}

/// What follows from the shape of a version. `here` says where it has what the kind's own version has at a path.
fn shaped<'a>(
    model: &Model,
    kind: &Kind,
    messages: Messages<'_>,
    columns: &'a [PrinterColumn],
    here: impl Fn(Path) -> Option<Path>,
) -> CrdVersion<'a> {
    let root = schema::root(model, messages, &description::of(model, kind));
    CrdVersion {
        additional_printer_columns: columns.iter().map(printer_column).collect(),
        deprecated: false,
        deprecation_warning: None,
        name: "",
        selectable_fields: selectable_fields(kind, &root, here),
        schema: Validation {
            open_api_v3_schema: root,
        },
        served: true,
        storage: false,
        subresources: messages.has_status().then_some(Subresources { status: Empty {} }),
    }
}

/// The fields by which field selectors may select: those of the declared keys, in their order, as far as Kubernetes
/// lets them be selected by.
/// <https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/>
fn selectable_fields(kind: &Kind, root: &JsonSchema, here: impl Fn(Path) -> Option<Path>) -> Vec<SelectableField> {
    let mut fields: Vec<SelectableField> = Vec::new();
    let columns = kind.keys.iter().flat_map(|key| &key.columns);
    let columns = columns.filter_map(|name| kind.column(name));
    for path in columns.filter_map(|column| here(column.path.clone())) {
        let json_path = format!(".{}", path.json_dotted());
        let is_metadata = path.json().next() == Some("metadata");
        let is_known = fields.iter().any(|field| field.json_path == json_path);
        if !is_metadata && !is_known && root.at(path.json()).is_some_and(JsonSchema::is_selectable) {
            fields.push(SelectableField { json_path });
        }
    }
    fields.truncate(SELECTABLE_FIELDS_MAX);
    fields
}

fn printer_column(column: &PrinterColumn) -> AdditionalPrinterColumn<'_> {
    AdditionalPrinterColumn {
        description: &column.doc,
        format: &column.format,
        json_path: &column.json_path,
        name: &column.name,
        priority: (column.priority != 0).then_some(column.priority),
        ty: column.ty.as_str(),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CustomResourceDefinition<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    spec: Spec<'a>,
}

#[derive(Serialize)]
struct Metadata {
    name: String,
}

#[derive(Serialize)]
struct Spec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    conversion: Option<Conversion>,
    group: &'a str,
    names: Names<'a>,
    scope: &'static str,
    versions: Vec<CrdVersion<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Names<'a> {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    categories: &'a [String],
    kind: &'a str,
    list_kind: &'a str,
    plural: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    short_names: &'a [String],
    singular: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CrdVersion<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    additional_printer_columns: Vec<AdditionalPrinterColumn<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deprecated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecation_warning: Option<&'a str>,
    name: &'a str,
    schema: Validation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    selectable_fields: Vec<SelectableField>,
    served: bool,
    storage: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    subresources: Option<Subresources>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdditionalPrinterColumn<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    format: &'a str,
    json_path: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i32>,
    #[serde(rename = "type")]
    ty: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SelectableField {
    json_path: String,
}

#[derive(Serialize)]
struct Validation {
    #[serde(rename = "openAPIV3Schema")]
    open_api_v3_schema: JsonSchema,
}

#[derive(Serialize)]
struct Subresources {
    status: Empty,
}

#[derive(Serialize)]
struct Empty {}
