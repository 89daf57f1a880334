//! The schemas inside a schema. Knows nothing of the checks.

use serde_json::Value;

use crate::schema::problem::Path;

/// The schemas inside `schema` that the API server walks, each with its path.
pub(super) fn each_inner(schema: &Value, path: &Path<'_>, mut visit: impl FnMut(&str, &Value, &Path<'_>)) {
    for keyword in ["items", "additionalProperties", "not"] {
        if let Some(inner) = schema.get(keyword).filter(|inner| inner.is_object()) {
            visit(keyword, inner, &Path::Field(path, keyword));
        }
    }
    let properties = Path::Field(path, "properties");
    for (name, inner) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        visit("properties", inner, &Path::Key(&properties, name));
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let list = Path::Field(path, keyword);
        for (index, inner) in schema
            .get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            visit(keyword, inner, &Path::Item(&list, index));
        }
    }
}
