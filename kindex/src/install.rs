//! Installs the kinds' CRDs into a cluster and waits until they are served. A CRD
//! that others installed is left as it is.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kindex_runtime::kind::{Kind, Registry};
use kube::api::{Patch, PatchParams};
use kube::runtime::{conditions, wait::await_condition};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use tracing::{info, warn};

use crate::error::{CommandError, CommandResult, chain};

/// Who applies CRDs and samples, in `metadata.managedFields`.
pub(crate) const FIELD_MANAGER: &str = "kindex";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const ESTABLISH_TIMEOUT: Duration = Duration::from_secs(30);

/// Installs what is absent, updates what is ours, and waits for all of it.
pub(crate) async fn crds(client: &Client, registry: &Registry) -> CommandResult {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for kind in registry.kinds {
        crd(&api, kind).await?;
    }
    for kind in registry.kinds {
        let name = crd_name(kind);
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

async fn crd(api: &Api<CustomResourceDefinition>, kind: &Kind) -> CommandResult {
    let name = crd_name(kind);
    let failed = |error: &dyn std::error::Error| CommandError::failure(format_args!("CRD {name}: {}", chain(error)));
    let present = api.get_opt(&name).await.map_err(|error| failed(&error))?;
    if kind.manifest.is_empty() {
        if present.is_none() {
            warn!(
                crd = name,
                "The CRD of this kind is declared by others and is not installed yet"
            );
        }
        return Ok(());
    }
    if let Some(present) = &present
        && present.labels().get(MANAGED_BY).map(String::as_str) != Some(FIELD_MANAGER)
    {
        info!(crd = name, "The CRD was installed by others and stays as it is");
        return Ok(());
    }
    let mut manifest: Value = serde_saphyr::from_str(kind.manifest).map_err(|error| failed(&error))?;
    manifest["metadata"]["labels"][MANAGED_BY] = FIELD_MANAGER.into();
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    api.patch(&name, &parameters, &Patch::Apply(&manifest))
        .await
        .map_err(|error| failed(&error))?;
    Ok(())
}

fn crd_name(kind: &Kind) -> String {
    format!("{}.{}", kind.plural, kind.group)
}
