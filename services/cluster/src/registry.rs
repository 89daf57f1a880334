//! Which resources are served at this moment: the built-in ones and those of established definitions. Knows nothing of
//! requests and storage; the store's observer tells it of every definition that is written.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use crate::builtin;
use crate::definition::{self, Claims};
use crate::resource::{Convert, Names, Resource, ResourceType};
use serde::Deserialize;

/// What is served, as of one moment.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    /// By group, version and plural.
    resources: BTreeMap<(String, String, String), Arc<Resource>>,
    /// The granted names of every definition, served or not, by its name.
    definitions: BTreeMap<String, Known>,
}

#[derive(Debug, Clone)]
struct Known {
    group: String,
    names: Names,
}

impl Catalog {
    /// The resource at `/apis/<group>/<version>/<plural>`.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources
            .get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// All resources, by group, then version, then plural.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    /// The resource whose objects have this `apiVersion` and `kind`.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.all()
            .find(|resource| resource.names.kind == kind && resource.api_version == api_version)
    }

    /// One resource for each place in the store, in its storage version where that is served.
    pub(crate) fn stored(&self) -> Vec<Arc<Resource>> {
        let mut stored: BTreeMap<&str, &Arc<Resource>> = BTreeMap::new();
        for resource in self
            .all()
            .filter(|resource| resource.resource_type != ResourceType::Review)
        {
            if is_storage_form(resource) || !stored.contains_key(&*resource.storage) {
                stored.insert(&resource.storage, resource);
            }
        }
        stored.into_values().cloned().collect()
    }

    /// The resource that represents a place in the store.
    pub(crate) fn of_storage(&self, storage: &str) -> Option<Arc<Resource>> {
        self.all()
            .filter(|resource| resource.resource_type != ResourceType::Review && *resource.storage == *storage)
            .min_by_key(|resource| !is_storage_form(resource))
            .cloned()
    }

    /// Names that definitions of `group` other than `name` hold.
    pub(crate) fn claims(&self, group: &str, name: &str) -> Claims {
        let mut claims = Claims::default();
        for (other, known) in &self.definitions {
            if other != name && known.group == group {
                claims.add(&known.names);
            }
        }
        claims
    }
}

/// The current catalog; readers take a snapshot, writers replace it.
pub(crate) struct Registry {
    converter: Option<Arc<dyn Convert>>,
    current: RwLock<Arc<Catalog>>,
}

impl Registry {
    /// A registry of the built-in resources, for which `converter` answers where definitions want a webhook.
    pub(crate) fn new(converter: Option<Arc<dyn Convert>>) -> Self {
        let resources = builtin::resources()
            .into_iter()
            .map(|resource| (place(&resource), Arc::new(resource)))
            .collect();
        Self {
            converter,
            current: RwLock::new(Arc::new(Catalog {
                resources,
                definitions: BTreeMap::new(),
            })),
        }
    }

    /// A registry of nothing.
    pub(crate) fn empty(converter: Option<Arc<dyn Convert>>) -> Self {
        Self {
            converter,
            current: RwLock::default(),
        }
    }

    /// What is served now.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Serves what a definition, written at resource version `rv`, says. Must be called in the order of writes.
    pub(crate) fn install(&self, definition: &Value, rv: u64) {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let group = definition["spec"]["group"].as_str().unwrap_or_default().to_owned();
        let resources = if definition::is_established(definition) {
            definition::resources(definition, ResourceType::Custom, rv, self.converter.as_ref())
        } else {
            Vec::new()
        };
        let names = Names::deserialize(&definition["status"]["acceptedNames"]).unwrap_or_default();
        self.replace(&name, |catalog| {
            for mut resource in resources {
                let place = place(&resource);
                // Objects fit for as long as the schema stays as it is.
                if let Some(before) = self.catalog().resources.get(&place)
                    && before.declared_schema == resource.declared_schema
                {
                    resource.since = before.since;
                }
                catalog.resources.insert(place, Arc::new(resource));
            }
            catalog.definitions.insert(name.clone(), Known { group, names });
        });
    }

    /// Serves nothing of a definition any more.
    pub(crate) fn remove(&self, name: &str) {
        self.replace(name, |_| ());
    }

    /// Takes out what the definition `name` brought and lets `change` put in what it brings now.
    fn replace(&self, name: &str, change: impl FnOnce(&mut Catalog)) {
        let before = self.catalog();
        let keep = |resource: &Resource| resource.resource_type != ResourceType::Custom || *resource.storage != *name;
        let mut catalog = Catalog {
            resources: before
                .resources
                .iter()
                .filter(|(_, resource)| keep(resource))
                .map(|(place, resource)| (place.clone(), Arc::clone(resource)))
                .collect(),
            definitions: before
                .definitions
                .iter()
                .filter(|(other, _)| *other != name)
                .map(|(other, known)| (other.clone(), known.clone()))
                .collect(),
        };
        change(&mut catalog);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalog);
    }
}

fn is_storage_form(resource: &Resource) -> bool {
    resource.api_version == resource.storage_api_version
}

fn place(resource: &Resource) -> (String, String, String) {
    (
        resource.group.clone(),
        resource.version.clone(),
        resource.names.plural.clone(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The storage version is neither the first nor the last one in the catalog.
    #[test]
    fn a_place_in_the_store_is_represented_by_its_storage_version() {
        let version = |name: &str| {
            json!({"name": name, "served": true, "storage": name == "v2",
                "schema": {"openAPIV3Schema": {"type": "object"}}})
        };
        let mut widgets = json!({
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [version("v1"), version("v2"), version("v3")],
            },
        });
        definition::apply_defaults(&mut widgets);
        definition::settle(&mut widgets, &Claims::default(), "2026-01-01T00:00:00Z");
        let registry = Registry::new(None);
        registry.install(&widgets, 1);
        let catalog = registry.catalog();
        let found = catalog.of_storage("widgets.example.com").expect("installed");
        assert_eq!(found.version, "v2");
        for resource in catalog.stored() {
            let found = catalog.of_storage(&resource.storage).expect("stored");
            assert!(Arc::ptr_eq(&found, &resource));
        }
        let mut reviews = catalog
            .all()
            .filter(|resource| resource.resource_type == ResourceType::Review);
        assert!(reviews.all(|review| catalog.of_storage(&review.storage).is_none()));
    }
}
