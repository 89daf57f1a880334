//! JSON patches within bounds: what copies add, how deep the result is and how much is moved about are counted while
//! the patch is applied, since a short patch can ask for a document of any size. Knows no objects of Kubernetes.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use crate::size::{held_bytes, text_bytes};

/// The most operations of one patch, as kube-apiserver has it.
pub(super) const OPERATIONS_MAX: usize = 10_000;
/// A copy counts for a byte where it takes so many in memory: small maps take far more than their texts.
const HELD_FOR_A_BYTE: usize = 5;
/// The most bytes that the copies of one patch may add together, as kube-apiserver has it.
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;
/// How deep values may be nested: what is deeper cannot be read again.
const DEPTH_MAX: usize = 127;
/// The most work of one patch: entries of lists that are shifted, bytes of values that are moved.
const STEPS_MAX: usize = 256 * 1024 * 1024;

/// Why a JSON patch is not applied.
#[derive(Debug, thiserror::Error)]
pub(super) enum PatchRefusal {
    /// More operations than [`OPERATIONS_MAX`].
    #[error("The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {0}")]
    TooManyOperations(usize),
    /// Its copies add more than [`COPIED_BYTES_MAX`].
    #[error(
        "Unable to complete the copy, the accumulated size increase of copy is {0}, exceeding the limit \
         {COPIED_BYTES_MAX}"
    )]
    TooMuchCopied(usize),
    /// A value would be nested deeper than [`DEPTH_MAX`].
    #[error("operation '/{0}' nests values deeper than {DEPTH_MAX} levels")]
    TooDeep(usize),
    /// It moves too much about.
    #[error("operation '/{0}' exceeds the work that one patch may make")]
    TooMuchWork(usize),
    /// It does not fit what is there.
    #[error(transparent)]
    DoesNotFit(#[from] json_patch::PatchError),
}

/// The document after the patch.
///
/// # Guarantees
/// Memory and work are bounded by the sizes of the document and of the patch, and by the limits above, whatever the
/// patch says. A document that nests no deeper than [`DEPTH_MAX`] does not become one that does.
///
/// # Errors
/// When the patch does not fit, or exceeds a limit.
pub(super) fn apply(document: &Value, patch: &Patch) -> Result<Value, PatchRefusal> {
    counted(document, patch).map(|(patched, _)| patched)
}

/// The document after the patch, and the work that was counted.
fn counted(document: &Value, patch: &Patch) -> Result<(Value, Work), PatchRefusal> {
    if patch.len() > OPERATIONS_MAX {
        return Err(PatchRefusal::TooManyOperations(patch.len()));
    }
    let mut patched = document.clone();
    let mut work = Work::default();
    for (at, operation) in patch.iter().enumerate() {
        work.admit(at, &patched, operation)?;
        json_patch::patch_unsafe(&mut patched, std::slice::from_ref(operation)).map_err(|mut error| {
            error.operation = at;
            error
        })?;
    }
    Ok((patched, work))
}

/// What the operations so far have cost.
#[derive(Debug, Default)]
struct Work {
    copied_bytes: usize,
    steps: usize,
}

impl Work {
    /// Counts what an operation is about to cost. One that does not fit costs nothing: it ends the patch.
    fn admit(&mut self, at: usize, document: &Value, operation: &PatchOperation) -> Result<(), PatchRefusal> {
        match operation {
            PatchOperation::Add(add) => {
                self.spend(at, shifted(document, add.path.as_str()))?;
                check_depth(at, add.path.count(), &add.value)
            }
            PatchOperation::Replace(replace) => check_depth(at, replace.path.count(), &replace.value),
            PatchOperation::Remove(remove) => self.spend(at, shifted(document, remove.path.as_str())),
            PatchOperation::Move(moved) => {
                let Some(source) = document.pointer(moved.from.as_str()) else {
                    return Ok(());
                };
                let shifts = shifted(document, moved.from.as_str()) + shifted(document, moved.path.as_str());
                self.spend(at, shifts + text_bytes(source))?;
                check_depth(at, moved.path.count(), source)
            }
            PatchOperation::Copy(copy) => {
                let Some(source) = document.pointer(copy.from.as_str()) else {
                    return Ok(());
                };
                self.copied_bytes += text_bytes(source).max(held_bytes(source) / HELD_FOR_A_BYTE);
                if self.copied_bytes > COPIED_BYTES_MAX {
                    return Err(PatchRefusal::TooMuchCopied(self.copied_bytes));
                }
                self.spend(at, shifted(document, copy.path.as_str()))?;
                check_depth(at, copy.path.count(), source)
            }
            // Compares at most what the patch itself holds.
            PatchOperation::Test(_) => Ok(()),
        }
    }

    fn spend(&mut self, at: usize, steps: usize) -> Result<(), PatchRefusal> {
        self.steps += steps;
        if self.steps > STEPS_MAX {
            return Err(PatchRefusal::TooMuchWork(at));
        }
        Ok(())
    }
}

/// Whether an operation may change what is at `path`, below it, or around it.
pub(super) fn changes(operation: &PatchOperation, path: &[&str]) -> bool {
    let meets = |pointer: &str| {
        path.iter()
            .zip(pointer.split('/').skip(1))
            .all(|(field, token)| *field == token)
    };
    match operation {
        PatchOperation::Test(_) => false,
        PatchOperation::Move(moved) => meets(moved.from.as_str()) || meets(moved.path.as_str()),
        PatchOperation::Add(_) | PatchOperation::Remove(_) | PatchOperation::Replace(_) | PatchOperation::Copy(_) => {
            meets(operation.path().as_str())
        }
    }
}

/// How many entries of a list make way for one at `path`, or close the gap that it leaves.
fn shifted(document: &Value, path: &str) -> usize {
    let Some((parent, place)) = path.rsplit_once('/') else {
        return 0;
    };
    let entries = document.pointer(parent).and_then(Value::as_array).map_or(0, Vec::len);
    place.parse::<usize>().map_or(0, |place| entries.saturating_sub(place))
}

fn check_depth(at: usize, above: usize, value: &Value) -> Result<(), PatchRefusal> {
    let room = DEPTH_MAX.checked_sub(above);
    match room.is_some_and(|room| nests_within(value, room)) {
        true => Ok(()),
        false => Err(PatchRefusal::TooDeep(at)),
    }
}

/// Whether lists and maps are nested at most so many levels.
fn nests_within(value: &Value, levels: usize) -> bool {
    let inner = levels.checked_sub(1);
    match value {
        Value::Array(items) => inner.is_some_and(|inner| items.iter().all(|item| nests_within(item, inner))),
        Value::Object(fields) => inner.is_some_and(|inner| fields.values().all(|field| nests_within(field, inner))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests;
