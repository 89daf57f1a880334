//! Which mutating webhooks are asked when an object of a resource is written.

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, RuleWithOperations};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};

use crate::wire::GroupResource;

/// What a webhook's rule says that is sent to it.
/// <https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-rules>
#[derive(Clone, Copy)]
enum Operation {
    All,
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "*" => Self::All,
            "CREATE" => Self::Create,
            "UPDATE" => Self::Update,
            "DELETE" => Self::Delete,
            "CONNECT" => Self::Connect,
            _ => return None,
        })
    }

    const fn has_updates(self) -> bool {
        match self {
            Self::All | Self::Update => true,
            Self::Create | Self::Delete | Self::Connect => false,
        }
    }
}

/// The webhooks that may change objects of a resource at every write, for people.
pub(super) async fn suspects(client: &Client, resource: &GroupResource) -> String {
    let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let named = match api.list(&ListParams::default()).await {
        Ok(listed) => named(&listed.items, resource),
        Err(error) => {
            tracing::info!(%error, "The mutating webhooks cannot be listed");
            Vec::new()
        }
    };
    match named.as_slice() {
        [] => "a mutating webhook".to_owned(),
        [one] => format!("the mutating webhook {one}"),
        several => format!("one of the mutating webhooks {}", several.join(", ")),
    }
}

/// `configuration/webhook` of each that updates of the resource are sent to.
fn named(configurations: &[MutatingWebhookConfiguration], resource: &GroupResource) -> Vec<String> {
    let mut named = Vec::new();
    for configuration in configurations {
        for webhook in configuration.webhooks.iter().flatten() {
            let mut rules = webhook.rules.iter().flatten();
            if rules.any(|rule| concerns(rule, resource)) {
                named.push(format!("{}/{}", configuration.name_any(), webhook.name));
            }
        }
    }
    named
}

fn concerns(rule: &RuleWithOperations, resource: &GroupResource) -> bool {
    let has = |values: &Option<Vec<String>>, wanted: &[&str]| {
        let mut values = values.iter().flatten();
        values.any(|value| wanted.contains(&value.as_str()))
    };
    let operations = rule.operations.iter().flatten();
    let mut operations = operations.filter_map(|text| Operation::parse(text));
    operations.any(Operation::has_updates)
        && has(&rule.api_groups, &[&resource.group, "*"])
        && has(&rule.resources, &[&resource.resource, "*", "*/*"])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn configuration(rule: Value) -> MutatingWebhookConfiguration {
        let webhook = json!({"name": "stamp.example.com", "rules": [rule], "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://stamp"}});
        let json = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "stamps"}, "webhooks": [webhook]});
        serde_json::from_value(json).expect("a configuration")
    }

    #[test]
    fn a_webhook_is_named_where_updates_of_the_resource_are_sent_to_it() {
        let pets = GroupResource {
            group: "zoo".to_owned(),
            resource: "pets".to_owned(),
        };
        for (operation, group, resource, expected) in [
            ("UPDATE", "zoo", "pets", true),
            ("*", "*", "*/*", true),
            ("CREATE", "zoo", "pets", false),
            ("DELETE", "zoo", "pets", false),
            ("CONNECT", "zoo", "pets", false),
            ("UPDATE", "shop", "pets", false),
            ("UPDATE", "zoo", "pets/status", false),
        ] {
            let rule = json!({"operations": [operation], "apiGroups": [group], "apiVersions": ["v1"],
                "resources": [resource]});
            let named = named(&[configuration(rule)], &pets);
            let expected = if expected {
                vec!["stamps/stamp.example.com"]
            } else {
                Vec::new()
            };
            assert_eq!(named, expected, "{operation} {group} {resource}");
        }
    }
}
