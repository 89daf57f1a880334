//! Deletes a collection: first the objects in the cluster, each like a single deletion, then the archived ones.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use http::Method;
use kindex_kube_api::request::Verb;
use kindex_kube_api::status::Status;
use kindex_model::kind::Scope;
use kindex_store::DeleteCollection;

use super::cluster::Call;
use super::list::Page;
use super::objects::Head;
use super::rights::Wanted;
use super::selection::{Selected, select, selectors};
use super::{Answer, Caller, DeleteOptions, ListOptions, ObjectKey, Operations, Reason, Refusal, Resource, refusal};

/// Objects of the cluster that are deleted at once.
const AT_ONCE: usize = 8;

impl Operations {
    /// Deletes all objects that the selectors find in a namespace; the same selectors for both places.
    ///
    /// # Errors
    /// 405 where objects of all namespaces are meant: Kubernetes has no such request.
    pub async fn delete_collection(
        &self,
        caller: &Caller,
        resource: impl Into<Resource>,
        which: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Answer, Refusal> {
        let resource = resource.into();
        let kind = resource.kind;
        if kind.scope == Scope::Namespaced && which.namespace.is_none() {
            return Err(Refusal::method_not_allowed());
        }
        if which.include_deleted || which.at.is_some() {
            return Err(Refusal::bad_request(
                "deletecollection does not take includeDeleted and at",
            ));
        }
        self.allow(
            caller,
            Wanted::of(Verb::DeleteCollection, resource, which.namespace.as_deref()),
        )
        .await?;
        // Refused before anything is deleted.
        let Selected { select, rest } = select(resource, which)?;
        if let Some(field) = rest.fields().first() {
            return Err(Refusal::bad_request(format!(
                "a collection of archived objects cannot be deleted by {field} of {}, whose values differ from those of \
                 {}: select by a field of that version",
                resource.version, kind.version
            )));
        }
        if options.is_dry_run() || !self.archives(kind) {
            let body = Bytes::from(options.to_json().to_string());
            let path = resource.collection(which.namespace.as_deref());
            let call = Call::json(Method::DELETE, path, selectors(which), body);
            return self.behind(kind)?.call(caller, call).await;
        }
        // It takes the right to delete collections, and no right to each of its objects.
        self.clear_cluster(&caller.on_behalf(), resource, which, options)
            .await?;
        let request = DeleteCollection {
            select,
            everything: kind.scope == Scope::Cluster,
            buries: self.buries(kind),
            rows: self.sizes.deleted,
        };
        let mut token = None;
        loop {
            let done = self
                .store()?
                .delete_collection(&request, token.as_deref(), self.now())
                .await;
            token = done.map_err(|error| refusal::of_query(&error))?.continue_token;
            self.feed()?.nudge();
            if token.is_none() {
                break;
            }
        }
        Ok(Answer::found(Status::deleted(refusal::named(kind), "", "").to_json()))
    }

    async fn clear_cluster(
        &self,
        caller: &Caller,
        resource: Resource,
        which: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<(), Refusal> {
        let mut token = String::new();
        loop {
            let mut query = selectors(which);
            query.push(("limit", self.sizes.deleted.to_string()));
            if !token.is_empty() {
                query.push(("continue", token));
            }
            let path = resource.collection(which.namespace.as_deref());
            let page = Page::read(&self.upstream.call(caller, Call::get(path, query)).await?)?;
            token = page.next().unwrap_or_default().to_owned();
            let heads = page.0.items.unwrap_or_default().into_iter();
            let heads = heads.map(|item| Head::read(item.get().as_bytes()).metadata);
            stream::iter(heads)
                .map(|head| async move {
                    let key = ObjectKey {
                        resource,
                        namespace: &head.namespace,
                        name: &head.name,
                    };
                    match self.delete(caller, &key, &options.of_uid(&head.uid)).await {
                        // Gone, or another by now: what was to be deleted is not there.
                        Err(refusal) if matches!(refusal.code, 404 | 409) => Ok(()),
                        done => done.map(drop),
                    }
                })
                .buffer_unordered(AT_ONCE)
                .try_collect::<()>()
                .await?;
            if token.is_empty() {
                return Ok(());
            }
        }
    }
}

impl Refusal {
    /// 405.
    pub fn method_not_allowed() -> Self {
        Self::new(
            Reason::MethodNotAllowed,
            "the server does not allow this method on the requested resource",
        )
    }
}
