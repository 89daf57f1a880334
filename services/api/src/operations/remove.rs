//! Deletes one object: a live one by the annotation for the ingester or, where others wait for it or it for others, by
//! a tombstone; an archived one in SQL, also while it is still leaving the cluster.

use bytes::Bytes;
use http::{Method, StatusCode};
use kindex_kube_api::identity::Preconditions;
use kindex_kube_api::patch::PatchType;
use kindex_kube_api::request::Verb;
use kindex_model::head::Head as Leaving;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_query::{Life, Stored};
use kindex_store::Deletion;
use serde_json::json;
use tokio::time::Instant;

use super::cluster::Call;
use super::deletion_method::{DeletionMethod, deletion_method, is_for_the_cluster, mark};
use super::objects::Head;
use super::references::{Bounds, LiveObject, Question, references_among};
use super::rights::RequiredPermission;
use super::{Answer, Backends, Caller, DeleteOptions, ObjectKey, Operations, Refusal, refusal};

/// How often a deletion is decided anew because somebody else changed the object.
const TRIES: usize = 16;

/// A deletion that somebody asked for.
struct DeletionRequest {
    /// How. Once an object was found, it is about this one: what has its name next is another one.
    options: DeleteOptions,
    /// The object as it was when its deletion was accepted: with the mark that it got, or as the cluster answered. From
    /// then on it goes, whoever changes it.
    accepted: Option<Answer>,
}

impl DeletionRequest {
    /// The version that the object is to have.
    fn version(&self) -> Option<&str> {
        self.options.preconditions.as_ref()?.resource_version.as_deref()
    }

    /// The object had the version that was asked for, and has another one now.
    fn accept(&mut self, answer: Answer) {
        self.options.preconditions.get_or_insert_default().resource_version = None;
        self.accepted = Some(answer);
    }
}

/// Whether an object of this uid and version may be deleted.
fn check_preconditions(options: &DeleteOptions, key: &ObjectKey<'_>, uid: &str, version: &str) -> Result<(), Refusal> {
    let wanted = options.preconditions.as_ref();
    let preconditions = Preconditions {
        uid: wanted.and_then(|wanted| wanted.uid.as_deref()),
        resource_version: wanted.and_then(|wanted| wanted.resource_version.as_deref()),
    };
    let kind = key.resource.kind;
    Ok(preconditions.check(kind.group, kind.name, key.name, uid, version)?)
}

impl Operations {
    /// Deletes an object: in the cluster by the annotation that asks the ingester, so that SQL has its final version
    /// before it goes. Where the dependents are to be orphaned or waited for, the cluster deletes it, and our
    /// finalizer holds it until SQL has it; without storage the cluster deletes everything. So it does where the object
    /// is of the graph: its deletionTimestamp is what others act on, and from then on it takes no new references. A
    /// final one gets the annotation whoever deletes it, so that it is not archived.
    ///
    /// What is on its way to the archive is deleted there.
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
        self.rights
            .allow(caller, RequiredPermission::at(Verb::Delete, key))
            .await?;
        let mut answer = self.backends.delete_object(caller, key, options).await?;
        if options.is_dry_run() {
            let question = Question::new(Instant::now());
            answer.warnings.extend(self.forecast(&question, caller, key).await);
        }
        Ok(answer)
    }

    /// What others make of a deletion, for a dry run; nothing for who may not read the object.
    pub(super) async fn forecast(&self, question: &Question, caller: &Caller, key: &ObjectKey<'_>) -> Vec<String> {
        let tree = self.holders_in(question, caller, key, Bounds::default()).await;
        tree.map(|tree| tree.forecast()).unwrap_or_default()
    }
}

impl Backends {
    /// Deletes an object for whoever may delete it.
    ///
    /// # Errors
    /// As [`Operations::delete`].
    pub(super) async fn delete_object(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        options: &DeleteOptions,
    ) -> Result<Answer, Refusal> {
        if is_for_the_cluster(options) || !self.archives(key.resource.kind) {
            return self.delete_by_cluster(caller, key, options).await;
        }
        let request = DeletionRequest {
            options: options.clone(),
            accepted: None,
        };
        self.carry_out(caller, key, request, None).await
    }

    /// Has the cluster delete an object in the way that it alone knows. What is final, or on its way to the archive,
    /// would be archived all the same: of that, the deletion is carried out as any other one.
    async fn delete_by_cluster(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        options: &DeleteOptions,
    ) -> Result<Answer, Refusal> {
        let kind = key.resource.kind;
        let is_leaving = |found: &Answer| Head::read(&found.text).metadata.deletion_timestamp.is_some();
        let body = Bytes::from(options.to_json().to_string());
        let call = Call::json(Method::DELETE, key.path(), Vec::new(), body);
        match self.upstream_of(kind)?.call(caller, call).await {
            Ok(found) if self.archives(kind) && !options.is_dry_run() && is_leaving(&found) => {
                let mut request = DeletionRequest {
                    options: options.clone(),
                    accepted: None,
                };
                request.accept(found.clone());
                self.carry_out(caller, key, request, Some(found)).await
            }
            Err(refusal) if refusal.is_of_absent_object() => self.delete_stored(key, options, refusal).await,
            answer => answer,
        }
    }

    /// Decides how an object is deleted, and deletes it, until nobody changes it in between. `found`: as it was seen
    /// just now; otherwise it is read.
    async fn carry_out(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        mut request: DeletionRequest,
        mut found: Option<Answer>,
    ) -> Result<Answer, Refusal> {
        // The cluster sees what the server does, and the caller needs the right to delete and no other.
        let server = caller.on_behalf();
        for _ in 0..TRIES {
            let seen = match found.take() {
                Some(found) => Ok(found),
                None => self.upstream.call(&server, Call::get(key.path(), Vec::new())).await,
            };
            let done = match seen {
                Ok(found) => self.request_deletion(&server, key, &mut request, found).await?,
                Err(refusal) if refusal.is_of_absent_object() => self.delete_absent(key, &request, refusal).await?,
                Err(refusal) => return Err(refusal),
            };
            if let Some(answer) = done {
                return Ok(answer);
            }
        }
        Err(Refusal::conflict(key, "others change it all the time; try again"))
    }

    /// Nothing where somebody else changed the object in between.
    async fn request_deletion(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        request: &mut DeletionRequest,
        found: Answer,
    ) -> Result<Option<Answer>, Refusal> {
        let head = Head::read(&found.text).metadata;
        let is_another = |accepted: &mut Answer| Head::read(&accepted.text).metadata.uid != head.uid;
        if let Some(accepted) = request.accepted.take_if(is_another) {
            // It has gone, and another one has its name.
            return Ok(Some(accepted));
        }
        check_preconditions(&request.options, key, &head.uid, &head.resource_version)?;
        request.options = request.options.of_uid(&head.uid);
        let object = std::str::from_utf8(&found.text).ok();
        let object = object.and_then(|text| Object::parse_str(text).ok());
        let Some(object) = object else {
            return match head.deletion_timestamp {
                Some(_) => Ok(Some(found)),
                None => self.annotate(caller, key, request, &head.uid).await,
            };
        };
        match self.method_of(key, &object) {
            DeletionMethod::Annotation => self.annotate(caller, key, request, &head.uid).await,
            DeletionMethod::Tombstone => self.delete_unmarked(caller, key, request, &head.resource_version).await,
            DeletionMethod::AdoptedTombstone => match self.adopt(caller, key, &found.text).await? {
                Some(version) => self.delete_unmarked(caller, key, request, &version).await,
                None => Ok(None),
            },
            DeletionMethod::MarkedTombstone => self.delete_marked(caller, key, request, &object).await,
            DeletionMethod::Going => Ok(Some(found)),
            DeletionMethod::Leaving { unmarked } => self.delete_leaving(caller, key, &object, found, unmarked).await,
        }
    }

    /// The ingester deletes it, once SQL has its final version. Nothing where it left the cluster in between: if that
    /// was for the archive, the mark came too late, and does not count.
    async fn annotate(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        request: &mut DeletionRequest,
        uid: &str,
    ) -> Result<Option<Answer>, Refusal> {
        let deleting = self.registry.platform.deleting;
        let mut metadata = json!({"uid": uid, "annotations": {deleting: "true"}});
        if let Some(version) = request.version() {
            metadata["resourceVersion"] = version.into();
        }
        let patch = json!({"metadata": metadata}).to_string();
        let marked = match self.send_patch(caller, key, Bytes::from(patch)).await {
            Err(refusal) if refusal.is_of_absent_object() => return Ok(None),
            marked => marked?,
        };
        if Head::read(&marked.text).metadata.deletion_timestamp.is_none() {
            return Ok(Some(marked));
        }
        request.accept(marked);
        Ok(None)
    }

    /// A tombstone of an object that is not final, in the version in which it is not: that of a final one would be
    /// taken for an eviction.
    async fn delete_unmarked(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        request: &DeletionRequest,
        version: &str,
    ) -> Result<Option<Answer>, Refusal> {
        let options = request.options.of_version(version);
        match self.delete_in_cluster(caller, key, &options).await {
            Err(refusal) if refusal.is_of_absent_object() => Ok(None),
            // Where a version was asked for, it is not that one any more.
            Err(refusal) if refusal.is_of_changed_object() && request.version().is_none() => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// A tombstone of a final object, in the version that the mark gives it: whoever takes the mark off makes the
    /// deletion an eviction.
    async fn delete_marked(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        request: &mut DeletionRequest,
        object: &Object,
    ) -> Result<Option<Answer>, Refusal> {
        let Some(marked) = self.mark_final(caller, key, object).await? else {
            return Ok(None);
        };
        let version = Head::read(&marked.text).metadata.resource_version;
        let options = request.options.of_version(&version);
        request.accept(marked);
        match self.delete_in_cluster(caller, key, &options).await {
            Err(refusal) if refusal.is_of_changed_object() => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Deletes what leaves the cluster for the archive: its row is there already, and has the references that are
    /// placed from now on, whatever the annotations say since. Where it is not, the cluster was asked to delete the
    /// object, and it is marked. One whose row is deleted already is not: the mark would bring the row back as long as
    /// the object has references.
    async fn delete_leaving(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        object: &Object,
        found: Answer,
        unmarked: bool,
    ) -> Result<Option<Answer>, Refusal> {
        let row = self.store()?.get_by_id(key.resource.kind, &object.metadata.uid).await;
        match row.map_err(|error| refusal::of_store(key, error))? {
            Some(archived) if archived.life == Life::Archived => self.delete_archived(key, &archived).await,
            Some(deleted) if deleted.life == Life::Deleted => Ok(Some(found)),
            Some(_) | None if unmarked => self.mark_final(caller, key, object).await,
            Some(_) | None => Ok(Some(found)),
        }
    }

    /// The object with the annotation that makes its deletion one; nothing where it changed in between.
    async fn mark_final(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        object: &Object,
    ) -> Result<Option<Answer>, Refusal> {
        let patch = mark(object, &self.registry.platform).to_string();
        match self.send_patch(caller, key, Bytes::from(patch)).await {
            Err(refusal) if refusal.is_of_changed_object() => Ok(None),
            answer => answer.map(Some),
        }
    }

    async fn send_patch(&self, caller: &Caller, key: &ObjectKey<'_>, patch: Bytes) -> Result<Answer, Refusal> {
        let call = Call {
            content_type: PatchType::Merge.media_type(),
            ..Call::json(Method::PATCH, key.path(), Vec::new(), patch)
        };
        self.upstream.call(caller, call).await
    }

    fn method_of(&self, key: &ObjectKey<'_>, object: &Object) -> DeletionMethod {
        let kind = key.resource.kind;
        let holders = references_among(&object.metadata.finalizers);
        let of_graph = self.registry.is_of_graph(kind) || !holders.is_empty();
        deletion_method(of_graph, Leaving::of(object, kind, &self.registry.platform))
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
    async fn adopt(&self, caller: &Caller, key: &ObjectKey<'_>, text: &[u8]) -> Result<Option<String>, Refusal> {
        let object = LiveObject::read(text, key.resource.kind, &self.registry.platform)?;
        let patch = object.with(self.registry.platform.finalizer);
        match self.send_patch(caller, key, patch).await {
            Ok(answer) => Ok(Some(Head::read(&answer.text).metadata.resource_version)),
            Err(refusal) if refusal.is_of_changed_object() => Ok(None),
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
        let version = stored_version(&found);
        check_preconditions(options, key, &found.object.metadata.uid.0, &version.to_string())?;
        match options.is_dry_run() {
            true => Ok(Answer::found(self.view(key.resource).shown(&found)?)),
            false => self.delete_row(key, &found).await,
        }
    }

    /// Deletes what the cluster has no more. Where its deletion was accepted, it has gone: for the archive, if it was
    /// on its way there by then.
    async fn delete_absent(
        &self,
        key: &ObjectKey<'_>,
        request: &DeletionRequest,
        absent: Refusal,
    ) -> Result<Option<Answer>, Refusal> {
        let Some(accepted) = &request.accepted else {
            return self.delete_stored(key, &request.options, absent).await.map(Some);
        };
        let uid = Uid::from(&*Head::read(&accepted.text).metadata.uid);
        let row = self.store()?.get_by_id(key.resource.kind, &uid).await;
        match row.map_err(|error| refusal::of_store(key, error))? {
            Some(archived) if archived.life == Life::Archived => self.delete_archived(key, &archived).await,
            Some(_) | None => Ok(Some(accepted.clone())),
        }
    }

    /// Deletes an archived object; nothing where its row changed in between.
    async fn delete_archived(&self, key: &ObjectKey<'_>, found: &Stored) -> Result<Option<Answer>, Refusal> {
        match self.delete_row(key, found).await {
            Err(refusal) if refusal.is_of_changed_object() => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Deletes an archived object, if its row is as it was found.
    async fn delete_row(&self, key: &ObjectKey<'_>, found: &Stored) -> Result<Answer, Refusal> {
        let mut answer = Answer::found(self.view(key.resource).shown(found)?);
        let (uid, version) = (&found.object.metadata.uid, stored_version(found));
        let store = self.store()?;
        let (kind, now) = (key.resource.kind, self.now());
        let deleted = match self.needs_tombstone(kind) {
            true => store
                .make_tombstone(kind, uid, Some(version), now)
                .await
                .map(|()| Deletion::Held),
            false => store.delete_direct(kind, uid, Some(version), now).await,
        };
        let deletion = deleted.map_err(|error| refusal::of_store(key, error))?;
        if deletion == Deletion::Held {
            if let Some(recorded) = self.record_deletion(key, found).await? {
                answer = Answer::found(recorded);
            }
            answer.code = StatusCode::ACCEPTED.as_u16();
        }
        self.feed()?.nudge();
        Ok(answer)
    }
}

fn stored_version(found: &Stored) -> ResourceVersion {
    found.object.metadata.resource_version
}
