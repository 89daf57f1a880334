//! Patches of objects: JSON patch, merge patch, and strategic merge patch for built-in kinds. From an object and a
//! patch to an object; refuses to know what may be changed. Server-side apply is no patch in this sense: see
//! `fields`.

mod strategic;

use serde_json::Value;

use crate::decode;
use crate::status::Status;

/// The kinds of patches, by content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchType {
    /// The type that a Content-Type header names.
    pub(crate) fn from_content_type(content_type: &str) -> Option<Self> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            "application/apply-patch+yaml" => Some(Self::Apply),
            _ => None,
        }
    }
}

/// A patch that has been read.
#[derive(Debug)]
pub(crate) enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    /// Reads the body of a patch request, noting fields that are given twice.
    ///
    /// # Errors
    /// 400 when the body is no patch of that type.
    pub(crate) fn read(patch_type: PatchType, body: &[u8]) -> Result<(Self, Vec<String>), Status> {
        let refused = |error: &dyn std::fmt::Display| Status::bad_request(format!("error decoding patch: {error}"));
        if patch_type == PatchType::Json {
            let steps: Vec<Value> = serde_json::from_slice(body).map_err(|error| refused(&error))?;
            // A list of what are no steps is a patch that does not fit anything.
            let patch = serde_json::from_value(Value::from(steps));
            let patch = patch.map_err(|error: serde_json::Error| Status::patch_fails(error.to_string()))?;
            return Ok((Self::Json(patch), Vec::new()));
        }
        let decoded = decode::json(body).map_err(|error| refused(&error))?;
        if !decoded.value.is_object() {
            return Err(refused(&"a merge patch is a JSON object"));
        }
        let patch = match patch_type {
            PatchType::Strategic => Self::Strategic(decoded.value),
            PatchType::Json | PatchType::Merge | PatchType::Apply => Self::Merge(decoded.value),
        };
        Ok((patch, decoded.duplicates))
    }

    /// The object after the patch.
    ///
    /// # Errors
    /// 422 when the patch does not fit the object.
    pub(crate) fn apply(&self, object: &Value) -> Result<Value, Status> {
        let mut patched = object.clone();
        match self {
            Self::Json(patch) => {
                json_patch::patch(&mut patched, patch).map_err(|error| Status::patch_fails(error.to_string()))?;
            }
            Self::Merge(patch) => json_patch::merge(&mut patched, patch),
            Self::Strategic(patch) => strategic::merge(&mut patched, patch).map_err(Status::patch_fails)?,
        }
        Ok(patched)
    }
}
