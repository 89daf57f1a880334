//! Deletes a collection: first the objects in the cluster, each like a single deletion, then the archived ones.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use http::Method;
use kindex_kube_api::request::{Verb, parameter};
use kindex_kube_api::status::Status;
use kindex_model::kind::Scope;
use kindex_store::DeleteCollection;
use tokio::time::{Instant, timeout};

use super::cluster::Call;
use super::list::Page;
use super::objects::Head;
use super::references::Question;
use super::rights::RequiredPermission;
use super::selection::{Selected, select, selectors};
use super::{
    Answer, Backends, Caller, DeleteOptions, ListOptions, ObjectKey, Operations, Reason, Refusal, Resource, refusal,
};

/// Objects of the cluster that are deleted at once.
const AT_ONCE: usize = 8;
/// Objects at most of which a dry run says what their deletions would come to.
const FORECASTS_MAX: u32 = 20;
/// Lines of that at most: clients may refuse an answer of a hundred headers.
const LINES_MAX: usize = 40;

/// For how long they are looked for: longer than the question that they are asks other services.
const FORECASTS_TIME_MAX: Duration = Duration::from_secs(15);

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
        let permission = RequiredPermission::of(Verb::DeleteCollection, resource, which.namespace.as_deref());
        self.rights.allow(caller, permission).await?;
        // Refused before anything is deleted.
        let Selected { select, rest } = select(resource, which)?;
        if let Some(field) = rest.fields().first() {
            return Err(Refusal::bad_request(format!(
                "a collection of archived objects cannot be deleted by {field} of {}, whose values differ from those of \
                 {}: select by a field of that version",
                resource.version, kind.version
            )));
        }
        if options.is_dry_run() || !self.backends.archives(kind) {
            let body = Bytes::from(options.to_json().to_string());
            let path = resource.collection(which.namespace.as_deref());
            let call = Call::json(Method::DELETE, path, selectors(which), body);
            let mut answer = self.backends.upstream_of(kind)?.call(caller, call).await?;
            if options.is_dry_run() {
                answer.warnings.extend(self.forecasts(caller, resource, which).await);
            }
            return Ok(answer);
        }
        // It takes the right to delete collections, and no right to each of its objects.
        let (server, page_objects) = (caller.on_behalf(), self.sizes.deleted);
        self.backends
            .clear_cluster(&server, resource, which, options, page_objects)
            .await?;
        let request = DeleteCollection {
            select,
            everything: kind.scope == Scope::Cluster,
            needs_tombstones: self.backends.needs_tombstone(kind),
            rows: page_objects,
        };
        let mut token = None;
        let store = self.backends.store()?;
        loop {
            let now = self.backends.now();
            let done = store.delete_collection(&request, token.as_deref(), now).await;
            token = done.map_err(|error| refusal::of_query(&error))?.continue_token;
            self.backends.feed()?.nudge();
            if token.is_none() {
                break;
            }
        }
        Ok(Answer::found(
            Status::deleted(refusal::group_resource(kind), "", "").to_json(),
        ))
    }

    /// What others make of the deletions of a collection, for a dry run: of the first objects, each as if it were
    /// deleted alone. All are one question: a service that is silent keeps none but the first of them waiting. Nothing
    /// for who may not list the collection.
    async fn forecasts(&self, caller: &Caller, resource: Resource, which: &ListOptions) -> Vec<String> {
        let first = ListOptions {
            limit: FORECASTS_MAX,
            ..which.clone()
        };
        let Ok(listed) = self.list(caller, resource, &first).await else {
            return Vec::new();
        };
        let heads = listed.items.iter().map(|item| Head::read(item.as_bytes()).metadata);
        let heads: Vec<_> = heads.collect();
        let question = &Question::new(Instant::now());
        let lines = stream::iter(heads)
            .map(|head| async move {
                let key = ObjectKey {
                    resource,
                    namespace: &head.namespace,
                    name: &head.name,
                };
                self.forecast(question, caller, &key).await
            })
            .buffered(AT_ONCE)
            .collect::<Vec<Vec<String>>>();
        match timeout(FORECASTS_TIME_MAX, lines).await {
            Ok(lines) => shortened(lines.concat(), !listed.continue_token.is_empty()),
            Err(_) => vec![format!(
                "what would be deleted with it could not be found within {} s",
                FORECASTS_TIME_MAX.as_secs()
            )],
        }
    }
}

impl Backends {
    /// Deletes what the selectors find in the cluster, page by page of so many objects.
    async fn clear_cluster(
        &self,
        caller: &Caller,
        resource: Resource,
        which: &ListOptions,
        options: &DeleteOptions,
        page_objects: u32,
    ) -> Result<(), Refusal> {
        let mut token = String::new();
        loop {
            let mut query = selectors(which);
            query.push((parameter::LIMIT, page_objects.to_string()));
            if !token.is_empty() {
                query.push((parameter::CONTINUE, token));
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
                    match self.delete_object(caller, &key, &options.of_uid(&head.uid)).await {
                        // Gone, or another by now: what was to be deleted is not there.
                        Err(refusal) if refusal.is_of_changed_object() => Ok(()),
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

/// Each line once, as many as an answer may have. `more`: there are objects that were not looked at, which comes first,
/// since gRPC gives fewer lines than HTTP.
fn shortened(lines: Vec<String>, more: bool) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    for line in lines {
        if !shown.contains(&line) {
            shown.push(line);
        }
    }
    let rest = shown.len().saturating_sub(LINES_MAX);
    shown.truncate(LINES_MAX);
    if rest > 0 {
        shown.push(format!("and {rest} more: delete with dryRun=All one by one"));
    }
    if more {
        let note = format!("more than {FORECASTS_MAX} objects would be deleted: only the first of them are looked at");
        shown.insert(0, note);
    }
    shown
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forecasts_have_an_end_and_say_what_is_left_out() {
        let lines = |count: usize| (0..count).map(|line| line.to_string()).collect::<Vec<_>>();
        assert_eq!(shortened(lines(LINES_MAX), false), lines(LINES_MAX));
        let twice = [lines(2), lines(2)].concat();
        assert_eq!(shortened(twice, false), lines(2), "each once");
        let many = shortened(lines(LINES_MAX + 3), true);
        assert_eq!(
            many[0],
            "more than 20 objects would be deleted: only the first of them are looked at"
        );
        assert_eq!(many[1..=LINES_MAX], lines(LINES_MAX));
        let rest = ["and 3 more: delete with dryRun=All one by one"];
        assert_eq!(many[LINES_MAX + 1..], rest);
    }
}
