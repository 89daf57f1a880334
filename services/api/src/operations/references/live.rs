//! Changes of references on objects in the cluster: patches on condition of the version that was read.

use bytes::Bytes;
use http::Method;
use kindex_kube_api::patch::PatchType;
use kindex_kube_api::status::Outcome;
use kindex_model::reference_name::ReferenceName;

use super::LiveObject;
use super::decide::Decision;
use crate::operations::cluster::Call;
use crate::operations::{Answer, Backends, Caller, ObjectKey, Refusal};

impl Backends {
    /// Carries out a decision in the cluster. Whether it is done; if not, the object changed in between.
    pub(super) async fn change_live(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        found: &LiveObject,
        reference: &ReferenceName,
        decision: Decision,
    ) -> Result<bool, Refusal> {
        let name = reference.to_string();
        let mut answer = match decision {
            Decision::Done | Decision::Refuse(_) => return Ok(true),
            Decision::Add => self.patch_target(caller, key, found.with(&name)).await,
            Decision::Remove => self.patch_target(caller, key, found.without(&name)).await,
        };
        // A reference that could not be released would keep its target for ever.
        if decision == Decision::Remove && answer.as_ref().is_err_and(is_invalid) {
            answer = self
                .patch_target(caller, key, found.without_earlier_releases(&name))
                .await;
        }
        match answer {
            Ok(_) => {
                if decision == Decision::Remove {
                    self.release_stored(key, found.uid(), reference).await?;
                }
                Ok(true)
            }
            Err(refusal) if refusal.is_of_changed_object() => Ok(false),
            Err(refusal) => Err(refusal),
        }
    }

    /// Sends a patch to the cluster. The holder may not have the right to change the target.
    async fn patch_target(&self, caller: &Caller, key: &ObjectKey<'_>, patch: Bytes) -> Result<Answer, Refusal> {
        let call = Call {
            content_type: PatchType::Merge.media_type(),
            ..Call::json(Method::PATCH, key.path(), Vec::new(), patch)
        };
        let upstream = self.upstream_of(key.resource.kind)?;
        upstream.call(&caller.on_behalf(), call).await
    }
}

/// Whether the object would be invalid with the patch, in the eyes of the cluster itself: a webhook says the same to
/// any patch.
fn is_invalid(refusal: &Refusal) -> bool {
    refusal.outcome() == Outcome::Invalid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_that_denies_a_release_is_not_asked_again() {
        let said = |message: &str| {
            let body = format!(r#"{{"code":422,"reason":"Invalid","message":"{message}"}}"#);
            is_invalid(&Refusal::from_status(422, body.as_bytes()))
        };
        assert!(said(
            "metadata.annotations: Too long: may not be more than 262144 bytes"
        ));
        assert!(!said(r#"admission webhook \"w\" denied the request: no"#));
    }
}
