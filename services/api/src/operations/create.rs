//! Creates an object in the cluster, with our finalizer, if no archived object has its name. Without storage, creates
//! it unchanged.

use bytes::Bytes;
use http::Method;
use kindex_kube_api::request::Verb;

use super::cluster::Call;
use super::objects::{Head, with_finalizer};
use super::rights::Wanted;
use super::{Answer, Caller, ObjectKey, Operations, Refusal, Resource, WriteOptions};

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
        self.allow(caller, Wanted::of(Verb::Create, resource, Some(namespace)))
            .await?;
        let path = resource.collection(Some(namespace));
        if !self.archives(resource.kind) {
            let call = Call::json(Method::POST, path, options.query(), Bytes::from(text.to_owned()));
            return self.behind(resource.kind)?.call(caller, call).await;
        }
        let guarded = with_finalizer(text, &self.registry.platform)?;
        let head = Head::read(text.as_bytes());
        let name = head.metadata.name.as_str();
        let key = ObjectKey {
            resource,
            namespace,
            name,
        };
        if self.may_move(&key) {
            self.refuse_child(caller, &key, text).await?;
        }
        if !name.is_empty() {
            let is_free = self.names.is_free(self.store()?, &key).await?;
            if !is_free && self.find_archived(&key).await?.is_some() {
                return Err(Refusal::already_exists(&key));
            }
        }
        let call = Call::json(Method::POST, path, options.query(), Bytes::from(guarded));
        self.upstream.call(caller, call).await
    }
}
