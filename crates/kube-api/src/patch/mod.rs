//! Patches of objects: JSON patch, merge patch, and strategic merge patch for built-in kinds. From an object and a
//! patch to an object; knows nothing of what may be changed. Server-side apply is no patch in this sense: see `fields`.

mod json;
mod strategic;

use serde_json::Value;

use crate::decode;
use crate::media;
use crate::status::Status;

pub use crate::size::{OBJECT_BYTES_MAX, text_bytes};
use json::{OPERATIONS_MAX, PatchRefusal, apply as apply_json, changes};

/// The languages of patches, by content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Kubernetes' own, which custom resources do not take.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl PatchType {
    const ALL: [Self; 4] = [Self::Json, Self::Merge, Self::Strategic, Self::Apply];

    /// The type that a Content-Type header names.
    pub fn from_content_type(content_type: &str) -> Option<Self> {
        let essence = media::essence(content_type);
        Self::ALL.into_iter().find(|known| known.media_type() == essence)
    }

    /// What a Content-Type header calls it.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }

    /// What Content-Type headers call all of them; without strategic merge patches where these are not taken.
    pub fn media_types(takes_strategic: bool) -> Vec<&'static str> {
        let is_taken = |known: &Self| takes_strategic || *known != Self::Strategic;
        Self::ALL.into_iter().filter(is_taken).map(Self::media_type).collect()
    }
}

/// A patch that has been read.
#[derive(Debug)]
pub enum Patch {
    /// Its operations.
    Json(json_patch::Patch),
    /// What is merged.
    Merge(Value),
    /// What is merged, with its directives.
    Strategic(Value),
}

/// Applies a merge patch (RFC 7386).
pub fn merge(object: &mut Value, patch: &Value) {
    json_patch::merge(object, patch);
}

/// Whether a merge patch says something of the field at this path: of it, of what it contains, or of all that contains
/// it.
pub fn mentions(patch: &Value, path: &[&str]) -> bool {
    let mut at = patch;
    for field in path {
        let Value::Object(fields) = at else {
            // It replaces all that was below.
            return true;
        };
        match fields.get(*field) {
            Some(value) => at = value,
            None => return false,
        }
    }
    true
}

impl Patch {
    /// Reads the body of a patch request, noting fields that are given twice.
    ///
    /// # Errors
    /// 400 when the body is no patch of that type.
    pub fn read(patch_type: PatchType, body: &[u8]) -> Result<(Self, Vec<String>), Status> {
        let refused = |error: &dyn std::fmt::Display| Status::bad_request(format!("error decoding patch: {error}"));
        let decoded = decode::json(body).map_err(|error| refused(&error))?;
        if patch_type == PatchType::Json {
            let steps = match decoded.value {
                Value::Array(steps) => steps,
                _ => return Err(refused(&"a JSON patch is a list of operations")),
            };
            if steps.len() > OPERATIONS_MAX {
                return Err(Status::too_much(PatchRefusal::TooManyOperations(steps.len())));
            }
            // A list of what are no steps is a patch that does not fit anything.
            let patch = serde_json::from_value(Value::from(steps));
            let patch = patch.map_err(|error: serde_json::Error| Status::patch_fails(error.to_string()))?;
            return Ok((Self::Json(patch), Vec::new()));
        }
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
    /// 422 when the patch does not fit the object; 413 when it has more operations than are allowed.
    pub fn apply(&self, object: &Value) -> Result<Value, Status> {
        if let Self::Json(patch) = self {
            return apply_json(object, patch).map_err(|refusal| match refusal {
                PatchRefusal::TooManyOperations(_) => Status::too_much(refusal.to_string()),
                PatchRefusal::TooMuchCopied(_)
                | PatchRefusal::TooDeep(_)
                | PatchRefusal::TooMuchWork(_)
                | PatchRefusal::DoesNotFit(_) => Status::patch_fails(refusal.to_string()),
            });
        }
        let mut patched = object.clone();
        match self {
            Self::Json(_) => {}
            Self::Merge(patch) => merge(&mut patched, patch),
            Self::Strategic(patch) => strategic::merge(&mut patched, patch).map_err(Status::patch_fails)?,
        }
        Ok(patched)
    }

    /// Whether it may change what an object has at this path, or below it. A directive may change anything.
    pub fn may_change(&self, path: &[&str]) -> bool {
        match self {
            Self::Json(patch) => patch.iter().any(|operation| changes(operation, path)),
            Self::Merge(patch) => mentions(patch, path),
            Self::Strategic(_) => true,
        }
    }
}
