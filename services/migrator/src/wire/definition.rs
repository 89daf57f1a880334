//! What of a CustomResourceDefinition concerns storage versions; its schemas are left out.

use kube::api::Object;
use kube::core::ApiResource;
use serde::{Deserialize, Serialize};

use super::GroupResource;
use crate::hash::Hash;
use crate::run::managers::Declared;
use crate::state::Definition;
use crate::trigger::Defined;
use crate::verdict::Stored;

/// A CustomResourceDefinition.
pub type StoredDefinition = Object<DefinitionSpec, DefinitionStatus>;

/// `spec`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DefinitionSpec {
    group: String,
    names: Names,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Names {
    kind: String,
    plural: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Version {
    name: String,
    #[serde(default)]
    served: bool,
    #[serde(default)]
    storage: bool,
}

/// `status`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DefinitionStatus {
    stored_versions: Vec<String>,
}

impl DefinitionSpec {
    /// The names of all versions.
    pub fn declared(&self) -> impl Iterator<Item = &str> {
        self.versions.iter().map(|version| version.name.as_str())
    }
}

impl DefinitionStatus {
    /// `storedVersions`: those in which objects may be stored.
    pub fn stored(&self) -> &[String] {
        &self.stored_versions
    }
}

/// How definitions are asked for.
pub fn resource() -> ApiResource {
    ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    }
}

/// The resource that it defines, and what it says of its versions; `None` for one that declares no stored version.
pub fn defined(definition: &StoredDefinition) -> Option<(GroupResource, Defined)> {
    let DefinitionSpec { group, names, versions } = &definition.spec;
    let hash = |version: &str| Hash::of(group, version, &names.kind);
    let storage = versions.iter().find(|version| version.storage)?;
    let stored = definition.status.as_ref().map(|status| &status.stored_versions);
    let resource = GroupResource {
        group: group.clone(),
        resource: names.plural.clone(),
    };
    let defined = Defined {
        definition: Definition {
            uid: definition.metadata.uid.clone()?,
            generation: definition.metadata.generation.unwrap_or_default(),
        },
        storage: hash(&storage.name),
        stored: stored.into_iter().flatten().map(|version| hash(version)).collect(),
    };
    Some((resource, defined))
}

/// The versions that it declares, as objects name them; `None` for one that declares no stored version.
pub fn declared(definition: &StoredDefinition) -> Option<Declared> {
    let DefinitionSpec { group, versions, .. } = &definition.spec;
    let api_version = |version: &Version| format!("{group}/{}", version.name);
    let storage = versions.iter().find(|version| version.storage)?;
    Some(Declared {
        all: versions.iter().map(api_version).collect(),
        storage: api_version(storage),
    })
}

/// What a definition says of its versions by name, without state and migrations; `None` for one that declares no
/// stored version.
pub fn stored(definition: &StoredDefinition) -> Option<(GroupResource, Stored)> {
    let (resource, defined) = defined(definition)?;
    let versions = &definition.spec.versions;
    let status = definition.status.clone().unwrap_or_default();
    let stored = Stored {
        definition: defined.definition,
        versions: versions.iter().map(|one| (one.name.clone(), one.served)).collect(),
        storage: versions.iter().find(|version| version.storage)?.name.clone(),
        hash: defined.storage,
        stored_versions: status.stored_versions,
        state: None,
        migrations: Vec::new(),
    };
    Some((resource, stored))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_are_read_as_the_hashes_that_discovery_shows() {
        let definition: StoredDefinition = serde_json::from_value(json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "pets.zoo.example.com", "uid": "u", "generation": 3},
            "spec": {
                "group": "zoo.example.com",
                "names": {"kind": "Pet", "plural": "pets"},
                "versions": [{"name": "v1alpha1", "storage": true, "schema": {}}, {"name": "v1", "storage": false}],
            },
            "status": {"storedVersions": ["v1alpha1", "v1"]},
        }))
        .expect("a definition");
        let (resource, defined) = defined(&definition).expect("with a stored version");
        assert_eq!(resource.to_string(), "pets.zoo.example.com");
        assert_eq!(defined.storage.to_string(), "rsi7zQxickQ=");
        assert_eq!(defined.stored.len(), 2);
        assert_eq!(defined.definition.generation, 3);
        let (_, stored) = stored(&definition).expect("with a stored version");
        assert_eq!(stored.storage, "v1alpha1");
        assert_eq!(stored.stored_versions, ["v1alpha1", "v1"]);
        let unserved = |name: &str| (name.to_owned(), false);
        assert_eq!(stored.versions, ["v1alpha1", "v1"].map(unserved));
    }
}
