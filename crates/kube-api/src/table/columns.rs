//! Printer columns: what a CustomResourceDefinition declares, and what stands in their cells. Knows nothing of lists.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::age;
use crate::jsonpath::JsonPath;
use crate::schema::number_text;

/// One column, as `additionalPrinterColumns` of a CustomResourceDefinition declares it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PrinterColumn {
    /// The header.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean`, or `date`, which shows an age.
    #[serde(rename = "type")]
    pub kind: String,
    /// A hint at the form of the values.
    pub format: String,
    /// What the column shows.
    pub description: String,
    /// 0: always shown; above: only with `-o wide`.
    pub priority: i32,
    /// Where in an object the value is.
    pub json_path: String,
}

const CREATION_TIMESTAMP: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. \
     It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is \
     represented in RFC3339 form and is in UTC.";

/// The column that every table begins with.
pub(super) fn name_definition() -> Value {
    json!({
        "name": "Name",
        "type": "string",
        "format": "name",
        "description": "Name of the object, unique within its namespace and resource.",
        "priority": 0,
    })
}

impl PrinterColumn {
    /// The one column of a definition that declares none.
    pub fn age() -> Self {
        Self {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            description: CREATION_TIMESTAMP.to_owned(),
            json_path: ".metadata.creationTimestamp".to_owned(),
            ..Self::default()
        }
    }

    /// The column's entry in `columnDefinitions`.
    pub(super) fn definition(&self) -> Value {
        let described = match self.description.as_str() {
            "" => format!(
                "Custom resource definition column (in JSONPath format): {}",
                self.json_path
            ),
            given => given.to_owned(),
        };
        json!({
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": described,
            "priority": self.priority,
        })
    }

    /// The path, read once for a whole table. A path that cannot be read finds nothing: definitions with one are
    /// refused.
    pub(super) fn path(&self) -> JsonPath {
        JsonPath::parse(&self.json_path).unwrap_or_else(|_| JsonPath::nowhere())
    }

    /// A value as the column shows it; null where it does not fit.
    pub(super) fn cell(&self, value: &Value, now: Timestamp) -> Value {
        match (self.kind.as_str(), value) {
            ("string", Value::String(_)) => value.clone(),
            ("string", Value::Null) => json!("<no value>"),
            ("string", Value::Number(number)) => json!(number_text(number)),
            ("string", other) => json!(other.to_string()),
            ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => json!(integer),
                (None, Some(float)) => json!(float as i64),
                (None, None) => Value::Null,
            },
            ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
            ("date", Value::String(text)) => json!(age::since(text, now)),
            _ => Value::Null,
        }
    }
}
