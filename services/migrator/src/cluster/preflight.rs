//! What is made sure of before the first write of a migration: the rights, and that an object can be written at all.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kindex_kube_api::request::Verb;
use kube::Client;
use kube::api::{Api, PostParams};

use super::discover::VERBS;
use super::objects::{Objects, Page};
use crate::causes::chain;
use crate::run::Verdict;
use crate::run::answer::Written;
use crate::wire::GroupResource;

/// Objects that are tried before it is said that none can be written.
const TRIED_MAX: u32 = 10;

/// Why nothing should be written; `None` where nothing speaks against it. While the API server or a webhook behind it
/// cannot be reached, it waits.
pub(super) async fn preflight(objects: &Objects, resource: &GroupResource) -> Option<Verdict> {
    if let Some(verdict) = forbidden(&objects.client, resource).await {
        return Some(verdict);
    }
    let why = try_some(objects, resource).await?;
    // The right may have been taken since.
    let forbidden = forbidden(&objects.client, resource).await;
    Some(forbidden.unwrap_or(Verdict::Unprepared { why }))
}

/// The verdict where the API server says that a right is missing.
pub(super) async fn forbidden(client: &Client, resource: &GroupResource) -> Option<Verdict> {
    let mut missing = Vec::new();
    for verb in VERBS {
        match is_allowed(client, resource, verb).await {
            Ok(true) => {}
            Ok(false) => missing.push(verb.as_str()),
            Err(error) => {
                let why = chain(&error);
                tracing::info!(%resource, verb = verb.as_str(), why, "The API server does not say what is allowed");
            }
        }
    }
    let why = (!missing.is_empty()).then(|| {
        let verbs = missing.join(" or ");
        format!("this migrator may not {verbs} {resource}: grant it in a ClusterRole; it then goes on by itself")
    });
    why.map(|why| Verdict::Forbidden { why })
}

/// Whether the API server says that every right is there.
pub(super) async fn is_permitted(client: &Client, resource: &GroupResource) -> bool {
    for verb in VERBS {
        if !is_allowed(client, resource, verb).await.unwrap_or(false) {
            return false;
        }
    }
    true
}

async fn is_allowed(client: &Client, resource: &GroupResource, verb: Verb) -> Result<bool, kube::Error> {
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let attributes = ResourceAttributes {
        group: Some(resource.group.clone()),
        resource: Some(resource.resource.clone()),
        verb: Some(verb.as_str().to_owned()),
        ..ResourceAttributes::default()
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer = api.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_none_or(|status| status.allowed))
}

/// Writes one object after the other without storing it, until one could be. A few that are refused are a matter of the
/// migration, which goes on without them.
async fn try_some(objects: &Objects, resource: &GroupResource) -> Option<String> {
    let page = match objects.first(TRIED_MAX).await {
        Page::Of(page) => page,
        Page::Impossible(why) => return Some(format!("{resource} cannot be listed: {why}")),
        Page::GoOn(_) | Page::StartOver => return None,
    };
    let mut last = None;
    for object in &page.items {
        match objects.try_patch(object).await {
            Written::Refused { why } => last = Some(why),
            Written::Rewritten | Written::Unchanged | Written::Conflict | Written::Gone => return None,
        }
    }
    let tried = page.items.len();
    last.map(|why| format!("none of {tried} {resource} could be written in a trial; of the last: {why}"))
}
