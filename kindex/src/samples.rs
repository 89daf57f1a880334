//! Applies sample manifests through the HTTP API, as any client would.

use kindex_commands::error::{CommandError, CommandResult, chain};
use kindex_commands::install::FIELD_MANAGER;
use kindex_commands::platform::Sample;
use kindex_kube_client::{Outcome, outcome};
use kindex_model::kind::Registry;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, ResourceExt};

/// Applies the manifests in their order, each with its status, as its controller would report it; returns how many.
/// Those of kinds that no cluster has are for the other client, which is of their API.
pub(crate) async fn apply(
    cluster: &Client,
    sql_only: Option<&Client>,
    registry: &Registry,
    samples: &[Sample],
) -> CommandResult<usize> {
    for (file, text) in samples {
        let failed = |error: &dyn std::error::Error| CommandError::failure(format_args!("{file}: {}", chain(error)));
        let object: DynamicObject = serde_saphyr::from_str(text).map_err(|error| failed(&error))?;
        let resource = resource_of(registry, &object)
            .ok_or_else(|| CommandError::usage(format_args!("{file}: its kind is not declared in crds.toml")))?;
        let client = sql_only.filter(|_| is_sql_only(registry, &object)).unwrap_or(cluster);
        let api: Api<DynamicObject> = match object.namespace() {
            Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let (name, params, patch) = (
            object.name_any(),
            PatchParams::apply(FIELD_MANAGER),
            Patch::Apply(&object),
        );
        let applied = api.patch(&name, &params, &patch).await;
        applied.map_err(|error| failed(&error))?;
        if object.data.get("status").is_some() {
            match api.patch_status(&name, &params, &patch).await {
                // A final object may have left the cluster already.
                Err(error) if outcome(&error).is_some_and(Outcome::is_not_found) => {}
                Err(error) => return Err(failed(&error)),
                Ok(_) => {}
            }
        }
    }
    Ok(samples.len())
}

fn is_sql_only(registry: &Registry, object: &DynamicObject) -> bool {
    let named = object.types.as_ref();
    named.is_some_and(|types| {
        let mut kinds = registry.sql_only_kinds();
        kinds.any(|kind| kind.name == types.kind && kind.api_version() == types.api_version)
    })
}

fn resource_of(registry: &Registry, object: &DynamicObject) -> Option<ApiResource> {
    let types = object.types.as_ref()?;
    if (types.api_version.as_str(), types.kind.as_str()) == ("v1", "Namespace") {
        return Some(ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace")));
    }
    let kind = registry
        .kinds
        .iter()
        .find(|kind| kind.name == types.kind && kind.api_version() == types.api_version)?;
    Some(kindex_commands::client::api_resource(kind))
}
