//! Installs the kinds' CRDs into a cluster and waits until they are served. A CRD
//! that others installed is left as it is.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kindex_model::kind::{Kind, Registry};
use kube::api::{Patch, PatchParams};
use kube::runtime::{conditions, wait::await_condition};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use tracing::info;

use crate::error::{CommandError, CommandResult, chain};

/// Who applies CRDs and samples, in `metadata.managedFields`.
pub(crate) const FIELD_MANAGER: &str = "kindex";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const ESTABLISH_TIMEOUT: Duration = Duration::from_secs(30);

/// Whose cluster the CRDs are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The embedded one: CRDs that others define are installed as crds.toml names them.
    Ours,
    /// Somebody's: CRDs that others define are theirs to install, now or later.
    Theirs,
}

/// Installs what is absent, updates what is ours, and waits for all of it. A kind whose CRD others define and have not
/// installed is left to the ingester, which waits for it.
pub(crate) async fn crds(client: &Client, registry: &Registry, whose: Whose) -> CommandResult {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut awaited = Vec::new();
    for kind in registry.kinds {
        let manifest = match (kind.manifest, whose) {
            ("", Whose::Ours) => registry.foreign_manifest(kind),
            ("", Whose::Theirs) => None,
            (manifest, _) => Some(manifest),
        };
        if crd(&api, kind, manifest).await? {
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
async fn crd(api: &Api<CustomResourceDefinition>, kind: &Kind, manifest: Option<&str>) -> CommandResult<bool> {
    let name = kind.crd_name();
    let failed = |error: &dyn std::error::Error| CommandError::failure(format_args!("CRD {name}: {}", chain(error)));
    let present = api.get_opt(&name).await.map_err(|error| failed(&error))?;
    let Some(manifest) = manifest else {
        return Ok(present.is_some());
    };
    if let Some(present) = &present
        && present.labels().get(MANAGED_BY).map(String::as_str) != Some(FIELD_MANAGER)
    {
        info!(crd = name, "The CRD was installed by others and stays as it is");
        return Ok(true);
    }
    let mut manifest: Value = serde_saphyr::from_str(manifest).map_err(|error| failed(&error))?;
    manifest["metadata"]["labels"][MANAGED_BY] = FIELD_MANAGER.into();
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    api.patch(&name, &parameters, &Patch::Apply(&manifest))
        .await
        .map_err(|error| failed(&error))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use kindex_cluster::ClusterOptions;
    use kindex_model::kind::ForeignManifest;
    use kindex_tests::embedded::Embedded;
    use kube::api::ListParams;

    use super::*;

    const GUEST_CRD: &str = include_str!("../../tests/tests/golden/foreign_crd/guest.yaml");

    /// Models, and guests that somebody else defines.
    fn registry() -> Registry {
        let model = &kindex_generated::kinds::model::KIND;
        let guest = Kind {
            name: "Guest",
            group: "others.test",
            version: "v1beta1",
            plural: "guests",
            singular: "guest",
            manifest: "",
            ..*model
        };
        Registry {
            kinds: Box::leak(Box::new([Box::leak(Box::new(guest)), model])),
            foreign: &[ForeignManifest {
                kind: "Guest",
                manifest: GUEST_CRD,
            }],
            ..kindex_generated::registry()
        }
    }

    #[tokio::test]
    async fn a_crd_of_others_is_installed_where_the_cluster_is_ours_and_awaited_nowhere() {
        let (cluster, _) = Embedded::serve(ClusterOptions::default(), std::future::pending()).await;
        let client = Client::try_from(cluster.config()).expect("a client");
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let registry = registry();
        crds(&client, &registry, Whose::Theirs)
            .await
            .expect("nobody waits for it");
        let names = async || {
            let found = api.list_metadata(&ListParams::default()).await.expect("a list");
            found.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
        };
        assert_eq!(names().await, ["models.michelangelo.api"]);
        crds(&client, &registry, Whose::Ours).await.expect("installed");
        assert_eq!(names().await, ["guests.others.test", "models.michelangelo.api"]);
        let guests = crate::client::all(&client, registry.kinds[0]);
        assert!(guests.list(&ListParams::default()).await.is_ok(), "guests are served");
    }
}
