//! What messages call a path and a type.

use serde_json::Value;

use crate::schema::problem::Path;

/// The name of a value's JSON type.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The path as a field name; the root has none, which a Go program prints as `<nil>`.
pub(super) fn path_or_nil(path: &Path<'_>) -> String {
    match path {
        Path::Root => "<nil>".to_owned(),
        Path::Field(..) | Path::Item(..) | Path::Key(..) => path.to_string(),
    }
}
