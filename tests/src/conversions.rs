//! The functions that `fixtures/traps` names to convert a field between versions. Whole hours lose what seconds have
//! besides.

use serde_json::{Value, json};

/// From hours to seconds.
///
/// # Errors
/// Whatever is no number of hours.
pub fn to_seconds(hours: &Value) -> Result<Value, String> {
    let hours = hours.as_i64().and_then(|hours| hours.checked_mul(3600));
    hours
        .map(|seconds| json!(seconds))
        .ok_or_else(|| "not a number of hours".to_owned())
}

/// From seconds to whole hours.
///
/// # Errors
/// Whatever is no number of seconds.
pub fn to_hours(seconds: &Value) -> Result<Value, String> {
    let seconds = seconds.as_i64().ok_or("not a number of seconds")?;
    Ok(json!(seconds / 3600))
}
