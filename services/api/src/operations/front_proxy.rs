//! What is not done for callers whom the front proxy names. The cluster sees the server then, and its admission
//! policies would let pass what they refuse to the caller.

use kindex_kube_api::patch::{Patch, PatchType};
use kindex_kube_api::status::Status;

use super::refusal::group_resource;
use super::{Caller, ObjectKey, Refusal};

/// Whether a patch is made of an archived object alone: one that may change finalizers, of which references are some.
///
/// # Errors
/// 415 for a server-side apply. It creates what is not there, and the cluster alone knows what it takes off.
pub(super) fn is_for_archived(
    caller: &Caller,
    key: &ObjectKey<'_>,
    patch_type: PatchType,
    body: &[u8],
) -> Result<bool, Refusal> {
    if !caller.is_from_front_proxy() || !key.resource.kind.cluster {
        return Ok(false);
    }
    match patch_type {
        PatchType::Json | PatchType::Merge => Ok(may_change_finalizers(patch_type, body)),
        // The cluster refuses it.
        PatchType::Strategic => Ok(false),
        PatchType::Apply => {
            let taken = [PatchType::Json, PatchType::Merge].map(PatchType::media_type);
            Err(Status::unsupported_media_type(&taken).into())
        }
    }
}

/// What cannot be read here may be read by the cluster.
fn may_change_finalizers(patch_type: PatchType, body: &[u8]) -> bool {
    let read = Patch::read(patch_type, body);
    read.map_or(true, |(patch, _)| patch.may_change(&["metadata", "finalizers"]))
}

/// 403: the object is live.
pub(super) fn forbidden(key: &ObjectKey<'_>) -> Refusal {
    let resource = group_resource(key.resource.kind);
    let why = format!(
        "finalizers of a live object are changed in its own group, where the cluster sees who changes them: {resource}"
    );
    Status::forbidden(resource, key.name, &why).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_may_change_finalizers_if_it_names_them_or_all_that_they_are_part_of() {
        for (patch, expected) in [
            (r#"{"metadata":{"finalizers":null}}"#, true),
            (r#"{"metadata":{"finalizers":["a/b"]}}"#, true),
            (r#"{"metadata":null}"#, true),
            (r#"{"metadata":{},"metadata":{"finalizers":[]}}"#, true),
            (r#"{"metadata":{"labels":{"finalizers":"a"}}}"#, false),
            (r#"{"spec":{"metadata":{"finalizers":null}}}"#, false),
            ("[]", true),
        ] {
            let found = may_change_finalizers(PatchType::Merge, patch.as_bytes());
            assert_eq!(found, expected, "{patch}");
        }
    }

    #[test]
    fn a_json_patch_may_change_finalizers_if_an_operation_does() {
        for (patch, expected) in [
            (r#"[{"op":"remove","path":"/metadata/finalizers"}]"#, true),
            (r#"[{"op":"remove","path":"/metadata/finalizers/0"}]"#, true),
            (r#"[{"op":"replace","path":"/metadata","value":{}}]"#, true),
            (r#"[{"op":"replace","path":"","value":{}}]"#, true),
            (
                r#"[{"op":"move","from":"/metadata/finalizers","path":"/spec/a"}]"#,
                true,
            ),
            (
                r#"[{"op":"copy","from":"/spec/a","path":"/metadata/finalizers"}]"#,
                true,
            ),
            (
                r#"[{"op":"copy","from":"/metadata/finalizers","path":"/spec/a"}]"#,
                false,
            ),
            (r#"[{"op":"test","path":"/metadata/finalizers","value":[]}]"#, false),
            (r#"[{"op":"add","path":"/metadata/labels/a","value":"b"}]"#, false),
            // kube-apiserver passes over what stands before the first slash.
            (r#"[{"op":"remove","path":"a/metadata/finalizers"}]"#, true),
            ("{", true),
        ] {
            let found = may_change_finalizers(PatchType::Json, patch.as_bytes());
            assert_eq!(found, expected, "{patch}");
        }
    }
}
