//! The patterns of a schema, together: how much memory they take when they are compiled. A pattern of thirty
//! characters can take megabytes, and a definition has room for tens of thousands.

use serde_json::Value;

use crate::schema::go_regex;
use crate::schema::problem::{FieldError, Path};

/// The most memory of the patterns of one schema.
const COMPILED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What a pattern is counted as: the smallest of these that holds it.
const SIZES: [usize; 4] = [16 * 1024, 128 * 1024, 1024 * 1024, go_regex::COMPILED_BYTES_MAX];

/// Adds an error when the patterns of `schema` take too much together.
pub(super) fn check(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if compiled_bytes(schema) > COMPILED_BYTES_MAX {
        let rule = format!("the patterns of a schema may take at most {COMPILED_BYTES_MAX} bytes of memory together");
        errors.push(FieldError::forbidden(path.to_string(), &rule));
    }
}

/// About how much the patterns take; what is beyond the limit is not looked at.
fn compiled_bytes(schema: &Value) -> usize {
    let mut bytes = 0;
    let mut rest = vec![schema];
    while let Some(value) = rest.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(pattern) = fields.get("pattern").and_then(Value::as_str) {
                    bytes += size(pattern);
                }
                rest.extend(fields.values());
            }
            Value::Array(items) => rest.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        if bytes > COMPILED_BYTES_MAX {
            break;
        }
    }
    bytes
}

/// What does not compile is refused elsewhere, and takes nothing.
fn size(pattern: &str) -> usize {
    let holds = |size: &usize| go_regex::compile_within(pattern, *size).is_ok();
    SIZES.into_iter().find(holds).unwrap_or_default()
}
