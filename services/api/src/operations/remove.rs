//! Deletes one object: a live one by the annotation for the ingester or, where others wait for it or it for others, by
//! a tombstone; an archived one in SQL.

use bytes::Bytes;
use http::{Method, StatusCode};
use kindex_kube_api::patch::PatchType;
use kindex_kube_api::request::Verb;
use kindex_model::head::Head as Leaving;
use kindex_model::object::{Object, ResourceVersion};
use kindex_query::Stored;
use kindex_store::Deletion;
use serde_json::json;

use super::cluster::Call;
use super::objects::Head;
use super::references::{Bounds, LiveObject, references_among};
use super::rights::Wanted;
use super::{Answer, Caller, DeleteOptions, ObjectKey, Operations, Refusal, refusal};

/// How often a deletion is decided anew because somebody else changed the object.
const TRIES: usize = 16;

/// How a live object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The ingester stores it, and then deletes it.
    Annotation,
    /// The cluster deletes it, and our finalizer holds it until SQL has it.
    Tombstone,
    /// The same, and it needs our finalizer first.
    GuardedTombstone,
}

/// How a live object is deleted. One that is final leaves the cluster anyway, by a deletion that is not its end: only
/// the annotation tells the two apart, and only as long as the cluster does not delete it. Its row may be archived
/// already; then the ingester takes a tombstone for its own, also one that is marked, and archives what is to go.
fn way(of_graph: bool, object: Leaving) -> Way {
    match (of_graph && !object.immutable, object.has_finalizer) {
        (false, _) => Way::Annotation,
        (true, true) => Way::Tombstone,
        (true, false) => Way::GuardedTombstone,
    }
}

/// Whether the dependents are to be treated in a way that only a deletion by the cluster knows.
fn is_for_the_cluster(options: &DeleteOptions) -> bool {
    let policy = options.propagation_policy.as_deref();
    !matches!(policy, None | Some("Background")) || options.orphan_dependents == Some(true) || options.is_dry_run()
}

/// Whether an object of this uid and version may be deleted.
fn check_preconditions(options: &DeleteOptions, key: &ObjectKey<'_>, uid: &str, version: &str) -> Result<(), Refusal> {
    let wanted = options.preconditions.clone().unwrap_or_default();
    let differs = |field: &str, wanted: &Option<String>, found: &str| match wanted {
        Some(wanted) if wanted != found => Err(Refusal::conflict(
            key,
            &format!(
                "the {field} in the precondition ({wanted}) does not match the {field} in record ({found}). The object \
                 might have been deleted and then recreated"
            ),
        )),
        Some(_) | None => Ok(()),
    };
    differs("UID", &wanted.uid, uid)?;
    differs("ResourceVersion", &wanted.resource_version, version)
}

impl Operations {
    /// Deletes an object: in the cluster by the annotation that asks the ingester, so that SQL has its final version
    /// before it goes. Where the dependents are to be orphaned or waited for, the cluster deletes it, and our
    /// finalizer holds it until SQL has it; without storage the cluster deletes everything. So it does where the object
    /// is of the graph: its deletionTimestamp is what others act on, and from then on it takes no new references.
    ///
    /// An archived object that references hold stays until the last one is released: the answer then has the code 202.
    ///
    /// # Errors
    /// 404 where neither the cluster nor SQL has it, 409 where a precondition does not hold.
    pub async fn delete(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        options: &DeleteOptions,
    ) -> Result<Answer, Refusal> {
        self.allow(caller, Wanted::at(Verb::Delete, key)).await?;
        if is_for_the_cluster(options) || !self.archives(key.resource.kind) {
            let body = Bytes::from(options.to_json().to_string());
            let call = Call::json(Method::DELETE, key.path(), Vec::new(), body);
            let mut answer = match self.behind(key.resource.kind)?.call(caller, call).await {
                Err(refusal) if refusal.is_of_absent_object() => self.delete_stored(key, options, refusal).await,
                answer => answer,
            }?;
            if options.is_dry_run() {
                answer.warnings.extend(self.forecast(caller, key).await);
            }
            return Ok(answer);
        }
        // The cluster sees what the server does, and the caller needs the right to delete and no other.
        let server = caller.on_behalf();
        for _ in 0..TRIES {
            let done = match self.upstream.call(&server, Call::get(key.path(), Vec::new())).await {
                Ok(found) => self.request_deletion(&server, key, options, found).await?,
                Err(refusal) if refusal.is_of_absent_object() => {
                    return self.delete_stored(key, options, refusal).await;
                }
                Err(refusal) => return Err(refusal),
            };
            if let Some(answer) = done {
                return Ok(answer);
            }
        }
        Err(Refusal::conflict(key, "others change it all the time; try again"))
    }

    async fn request_deletion(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        options: &DeleteOptions,
        found: Answer,
    ) -> Result<Option<Answer>, Refusal> {
        let head = Head::read(&found.text).metadata;
        check_preconditions(options, key, &head.uid, &head.resource_version)?;
        if head.deletion_timestamp.is_some() {
            return Ok(Some(found));
        }
        match self.way_of(key, &found.text) {
            Way::Annotation => {}
            Way::Tombstone => {
                return self
                    .delete_in_cluster(caller, key, &options.of_uid(&head.uid))
                    .await
                    .map(Some);
            }
            Way::GuardedTombstone => {
                // Decided anew with the version that this gives it.
                let guarded = self.guard(caller, key, &found.text).await?;
                let Some(version) = guarded else { return Ok(None) };
                let options = options.of_uid(&head.uid).of_version(&version);
                return self.delete_in_cluster(caller, key, &options).await.map(Some);
            }
        }
        let deleting = self.registry.platform.deleting;
        let mut metadata = json!({"uid": head.uid, "annotations": {deleting: "true"}});
        let version = options
            .preconditions
            .as_ref()
            .and_then(|wanted| wanted.resource_version.as_ref());
        if let Some(version) = version {
            metadata["resourceVersion"] = version.as_str().into();
        }
        let patch = json!({"metadata": metadata}).to_string();
        let call = Call {
            content_type: PatchType::Merge.media_type(),
            ..Call::json(Method::PATCH, key.path(), Vec::new(), Bytes::from(patch))
        };
        self.upstream.call(caller, call).await.map(Some)
    }

    /// What others make of a deletion, for a dry run; nothing for who may not read the object.
    pub(super) async fn forecast(&self, caller: &Caller, key: &ObjectKey<'_>) -> Vec<String> {
        let tree = self.holders(caller, key, Bounds::default()).await;
        tree.map(|tree| tree.forecast()).unwrap_or_default()
    }

    fn way_of(&self, key: &ObjectKey<'_>, text: &[u8]) -> Way {
        let kind = key.resource.kind;
        let text = std::str::from_utf8(text).unwrap_or_default();
        let Ok(object) = Object::parse_str(text) else {
            return Way::Annotation;
        };
        let holders = references_among(&object.metadata.finalizers);
        let of_graph = self.registry.is_of_graph(kind) || !holders.is_empty();
        way(of_graph, Leaving::of(&object, kind, &self.registry.platform))
    }

    /// A deletion as Kubernetes has it: the object stays as a tombstone until nobody holds it.
    async fn delete_in_cluster(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        options: &DeleteOptions,
    ) -> Result<Answer, Refusal> {
        let body = Bytes::from(options.to_json().to_string());
        let call = Call::json(Method::DELETE, key.path(), Vec::new(), body);
        self.upstream.call(caller, call).await
    }

    /// Adds our finalizer to an object that the ingester has not come to yet, so that SQL has its final version before
    /// it goes. The version that it has then; nothing where it changed in between.
    async fn guard(&self, caller: &Caller, key: &ObjectKey<'_>, text: &[u8]) -> Result<Option<String>, Refusal> {
        let object = LiveObject::read(text, key.resource.kind, &self.registry.platform)?;
        let patch = object.with(self.registry.platform.finalizer);
        let call = Call {
            content_type: PatchType::Merge.media_type(),
            ..Call::json(Method::PATCH, key.path(), Vec::new(), patch)
        };
        match self.upstream.call(caller, call).await {
            Ok(answer) => Ok(Some(Head::read(&answer.text).metadata.resource_version)),
            Err(refusal) if refusal.code == 409 || refusal.is_of_absent_object() => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    async fn delete_stored(
        &self,
        key: &ObjectKey<'_>,
        options: &DeleteOptions,
        absent: Refusal,
    ) -> Result<Answer, Refusal> {
        let Some(found) = self.find_archived(key).await? else {
            return Err(absent);
        };
        let shown = self.view(key.resource).shown(&found)?;
        let version = stored_version(&found);
        check_preconditions(options, key, &found.object.metadata.uid.0, &version.to_string())?;
        let mut answer = Answer::found(shown);
        if !options.is_dry_run() {
            let uid = &found.object.metadata.uid;
            let store = self.store()?;
            let (kind, now) = (key.resource.kind, self.now());
            let deleted = match self.buries(kind) {
                true => store
                    .bury_direct(kind, uid, Some(version), now)
                    .await
                    .map(|()| Deletion::Held),
                false => store.delete_direct(kind, uid, Some(version), now).await,
            };
            let deletion = deleted.map_err(|error| refusal::of_store(key, error))?;
            if deletion == Deletion::Held {
                if let Some(recorded) = self.record_deletion(key, &found).await? {
                    answer = Answer::found(recorded);
                }
                answer.code = StatusCode::ACCEPTED.as_u16();
            }
            self.feed()?.nudge();
        }
        Ok(answer)
    }
}

fn stored_version(found: &Stored) -> ResourceVersion {
    found.object.metadata.resource_version
}

#[cfg(test)]
mod tests {
    use super::super::objects::tests::PLATFORM;
    use super::super::token::tests::KIND;
    use super::*;

    #[test]
    fn what_others_wait_for_is_deleted_by_a_tombstone() {
        let object = |immutable, has_finalizer| {
            let finalizers = if has_finalizer {
                json!(["g/Ingester"])
            } else {
                json!([])
            };
            let object =
                json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7", "finalizers": finalizers}});
            let object = Object::parse_str(&object.to_string()).expect("an object");
            Leaving {
                immutable,
                ..Leaving::of(&object, &KIND, &PLATFORM)
            }
        };
        for (of_graph, immutable, has_finalizer, expected) in [
            (false, false, false, Way::Annotation),
            (false, false, true, Way::Annotation),
            (true, false, true, Way::Tombstone),
            (true, false, false, Way::GuardedTombstone),
            (true, true, true, Way::Annotation),
            (true, true, false, Way::Annotation),
        ] {
            assert_eq!(way(of_graph, object(immutable, has_finalizer)), expected);
        }
    }

    /// Orphans and dependents to wait for are the work of the cluster's own garbage collector.
    #[test]
    fn the_cluster_deletes_what_it_alone_can() {
        for (options, is_for_the_cluster) in [
            (json!({}), false),
            (
                json!({"propagationPolicy": "Background", "gracePeriodSeconds": 0}),
                false,
            ),
            (json!({"orphanDependents": false}), false),
            (json!({"dryRun": []}), false),
            (json!({"propagationPolicy": "Foreground"}), true),
            (json!({"propagationPolicy": "Orphan"}), true),
            (json!({"orphanDependents": true}), true),
            (json!({"dryRun": ["All"]}), true),
        ] {
            let read: DeleteOptions = serde_json::from_value(options.clone()).expect("options");
            assert_eq!(super::is_for_the_cluster(&read), is_for_the_cluster, "{options}");
        }
    }
}
