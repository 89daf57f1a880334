//! References as requests write them.

use kindex_model::reference_name::ReferenceName;

use crate::operations::Refusal;

/// What a request names. Finalizers of controllers may have the same form with a word in the place of the uid: nobody
/// releases these as references.
pub(super) fn named(reference: &str) -> Result<ReferenceName, Refusal> {
    let parsed = reference.parse::<ReferenceName>();
    let parsed = parsed.map_err(|error| Refusal::bad_request(error.to_string()))?;
    ReferenceName::of_finalizer(reference).ok_or_else(|| {
        let uid = parsed.uid();
        Refusal::bad_request(format!(
            "{reference:?} is not a reference: {uid:?} is not a UUID, as uids are, \
             like 7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce"
        ))
    })
}

/// The same of a reference that is to be set. Uids are in lower case, so that no holder would have another one. One
/// that an object has from earlier is shown and released as any.
pub(super) fn named_in_lower_case(reference: &str) -> Result<ReferenceName, Refusal> {
    let named = named(reference)?;
    match named.in_lower_case() {
        None => Ok(named),
        Some(lower) => Err(Refusal::bad_request(format!(
            "{reference:?} is the reference of no holder, since uids are in lower case: write {lower:?}"
        ))),
    }
}
