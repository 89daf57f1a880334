//! What is made sure of before the first write of a migration: the rights, and that an object can be written at all.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, PostParams};

use super::objects::{Objects, Page};
use crate::run::answer::Written;
use crate::wire::GroupResource;

/// What a migration does with the objects of its resource.
const VERBS: [&str; 2] = ["list", "patch"];
/// Objects that are tried before it is said that none can be written.
const TRIED_MAX: u32 = 10;

/// Why nothing should be written; `None` where nothing speaks against it. While the API server or a webhook behind it
/// cannot be reached, it waits.
pub(super) async fn preflight(objects: &Objects, resource: &GroupResource) -> Option<String> {
    let missing = missing(&objects.client, resource).await;
    if !missing.is_empty() {
        return Some(format!(
            "this migrator may not {} {resource}: grant it in a ClusterRole",
            missing.join(" or ")
        ));
    }
    try_some(objects, resource).await
}

async fn missing(client: &Client, resource: &GroupResource) -> Vec<&'static str> {
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let mut missing = Vec::new();
    for verb in VERBS {
        let attributes = ResourceAttributes {
            group: Some(resource.group.clone()),
            resource: Some(resource.resource.clone()),
            verb: Some(verb.to_owned()),
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        match api.create(&PostParams::default(), &review).await {
            Ok(answer) if answer.status.as_ref().is_some_and(|status| !status.allowed) => missing.push(verb),
            Ok(_) => {}
            Err(error) => tracing::info!(%resource, verb, %error, "The API server does not say what is allowed"),
        }
    }
    missing
}

/// Writes one object after the other without storing it, until one could be. A few that are refused are a matter of the
/// migration, which goes on without them.
async fn try_some(objects: &Objects, resource: &GroupResource) -> Option<String> {
    let page = match objects.page(None, TRIED_MAX).await {
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
