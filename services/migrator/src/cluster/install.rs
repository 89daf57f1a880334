//! The definitions of `migration.k8s.io` in a cluster: installed where they are absent, kept current where Kindex
//! installed them, and left alone where others did.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kindex_kube_client::look_up;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::runtime::{conditions, wait::await_condition};
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use crate::wire::definition;

/// Who applies them, and the value of their label.
const KINDEX: &str = "kindex";
/// The label by which a definition is ours.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The version that is read and written.
const VERSION: &str = "v1alpha1";
/// For an API server to serve a new definition.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(30);

/// The definitions that Kindex brings along.
const MANIFESTS: [&str; 2] = [
    include_str!("../../manifests/storagestates.yaml"),
    include_str!("../../manifests/storageversionmigrations.yaml"),
];

/// Why the resources are not there.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// A definition could not be read or written.
    #[error("CRD {name}")]
    Access {
        /// Of the definition.
        name: String,
        /// Why.
        source: kube::Error,
    },
    /// Others installed it, and the API server would drop what has to be kept.
    #[error(
        "CRD {name} was installed by others and has no place for {}: progress would be lost. To let Kindex update it, \
         with all objects kept, run: kubectl label crd {name} --overwrite {MANAGED_BY}={KINDEX}",
        missing.join(", ")
    )]
    Foreign {
        /// Of the definition.
        name: String,
        /// Paths of its status.
        missing: Vec<String>,
    },
    /// The API server does not serve it.
    #[error("CRD {name} is not served after {} s: see kubectl describe crd {name}", ESTABLISHED_WITHIN.as_secs())]
    NotServed {
        /// Of the definition.
        name: String,
    },
}

/// What to do about one definition.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Placement {
    /// It is absent, or ours.
    Apply,
    /// Others installed it, with all that is needed.
    Keep,
    /// Others installed it, without these paths of the status.
    Refuse(Vec<String>),
}

/// The bundled definitions.
pub fn manifests() -> Vec<Value> {
    let parsed = MANIFESTS.iter().map(|text| serde_saphyr::from_str(text));
    parsed
        .map(|manifest| manifest.expect("bundled manifests are YAML"))
        .collect()
}

/// Brings these definitions into the cluster and waits until they are served.
///
/// # Guarantees
/// A definition that others installed is not changed, and none is ever deleted.
///
/// # Errors
/// A definition that cannot be read, written or served, or that others installed without a place for what is saved.
pub async fn install(client: &Client, manifests: &[Value]) -> Result<(), InstallError> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &definition::resource());
    for manifest in manifests {
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let access = |name: &str| {
            let name = name.to_owned();
            move |source| InstallError::Access { name, source }
        };
        let present = look_up(&api, &name).await.map_err(access(&name))?;
        match placement(present.as_ref(), manifest) {
            Placement::Apply => {
                let parameters = PatchParams::apply(KINDEX).force();
                let applied = api.patch(&name, &parameters, &Patch::Apply(manifest)).await;
                applied.map_err(access(&name))?;
            }
            Placement::Keep => tracing::info!(crd = name, "The CRD was installed by others and stays as it is"),
            Placement::Refuse(missing) => return Err(InstallError::Foreign { name, missing }),
        }
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let established = await_condition(definitions, &name, conditions::is_crd_established());
        match tokio::time::timeout(ESTABLISHED_WITHIN, established).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) | Err(_) => return Err(InstallError::NotServed { name }),
        }
    }
    Ok(())
}

fn placement(present: Option<&DynamicObject>, manifest: &Value) -> Placement {
    let Some(present) = present else {
        return Placement::Apply;
    };
    if present.labels().get(MANAGED_BY).map(String::as_str) == Some(KINDEX) {
        return Placement::Apply;
    }
    let (Some(ours), theirs) = (version(&manifest["spec"]), version(&present.data["spec"])) else {
        return Placement::Keep;
    };
    let Some(theirs) = theirs else {
        return Placement::Refuse(vec![format!("the version {VERSION}")]);
    };
    let mut missing = Vec::new();
    if theirs["subresources"].get("status").is_none() {
        missing.push("the subresource status".to_owned());
    }
    let status = |version: &Value| version["schema"]["openAPIV3Schema"]["properties"]["status"].clone();
    absent(&status(ours), &status(theirs), "status", &mut missing);
    match missing.is_empty() {
        true => Placement::Keep,
        false => Placement::Refuse(missing),
    }
}

/// The version that is read and written, where a definition serves it.
fn version(spec: &Value) -> Option<&Value> {
    let mut versions = spec["versions"].as_array()?.iter();
    versions.find(|version| version["name"] == VERSION && version["served"] == true)
}

/// Collects the paths of our schema for which theirs has no place.
fn absent(ours: &Value, theirs: &Value, path: &str, missing: &mut Vec<String>) {
    if theirs["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    if theirs.is_null() {
        missing.push(path.to_owned());
        return;
    }
    if let Some(items) = ours.get("items") {
        absent(items, &theirs["items"], path, missing);
    }
    for (name, property) in ours["properties"].as_object().into_iter().flatten() {
        absent(
            property,
            &theirs["properties"][name],
            &format!("{path}.{name}"),
            missing,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn present(manifest: &Value) -> DynamicObject {
        serde_json::from_value(manifest.clone()).expect("an object")
    }

    fn by_others() -> Value {
        let mut manifest = manifests().remove(1);
        manifest["metadata"]["labels"] = Value::Null;
        manifest
    }

    #[test]
    fn an_absent_definition_and_our_own_are_applied() {
        for manifest in manifests() {
            assert_eq!(placement(None, &manifest), Placement::Apply);
            assert_eq!(placement(Some(&present(&manifest)), &manifest), Placement::Apply);
        }
    }

    #[test]
    fn a_definition_of_others_with_a_place_for_everything_is_kept() {
        let manifest = manifests().remove(1);
        assert_eq!(placement(Some(&present(&by_others())), &manifest), Placement::Keep);
        let mut open = by_others();
        let schema = &mut open["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        schema["properties"]["status"] = serde_json::json!({"x-kubernetes-preserve-unknown-fields": true});
        assert_eq!(placement(Some(&present(&open)), &manifest), Placement::Keep);
    }

    #[test]
    fn a_definition_that_would_drop_progress_is_refused_with_what_it_lacks() {
        let manifest = manifests().remove(1);
        let mut theirs = by_others();
        let schema = &mut theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let status = &mut schema["properties"]["status"]["properties"];
        status["continueToken"] = Value::Null;
        status["pass"]["properties"]["refused"] = Value::Null;
        let missing = ["status.continueToken", "status.pass.refused"].map(str::to_owned);
        assert_eq!(
            placement(Some(&present(&theirs)), &manifest),
            Placement::Refuse(missing.to_vec())
        );
        theirs["spec"]["versions"][0]["served"] = false.into();
        assert!(matches!(
            placement(Some(&present(&theirs)), &manifest),
            Placement::Refuse(_)
        ));
    }
}
