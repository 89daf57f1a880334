//! Rows whose text is in another version of their kind than its own. They wait for a conversion, and differ from their
//! objects only if these would be others in the same version. Pure.

use kindex_convert::{ConvertError, text_in};
use kindex_model::kind::{Kind, Platform};
use kindex_model::object::Object;
use kindex_store::RowImage;
use serde_json::Value;

/// Which version the text of a row is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextVersion {
    /// The kind's own. Kinds of one version have no other.
    Own,
    /// Another one of the kind's.
    Other,
    /// None of the kind's.
    Unknown,
}

pub(super) fn text_version(kind: &Kind, api_version: &str) -> TextVersion {
    let is_own = api_version.is_empty() || api_version == kind.api_version();
    let mut declared = kind
        .versions
        .iter()
        .map(|version| format!("{}/{}", kind.group, version.name));
    if kind.versions.is_empty() || is_own {
        TextVersion::Own
    } else if declared.any(|declared| declared == api_version) {
        TextVersion::Other
    } else {
        TextVersion::Unknown
    }
}

/// Whether a row waits for a conversion to the kind's own version.
pub(super) fn is_unconverted(kind: &Kind, row: &RowImage) -> bool {
    text_version(kind, &row.group_ver) == TextVersion::Other
}

/// Whether two texts are of the same object, where they are in different versions of the kind.
pub(super) fn are_same(platform: &Platform, kind: &Kind, one: &Object, other: &Object) -> Result<bool, ConvertError> {
    if one.metadata.api_version == other.metadata.api_version {
        return Ok(false);
    }
    let own = |object| text_in(platform, kind, object, kind.version);
    let (one, other) = (own(one)?, own(other)?);
    let read = |text: &str| serde_json::from_str::<Value>(text).ok().map(plain);
    Ok(read(&one).is_some() && read(&one) == read(&other))
}

/// Numbers that are written as `1.0` and as `1` are the same ones.
fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => {
            let exact = number.as_f64().filter(|it| it.abs() < 2_f64.powi(53));
            exact.map_or(Value::Number(number), Value::from)
        }
        Value::Array(items) => Value::Array(items.into_iter().map(plain).collect()),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, plain(value))).collect(),
        other => other,
    }
}
