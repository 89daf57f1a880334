//! Objects in the format that a client accepts: JSON, YAML, a table, or only metadata.

use std::collections::HashMap;

use axum::body::Body;
use axum::response::Response;
use jiff::Timestamp;
use kindex_kube_api::request::{Query, Rendering};
use kindex_kube_api::table::{self, IncludeObject, PrinterColumn};
use kindex_kube_api::{media, partial};
use kindex_model::kind::Registry;
use serde_json::{Value, json};

use super::exchange;
use crate::columns::printer_columns;
use crate::operations::{Answer, Listed, Reason, Refusal, Resource};

/// The columns of each kind's tables, in each version.
pub(super) struct Columns(HashMap<(&'static str, &'static str), Vec<PrinterColumn>>);

impl Columns {
    pub(super) fn of(registry: &Registry) -> Self {
        let resources = registry.kinds.iter().copied().flat_map(Resource::all);
        let columns = resources.map(|resource| {
            let Resource { kind, version } = resource;
            ((kind.table, version), printer_columns(kind, version))
        });
        Self(columns.collect())
    }

    fn of_resource(&self, resource: Resource) -> &[PrinterColumn] {
        let key = (resource.kind.table, resource.version);
        self.0.get(&key).map_or(&[], Vec::as_slice)
    }

    fn table(&self, resource: Resource, query: &Query, objects: &[Value]) -> Value {
        let include = IncludeObject::of_parameter(query.get("includeObject"));
        table::render(self.of_resource(resource), objects, include, Timestamp::now())
    }
}

/// The form of the answers to one request.
pub(super) struct Form<'a> {
    pub(super) resource: Resource,
    pub(super) rendering: Rendering,
    pub(super) query: &'a Query,
    pub(super) columns: &'a Columns,
}

impl Form<'_> {
    /// An answer with one object. What is no object, a Status, stays as it is.
    pub(super) fn one(&self, answer: &Answer) -> Result<Response, Refusal> {
        let response = match self.rendering {
            Rendering::Json => exchange::json(answer.text.clone()),
            Rendering::Yaml => yaml(&parsed(&answer.text)?)?,
            Rendering::Table | Rendering::Metadata => {
                let value = parsed(&answer.text)?;
                let is_object = value["kind"] == self.resource.kind.name;
                let shown = if is_object { self.shown(value) } else { value };
                exchange::json(shown.to_string())
            }
        };
        Ok(exchange::headed(answer, response))
    }

    /// One object, as a part of an answer.
    pub(super) fn shown(&self, object: Value) -> Value {
        match self.rendering {
            Rendering::Json | Rendering::Yaml => object,
            Rendering::Metadata => partial::of(&object),
            Rendering::Table => {
                let version = object["metadata"]["resourceVersion"].clone();
                let mut table = self.columns.table(self.resource, self.query, &[object]);
                table["metadata"] = json!({"resourceVersion": version});
                table
            }
        }
    }

    /// The beginning of a list in JSON, up to its items.
    pub(super) fn head(&self, version: &str) -> String {
        let metadata = json!({"resourceVersion": version});
        match self.rendering {
            Rendering::Json | Rendering::Yaml => format!(
                "{{\"apiVersion\":\"{}\",\"kind\":\"{}List\",\"metadata\":{metadata},\"items\":[",
                self.resource.api_version(),
                self.resource.kind.name
            ),
            Rendering::Metadata => format!(
                "{{\"apiVersion\":\"{}\",\"kind\":\"{}\",\"metadata\":{metadata},\"items\":[",
                partial::VERSION,
                partial::LIST_KIND
            ),
            Rendering::Table => {
                let columns = self.columns.table(self.resource, self.query, &[])["columnDefinitions"].take();
                format!(
                    "{{\"apiVersion\":\"{}\",\"kind\":\"Table\",\"metadata\":{metadata},\
                     \"columnDefinitions\":{columns},\"rows\":[",
                    partial::VERSION
                )
            }
        }
    }

    /// Items of a list in JSON, with commas between them; the rows of a table.
    pub(super) fn items(&self, items: &[String]) -> Result<String, Refusal> {
        let values = || {
            items
                .iter()
                .map(|item| parsed(item.as_bytes()))
                .collect::<Result<Vec<_>, _>>()
        };
        let joined = |values: Vec<Value>| {
            let texts: Vec<String> = values.iter().map(Value::to_string).collect();
            texts.join(",")
        };
        Ok(match self.rendering {
            Rendering::Json | Rendering::Yaml => items.join(","),
            Rendering::Metadata => joined(values()?.iter().map(partial::of).collect()),
            Rendering::Table => match self.columns.table(self.resource, self.query, &values()?)["rows"].take() {
                Value::Array(rows) => joined(rows),
                _ => String::new(),
            },
        })
    }

    /// A page of a list.
    pub(super) fn page(&self, page: &Listed) -> Result<Response, Refusal> {
        let mut metadata = json!({"resourceVersion": page.resource_version});
        if !page.continue_token.is_empty() {
            metadata["continue"] = page.continue_token.as_str().into();
        }
        let values =
            || -> Result<Vec<Value>, Refusal> { page.items.iter().map(|item| parsed(item.as_bytes())).collect() };
        let (api_version, list_kind) = (self.resource.api_version(), format!("{}List", self.resource.kind.name));
        Ok(match self.rendering {
            Rendering::Json => {
                let items = page.items.join(",");
                exchange::json(Body::from(format!(
                    "{{\"apiVersion\":\"{api_version}\",\"kind\":\"{list_kind}\",\"metadata\":{metadata},\
                     \"items\":[{items}]}}"
                )))
            }
            Rendering::Yaml => {
                let items = values()?;
                let list = json!({"apiVersion": api_version, "kind": list_kind, "metadata": metadata, "items": items});
                yaml(&list)?
            }
            Rendering::Metadata => {
                let items = values()?.iter().map(partial::of).collect();
                exchange::json(partial::list(items, metadata).to_string())
            }
            Rendering::Table => {
                let mut table = self.columns.table(self.resource, self.query, &values()?);
                table["metadata"] = metadata;
                exchange::json(table.to_string())
            }
        })
    }
}

fn parsed(text: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(text).map_err(|error| {
        Refusal::new(
            Reason::InternalError,
            format!("Internal error occurred: an object that is not JSON: {error}"),
        )
    })
}

fn yaml(value: &Value) -> Result<Response, Refusal> {
    let text = serde_saphyr::to_string(value)
        .map_err(|error| Refusal::new(Reason::InternalError, format!("Internal error occurred: {error}")))?;
    Ok(exchange::typed(media::YAML, Body::from(text)))
}
