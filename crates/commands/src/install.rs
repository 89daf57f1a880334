//! Installs the kinds' CRDs into a cluster and waits until they are served. A CRD
//! that others installed is left as it is.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kindex_kube_client::{Outcome, look_up, outcome};
use kindex_model::kind::{Kind, Registry};
use kube::api::{Patch, PatchParams};
use kube::runtime::{conditions, wait::await_condition};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use tracing::info;

use crate::error::{CommandError, CommandResult, chain};

/// Who applies CRDs and samples, in `metadata.managedFields`.
pub const FIELD_MANAGER: &str = "kindex";
/// The label of definitions that are Kindex's own.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Where a schema has its rules in CEL.
const RULES: &str = "x-kubernetes-validations";
const ESTABLISH_TIMEOUT: Duration = Duration::from_secs(30);

/// Who owns the cluster that the CRDs are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterOwner {
    /// The embedded one: CRDs that others define are installed as crds.toml names them.
    Kindex,
    /// A cluster of the user: whoever defines CRDs installs them, now or later.
    User,
}

/// Installs what is absent, updates what is ours, and waits for all of it. A kind whose CRD others define and have not
/// installed is left to the ingester, which waits for it.
pub async fn crds(client: &Client, registry: &Registry, owner: ClusterOwner) -> CommandResult {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut awaited = Vec::new();
    for kind in registry.cluster_kinds() {
        let manifest = match (kind.manifest, owner) {
            ("", ClusterOwner::Kindex) => registry.foreign_manifest(kind),
            ("", ClusterOwner::User) => None,
            (manifest, _) => Some(manifest),
        };
        if crd(&api, kind, manifest, owner).await? {
            awaited.push(kind.crd_name());
        }
    }
    for name in awaited {
        let established = await_condition(api.clone(), &name, conditions::is_crd_established());
        match tokio::time::timeout(ESTABLISH_TIMEOUT, established).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(CommandError::failure(format_args!("{name}: {}", chain(&error)))),
            Err(_) => {
                return Err(CommandError::failure(format_args!(
                    "{name}: the cluster does not serve this CRD after {} s",
                    ESTABLISH_TIMEOUT.as_secs()
                ))
                .hint(format_args!("look at the conditions with: kubectl describe crd {name}")));
            }
        }
    }
    Ok(())
}

/// Whether the CRD is there now.
async fn crd(
    api: &Api<CustomResourceDefinition>,
    kind: &Kind,
    manifest: Option<&str>,
    owner: ClusterOwner,
) -> CommandResult<bool> {
    let name = kind.crd_name();
    let failed = |error: &dyn std::error::Error| CommandError::failure(format_args!("CRD {name}: {}", chain(error)));
    let present = look_up(api, &name).await.map_err(|error| failed(&error))?;
    let Some(manifest) = manifest else {
        return Ok(present.is_some());
    };
    if let Some(present) = &present
        && present.labels().get(MANAGED_BY).map(String::as_str) != Some(FIELD_MANAGER)
    {
        info!(crd = name, "The CRD was installed by others and stays as it is");
        return Ok(true);
    }
    let manifest: Value = serde_saphyr::from_str(manifest).map_err(|error| failed(&error))?;
    let mut manifest = as_written(manifest);
    manifest["metadata"]["labels"][MANAGED_BY] = FIELD_MANAGER.into();
    if present.as_ref().is_some_and(names_url) {
        leave_service_out(&mut manifest);
    }
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    let refused = match api.patch(&name, &parameters, &Patch::Apply(&manifest)).await {
        Ok(_) => return Ok(true),
        Err(error) => error,
    };
    let is_invalid = outcome(&refused) == Some(Outcome::Invalid);
    if owner == ClusterOwner::User || !is_invalid || take_rules(&mut manifest) == 0 {
        return Err(failed(&refused));
    }
    info!(
        crd = name,
        refused = %chain(&refused),
        "The embedded cluster does not evaluate all validation rules (CEL) of this CRD: it is installed without them"
    );
    api.patch(&name, &parameters, &Patch::Apply(&manifest))
        .await
        .map_err(|error| failed(&error))?;
    Ok(true)
}

/// A manifest as its author wrote it, where it was saved from a cluster: an identity that another cluster gave is of no
/// object here.
fn as_written(mut manifest: Value) -> Value {
    if let Some(fields) = manifest.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = manifest["metadata"].as_object_mut() {
        metadata.retain(|field, _| ["name", "labels", "annotations"].contains(&field.as_str()));
    }
    manifest
}

/// Whether API servers ask the conversion webhook by a URL, as `kindex migrator --webhook-address` writes it.
fn names_url(present: &CustomResourceDefinition) -> bool {
    let webhook = present.spec.conversion.as_ref().and_then(|it| it.webhook.as_ref());
    let config = webhook.and_then(|webhook| webhook.client_config.as_ref());
    config.is_some_and(|config| config.url.is_some())
}

/// A webhook has a URL or a Service, and the one that is in the cluster stays.
fn leave_service_out(manifest: &mut Value) {
    if let Some(config) = manifest.pointer_mut("/spec/conversion/webhook/clientConfig")
        && let Some(config) = config.as_object_mut()
    {
        config.remove("service");
    }
}

/// Takes the lists of rules away; how many there were.
fn take_rules(value: &mut Value) -> usize {
    match value {
        Value::Object(fields) => {
            let own = fields.get(RULES).is_some_and(Value::is_array);
            if own {
                fields.remove(RULES);
            }
            usize::from(own) + fields.values_mut().map(take_rules).sum::<usize>()
        }
        Value::Array(items) => items.iter_mut().map(take_rules).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use kindex_cluster::ClusterOptions;
    use kindex_embedded::Embedded;
    use kindex_model::kind::ForeignManifest;
    use kube::api::ListParams;

    use super::*;

    /// As it was saved from another cluster, with rules in CEL.
    const CERTIFICATES: &str = include_str!("../../../kindex/tests/up/certificates.yaml");

    /// Models, and certificates that somebody else defines.
    fn registry() -> Registry {
        let model = &kindex_generated::kinds::model::KIND;
        let certificate = Kind {
            name: "Certificate",
            group: "cert-manager.io",
            version: "v1",
            plural: "certificates",
            singular: "certificate",
            manifest: "",
            ..*model
        };
        Registry {
            kinds: Box::leak(Box::new([Box::leak(Box::new(certificate)), model])),
            foreign: &[ForeignManifest {
                kind: "Certificate",
                manifest: CERTIFICATES,
            }],
            ..kindex_generated::registry()
        }
    }

    /// Models, whose versions a webhook converts.
    fn converted() -> (&'static Kind, Registry) {
        const SPEC: &str = "\nspec:\n";
        let webhook = "conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: \
                       {name: kindex-migrator, namespace: kindex, path: /convert}}}}";
        let model = &kindex_generated::kinds::model::KIND;
        assert_eq!(model.manifest.matches(SPEC).count(), 1, "its own");
        let manifest = model.manifest.replace(SPEC, &format!("{SPEC}  {webhook}\n"));
        let model: &Kind = Box::leak(Box::new(Kind {
            manifest: Box::leak(manifest.into_boxed_str()),
            ..*model
        }));
        let registry = Registry {
            kinds: Box::leak(Box::new([model])),
            ..kindex_generated::registry()
        };
        (model, registry)
    }

    #[tokio::test]
    async fn a_crd_of_others_is_installed_where_the_cluster_is_ours_and_awaited_nowhere() {
        let (cluster, _) = Embedded::serve(ClusterOptions::default(), std::future::pending()).await;
        let client = Client::try_from(cluster.config()).expect("a client");
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let registry = registry();
        crds(&client, &registry, ClusterOwner::User)
            .await
            .expect("nobody waits for it");
        let names = async || {
            let found = api.list_metadata(&ListParams::default()).await.expect("a list");
            found.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
        };
        assert_eq!(names().await, ["models.michelangelo.api"]);
        crds(&client, &registry, ClusterOwner::Kindex).await.expect("installed");
        assert_eq!(
            names().await,
            ["certificates.cert-manager.io", "models.michelangelo.api"]
        );
        let certificates = crate::client::all(&client, registry.kinds[0]);
        assert!(
            certificates.list(&ListParams::default()).await.is_ok(),
            "certificates are served"
        );
    }

    #[tokio::test]
    async fn a_webhook_that_is_asked_by_a_url_stays_where_the_crd_is_installed_anew() {
        let (cluster, _) = Embedded::serve(ClusterOptions::default(), std::future::pending()).await;
        let client = Client::try_from(cluster.config()).expect("a client");
        let (model, registry) = converted();
        crds(&client, &registry, ClusterOwner::User).await.expect("installed");
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let config = serde_json::json!({"url": "https://127.0.0.1:1/convert", "service": null, "caBundle": "cGVt"});
        let patch = serde_json::json!({"spec": {"conversion": {"webhook": {"clientConfig": config}}}});
        let address = |patched: kube::Result<CustomResourceDefinition>| {
            let conversion = patched.expect("a definition").spec.conversion.expect("it converts");
            let config = conversion
                .webhook
                .and_then(|webhook| webhook.client_config)
                .expect("by a webhook");
            (config.url, config.service.map(|service| service.name), config.ca_bundle)
        };
        let patched = api
            .patch(&model.crd_name(), &PatchParams::default(), &Patch::Merge(patch))
            .await;
        let by_url = address(patched);
        assert_eq!(
            (by_url.0.as_deref(), &by_url.1),
            (Some("https://127.0.0.1:1/convert"), &None)
        );
        for owner in [ClusterOwner::User, ClusterOwner::Kindex] {
            crds(&client, &registry, owner).await.expect("installed anew");
            assert_eq!(address(api.get(&model.crd_name()).await), by_url);
        }
    }

    #[tokio::test]
    async fn a_crd_that_others_installed_stays_as_it_is_and_ours_says_whose_it_is() {
        let (cluster, _) = Embedded::serve(ClusterOptions::default(), std::future::pending()).await;
        let client = Client::try_from(cluster.config()).expect("a client");
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let [_, model] = registry().kinds else {
            panic!("two kinds")
        };
        let registry = Registry {
            kinds: Box::leak(Box::new([*model])),
            ..registry()
        };
        let installed = async || {
            crds(&client, &registry, ClusterOwner::User)
                .await
                .expect("it is served");
            let found = api.get(&model.crd_name()).await.expect("the CRD");
            (found.resource_version(), found.labels().get(MANAGED_BY).cloned())
        };
        let (_, owner) = installed().await;
        assert_eq!(owner.as_deref(), Some(FIELD_MANAGER));
        let others = serde_json::json!({"metadata": {"labels": {MANAGED_BY: "others"}}});
        let others = api
            .patch(&model.crd_name(), &PatchParams::default(), &Patch::Merge(&others))
            .await
            .expect("a label");
        let as_it_was = (others.resource_version(), Some("others".to_owned()));
        assert_eq!(installed().await, as_it_was);
    }

    /// Its API server evaluates them. The embedded one refuses those that it does not evaluate.
    #[tokio::test]
    async fn the_rules_of_a_crd_are_left_in_it_where_the_cluster_is_not_ours() {
        let (cluster, _) = Embedded::serve(ClusterOptions::default(), std::future::pending()).await;
        let client = Client::try_from(cluster.config()).expect("a client");
        let (rule, others) = (
            "rule: self == oldSelf",
            "rule: self.matches('^[a-z]+$') && self == oldSelf",
        );
        let certificate = Kind {
            manifest: Box::leak(CERTIFICATES.replace(rule, others).into_boxed_str()),
            ..*registry().kinds[0]
        };
        let registry = Registry {
            kinds: Box::leak(Box::new([&*Box::leak(Box::new(certificate))])),
            ..registry()
        };
        crds(&client, &registry, ClusterOwner::User)
            .await
            .expect_err("rules that nobody evaluates");
        crds(&client, &registry, ClusterOwner::Kindex)
            .await
            .expect("without them");
    }

    #[test]
    fn what_a_cluster_added_to_a_saved_manifest_is_left_out() {
        let written = serde_json::json!({"kind": "CustomResourceDefinition", "metadata": {
            "name": "guests.others.test", "labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": {"group": "others.test"}});
        let mut saved = written.clone();
        saved["status"] = serde_json::json!({"storedVersions": ["v1"]});
        for field in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "managedFields",
        ] {
            saved["metadata"][field] = "of the other cluster".into();
        }
        assert_eq!(as_written(saved), written);
    }

    #[test]
    fn rules_are_taken_away_wherever_a_schema_has_them_and_no_field_is() {
        let rules = serde_json::json!([{"rule": "self.a"}]);
        let a = |of: Value| serde_json::json!({"properties": {"a": of, RULES: {"type": "string"}}});
        let mut schema = a(serde_json::json!({"items": {"type": "string", RULES: rules}, RULES: rules}));
        assert_eq!(take_rules(&mut schema), 2);
        assert_eq!(schema, a(serde_json::json!({"items": {"type": "string"}})));
    }
}
