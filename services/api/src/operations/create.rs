//! Creates an object with a finalizer of ours: in the cluster, if no archived object has its name, or only in SQL.
//! Without storage, creates it unchanged.

use bytes::Bytes;
use http::Method;
use kindex_kube_api::request::Verb;
use kindex_model::kind::Kind;

use super::cluster::Call;
use super::objects::{name_of, with_finalizer};
use super::references::may_name_in;
use super::rights::RequiredPermission;
use super::{Answer, Backends, Caller, ObjectKey, Operations, Part, Refusal, Resource, WriteOptions};

impl Operations {
    /// Creates an object from its JSON text.
    ///
    /// # Errors
    /// `AlreadyExists` also where the name belongs to an archived object; `Conflict` where a field names an object that
    /// is being deleted.
    pub async fn create(
        &self,
        caller: &Caller,
        resource: impl Into<Resource>,
        namespace: &str,
        text: &str,
        options: &WriteOptions,
    ) -> Result<Answer, Refusal> {
        let resource = resource.into();
        self.rights
            .allow(caller, RequiredPermission::of(Verb::Create, resource, Some(namespace)))
            .await?;
        let adopted = match self.backends.finalizer_of(resource.kind) {
            Some(finalizer) => with_finalizer(text, &finalizer)?,
            None => text.to_owned(),
        };
        let name = name_of(text);
        let key = ObjectKey {
            resource,
            namespace,
            name: &name,
        };
        let backends = &self.backends;
        self.refuse_child(caller, &key, text).await?;
        // Last: an object of that name may be archived meanwhile.
        backends.refuse_archived_name(&key).await?;
        let path = resource.collection(Some(namespace));
        let call = Call::json(Method::POST, path, options.query(), Bytes::from(adopted));
        backends.upstream_of(resource.kind)?.call(caller, call).await
    }

    async fn refuse_child(&self, caller: &Caller, key: &ObjectKey<'_>, text: &str) -> Result<(), Refusal> {
        match may_name_in(key.resource, Part::Main) {
            true => self.named_objects().refuse_child(caller, key, text).await,
            false => Ok(()),
        }
    }
}

impl Backends {
    async fn refuse_archived_name(&self, key: &ObjectKey<'_>) -> Result<(), Refusal> {
        let may_be_taken = self.archives(key.resource.kind) && !key.name.is_empty();
        match may_be_taken && self.find_archived_together(key).await?.is_some() {
            true => Err(Refusal::already_exists(key)),
            false => Ok(()),
        }
    }

    /// The finalizer that objects of a kind have from their creation on, so that none goes unseen: the ingester's in a
    /// cluster. Of what is only in SQL, `kindex deletion` has to see the end, where deletions wait for each other.
    pub(super) fn finalizer_of(&self, kind: &Kind) -> Option<String> {
        let platform = &self.registry.platform;
        if self.archives(kind) {
            return Some(platform.finalizer.to_owned());
        }
        let has_deletion_finalizer = !kind.cluster && self.graph.is_there && self.registry.is_of_graph(kind);
        has_deletion_finalizer.then(|| format!("{}/deletion", platform.group))
    }
}
