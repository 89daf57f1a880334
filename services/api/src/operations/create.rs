//! Creates an object with a finalizer of ours: in the cluster, if no archived object has its name, or only in SQL.
//! Without storage, creates it unchanged.

use bytes::Bytes;
use http::Method;
use kindex_kube_api::names;
use kindex_kube_api::request::Verb;
use kindex_kube_api::status::Outcome;
use kindex_model::kind::Kind;

use super::cluster::Call;
use super::objects::{generate_name_of, name_of, with_finalizer, with_name};
use super::references::may_name_in;
use super::rights::RequiredPermission;
use super::{Answer, Backends, Caller, ObjectKey, Operations, Part, Refusal, Resource, WriteOptions};

/// How often a name is made for an object that has none, because the last one was taken; as often as kube-apiserver.
const GENERATED_NAMES_MAX: usize = 8;

impl Operations {
    /// Creates an object from its JSON text. What is to get a name gets it here, where it is known which ones archived
    /// objects have.
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
        let (name, base) = (name_of(text), generate_name_of(text));
        let key = ObjectKey {
            resource,
            namespace,
            name: &name,
        };
        if !name.is_empty() || base.is_empty() || !self.backends.archives(resource.kind) {
            return self.create_named(caller, &key, text, options).await;
        }
        let mut names_left = GENERATED_NAMES_MAX;
        loop {
            names_left -= 1;
            let name = names::generated(&base, (self.backends.suffixes)());
            let (key, named) = (ObjectKey { name: &name, ..key }, with_name(text, &name)?);
            let created = self.create_named(caller, &key, &named, options).await;
            let refusal = created.as_ref().err();
            let is_taken = refusal.is_some_and(|refusal| refusal.outcome() == Outcome::AlreadyExists);
            if !is_taken || names_left == 0 {
                return created;
            }
        }
    }

    async fn create_named(
        &self,
        caller: &Caller,
        key: &ObjectKey<'_>,
        text: &str,
        options: &WriteOptions,
    ) -> Result<Answer, Refusal> {
        let ObjectKey {
            resource, namespace, ..
        } = *key;
        let adopted = match self.backends.finalizer_of(resource.kind) {
            Some(finalizer) => with_finalizer(text, &finalizer)?,
            None => text.to_owned(),
        };
        let backends = &self.backends;
        self.refuse_child(caller, key, text).await?;
        // Last: an object of that name may be archived meanwhile.
        backends.refuse_archived_name(key).await?;
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
