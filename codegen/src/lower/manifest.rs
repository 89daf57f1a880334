//! Somebody else's CustomResourceDefinition: names, and messages made of its schema. What a message cannot say
//! (numbers or text, any JSON) becomes `google.protobuf.Value`; the exact JSON of an object is kept in any case.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::shape::{MadeField, MadeKind, MadeMessage, proto_name, type_name};
use crate::diag::{Collector, messages};
use crate::model::{ApiVersion, GroupName, KindName, PrinterColumn, PrinterType, Scope};
use crate::source::{Span, Text};

/// What Kindex needs of a CRD manifest.
pub(super) struct Manifest {
    pub(super) group: GroupName,
    pub(super) version: ApiVersion,
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) short_names: Vec<String>,
    pub(super) scope: Scope,
    pub(super) printer_columns: Vec<PrinterColumn>,
    spec: Value,
    status: Option<Value>,
}

#[derive(Deserialize)]
struct Definition {
    kind: String,
    spec: DefinitionSpec,
}

#[derive(Deserialize)]
struct DefinitionSpec {
    group: String,
    names: DefinitionNames,
    scope: String,
    versions: Vec<DefinitionVersion>,
}

#[derive(Deserialize)]
struct DefinitionNames {
    kind: String,
    plural: String,
    singular: Option<String>,
    #[serde(default, rename = "shortNames")]
    short_names: Vec<String>,
}

#[derive(Deserialize)]
struct DefinitionVersion {
    name: String,
    #[serde(default)]
    storage: bool,
    schema: Option<DefinitionSchema>,
    #[serde(default, rename = "additionalPrinterColumns")]
    printer_columns: Vec<DefinitionColumn>,
}

#[derive(Deserialize)]
struct DefinitionSchema {
    #[serde(rename = "openAPIV3Schema")]
    open_api: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DefinitionColumn {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    #[serde(default)]
    format: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    priority: i32,
    json_path: String,
}

impl DefinitionColumn {
    fn lower(self, path: &Text, found: &mut Collector) -> Option<PrinterColumn> {
        let ty = PrinterType::ALL.into_iter().find(|ty| ty.as_str() == self.ty);
        if ty.is_none() {
            found.push(messages::unknown_printer_type(path, &self.name, &self.ty));
        }
        Some(PrinterColumn {
            name: self.name,
            ty: ty?,
            format: self.format,
            doc: self.description,
            priority: self.priority,
            json_path: self.json_path,
        })
    }
}

/// Reads the manifest `path` of kind `kind`; reports what makes it unusable.
pub(super) fn read(text: &str, path: &Text, kind: &Text, found: &mut Collector) -> Option<Manifest> {
    let definition: Definition = serde_saphyr::from_str(text)
        .map_err(|error| found.push(messages::bad_manifest(path, &error.to_string())))
        .ok()?;
    if definition.kind != "CustomResourceDefinition" {
        found.push(messages::bad_manifest(path, "it is not a CustomResourceDefinition"));
        return None;
    }
    let names = definition.spec.names;
    if names.kind != kind.value {
        found.push(messages::manifest_of_other_kind(path, &names.kind, kind));
        return None;
    }
    let stored = definition.spec.versions.into_iter().find(|version| version.storage);
    let Some((name, schema, shown)) =
        stored.and_then(|version| Some((version.name, version.schema?.open_api, version.printer_columns)))
    else {
        found.push(messages::bad_manifest(path, "no stored version has a schema"));
        return None;
    };
    let properties = schema.get("properties");
    let Some(spec) = properties.and_then(|properties| properties.get("spec")) else {
        found.push(messages::bad_manifest(path, "its schema has no `spec`"));
        return None;
    };
    let parsed = GroupName::parse(&definition.spec.group).and_then(|group| Ok((group, ApiVersion::parse(&name)?)));
    let (group, version) = parsed
        .map_err(|error| found.push(messages::bad_manifest(path, &error.to_string())))
        .ok()?;
    Some(Manifest {
        group,
        version,
        singular: names.singular.unwrap_or_else(|| kind.value.to_lowercase()),
        plural: names.plural,
        short_names: names.short_names,
        scope: match definition.spec.scope.as_str() {
            "Cluster" => Scope::Cluster,
            _ => Scope::Namespaced,
        },
        printer_columns: shown
            .into_iter()
            .filter_map(|column| column.lower(path, found))
            .collect(),
        spec: spec.clone(),
        status: properties.and_then(|properties| properties.get("status")).cloned(),
    })
}

/// Makes spec and status of the kind.
pub(super) fn make(manifest: &Manifest, kind: &KindName, package: &str, span: Span) -> MadeKind {
    let mut maker = Maker {
        imports: BTreeSet::new(),
        span,
    };
    let spec = maker.message(&format!("{kind}Spec"), package, &manifest.spec);
    let status = manifest
        .status
        .as_ref()
        .map(|schema| maker.message(&format!("{kind}Status"), package, schema));
    MadeKind {
        spec,
        status,
        imports: maker.imports,
    }
}

struct Maker {
    imports: BTreeSet<String>,
    span: Span,
}

impl Maker {
    fn message(&mut self, name: &str, scope: &str, schema: &Value) -> MadeMessage {
        let full_name = format!("{scope}.{name}");
        let mut made = MadeMessage {
            name: name.to_owned(),
            doc: description(schema),
            fields: Vec::new(),
            messages: Vec::new(),
            enums: Vec::new(),
        };
        let mut taken = BTreeSet::new();
        for (json_name, property) in properties(schema).into_iter().flatten() {
            let mut name = proto_name(json_name);
            while !taken.insert(name.clone()) {
                name.push('x');
            }
            let ty = self.field_type(&full_name, &name, property, &mut made);
            made.fields.push(MadeField {
                json_name: json_name.clone(),
                name,
                ty,
                doc: description(property),
                span: self.span,
            });
        }
        made
    }

    fn field_type(&mut self, scope: &str, name: &str, schema: &Value, made: &mut MadeMessage) -> String {
        let word = schema.get("type").and_then(Value::as_str);
        if let Some(scalar) = scalar(schema) {
            return format!("optional {scalar}");
        }
        match word {
            Some("array") => {
                let item = schema.get("items").unwrap_or(&Value::Null);
                format!("repeated {}", self.element(scope, name, item, made))
            }
            Some("object") if properties(schema).is_none() => match schema.get("additionalProperties") {
                Some(value @ Value::Object(_)) => {
                    format!("map<string, {}>", self.element(scope, name, value, made))
                }
                _ => self.google("Struct", "struct"),
            },
            _ => self.element(scope, name, schema, made),
        }
    }

    /// A type that can stand in a list or a map.
    fn element(&mut self, scope: &str, name: &str, schema: &Value, made: &mut MadeMessage) -> String {
        if let Some(scalar) = scalar(schema) {
            return scalar.to_owned();
        }
        if schema.get("format").and_then(Value::as_str) == Some("date-time") {
            return self.google("Timestamp", "timestamp");
        }
        if properties(schema).is_none() {
            return self.google("Value", "struct");
        }
        let nested = type_name(name);
        let message = self.message(&nested, scope, schema);
        made.messages.push(message);
        nested
    }

    fn google(&mut self, name: &str, file: &str) -> String {
        self.imports.insert(format!("google/protobuf/{file}.proto"));
        format!(".google.protobuf.{name}")
    }
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .filter(|properties| !properties.is_empty())
}

fn scalar(schema: &Value) -> Option<&'static str> {
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    match (text("type")?, text("format")) {
        ("string", Some("date-time")) => None,
        ("string", Some("byte")) => Some("bytes"),
        ("string", _) => Some("string"),
        ("boolean", _) => Some("bool"),
        ("integer", Some("int32")) => Some("int32"),
        ("integer", _) => Some("int64"),
        ("number", _) => Some("double"),
        _ => None,
    }
}

fn description(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str);
    text.unwrap_or_default().trim().to_owned()
}
