//! Objects in the format that a client accepts: JSON, YAML, a table, or only metadata.

use std::collections::HashMap;

use axum::body::Body;
use axum::response::Response;
use jiff::Timestamp;
use kindex_kube_api::list::{self, LIST_END, ListMeta};
use kindex_kube_api::request::{Query, Rendering};
use kindex_kube_api::table::{self, IncludeObject, PrinterColumn};
use kindex_kube_api::{media, partial};
use kindex_model::kind::Registry;
use serde_json::Value;

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
            Rendering::Table => table::of_object(self.table_columns(), &object, self.include(), Timestamp::now()),
        }
    }

    /// The beginning of a list in JSON, up to its items.
    pub(super) fn head(&self, version: &str) -> String {
        let meta = ListMeta {
            resource_version: version.to_owned(),
            ..ListMeta::default()
        };
        match self.rendering {
            Rendering::Json | Rendering::Yaml => list::head(&self.resource.api_version(), &self.list_kind(), &meta),
            Rendering::Metadata => list::head(partial::VERSION, partial::LIST_KIND, &meta),
            Rendering::Table => table::head(self.table_columns(), &meta),
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
            Rendering::Table => joined(table::rows(
                self.table_columns(),
                &values()?,
                self.include(),
                Timestamp::now(),
            )),
        })
    }

    /// A page of a list.
    pub(super) fn page(&self, page: &Listed) -> Result<Response, Refusal> {
        let meta = ListMeta {
            resource_version: page.resource_version.clone(),
            continue_token: Some(page.continue_token.clone()).filter(|token| !token.is_empty()),
            ..ListMeta::default()
        };
        let values =
            || -> Result<Vec<Value>, Refusal> { page.items.iter().map(|item| parsed(item.as_bytes())).collect() };
        let (api_version, list_kind) = (self.resource.api_version(), self.list_kind());
        Ok(match self.rendering {
            Rendering::Json => {
                let (head, items) = (list::head(&api_version, &list_kind, &meta), page.items.join(","));
                exchange::json([head.as_str(), items.as_str(), LIST_END].concat())
            }
            Rendering::Yaml => yaml(&list::value(&api_version, &list_kind, values()?, &meta))?,
            Rendering::Metadata => {
                let items = values()?.iter().map(partial::of).collect();
                exchange::json(partial::list(items, &meta).to_string())
            }
            Rendering::Table => {
                let (columns, include) = (self.table_columns(), self.include());
                let table = table::of_list(columns, &values()?, include, Timestamp::now(), &meta);
                exchange::json(table.to_string())
            }
        })
    }

    fn list_kind(&self) -> String {
        format!("{}List", self.resource.kind.name)
    }

    fn table_columns(&self) -> &[PrinterColumn] {
        self.columns.of_resource(self.resource)
    }

    fn include(&self) -> IncludeObject {
        IncludeObject::of_parameter(self.query.get("includeObject"))
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
