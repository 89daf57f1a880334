//! What a program refuses to start on: a cluster or a database that stores objects in a version which the program does
//! not declare. It could neither convert them nor see that they are there.
//!
//! The cluster is asked for `status.storedVersions` of each definition that is Kindex's own; in one that others
//! installed, a version that `crds.lock` calls dropped is refused alone. The database is asked for the outermost rows
//! of each table, since a program must not read whole tables to start; `kindex versions` does. A side that does not
//! answer is no reason to refuse: whatever needs it waits for it.

use std::fmt;
use std::time::Duration;

use futures::future::join_all;
use kindex_commands::config::MetadataStorageChoice;
use kindex_commands::error::{CommandError, CommandResult, chain};
use kindex_commands::install::{FIELD_MANAGER, MANAGED_BY};
use kindex_kube_client::look_up;
use kindex_migrator::wire::definition::{StoredDefinition, resource, stored};
use kindex_model::kind::{Kind, Registry};
use kindex_store::MetadataStorage;
use kube::{Api, Client, ResourceExt as _};
use tokio::time::timeout;

/// How long each side may take; a program starts without an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// A version that is stored and not declared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unknown {
    kind: &'static str,
    version: String,
    place: Side,
    /// Whether `crds.lock` calls it dropped.
    dropped: bool,
}

/// Where something is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Cluster,
    Database,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cluster => "cluster",
            Self::Database => "database",
        })
    }
}

/// Refuses a cluster and the database of a configuration, which need not be there yet.
///
/// # Errors
/// A version that this program does not declare, with what to do.
pub(crate) async fn refuse_configured(
    registry: &Registry,
    client: &Client,
    storage: &MetadataStorageChoice,
) -> CommandResult {
    let MetadataStorageChoice::On { address, pool } = storage else {
        return refuse(registry, client, None).await;
    };
    if address.file().is_some_and(|path| !path.exists()) {
        return refuse(registry, client, None).await;
    }
    let store = kindex_store::open(address, *registry, pool).map_err(|error| CommandError::usage(chain(&error)))?;
    let refused = refuse(registry, client, Some(store.as_ref())).await;
    store.close().await;
    refused
}

/// Refuses a cluster and an open database.
///
/// # Errors
/// A version that this program does not declare, with what to do.
pub(crate) async fn refuse(registry: &Registry, client: &Client, store: Option<&dyn MetadataStorage>) -> CommandResult {
    let (cluster, rows) = tokio::join!(
        timeout(ANSWER_WITHIN, in_cluster(registry, client)),
        timeout(ANSWER_WITHIN, in_rows(registry, store)),
    );
    let found = cluster.unwrap_or_default().into_iter().chain(rows.unwrap_or_default());
    match found.into_iter().next() {
        Some(unknown) => Err(refusal(&unknown)),
        None => Ok(()),
    }
}

fn refusal(unknown: &Unknown) -> CommandError {
    let Unknown {
        kind,
        version,
        place,
        dropped,
    } = unknown;
    let why = match dropped {
        true => "which schema/crds.lock calls dropped",
        false => "which this program does not declare",
    };
    let away = match place {
        Side::Cluster => format!("bring all objects to another version with `kindex versions start {kind} --wait`"),
        Side::Database => format!("bring the rows to another version with `kindex versions convert --kind {kind}`"),
    };
    CommandError::failure(format_args!(
        "kind {kind}: the {place} stores objects in {version}, {why}"
    ))
    .hint(format_args!(
        "with a program that declares [kinds.{kind}.versions.{version}], {away}, and take it out with \
         `kindex versions drop {kind} {version}`"
    ))
}

/// Kinds whose versions are ours to declare.
fn own_kinds(registry: &Registry) -> impl Iterator<Item = &'static Kind> {
    registry.kinds.iter().copied().filter(|kind| !kind.manifest.is_empty())
}

fn is_dropped(registry: &Registry, kind: &Kind, version: &str) -> bool {
    let mut declared = registry.declared.iter();
    declared.any(|one| (one.kind, one.group, one.version) == (kind.name, kind.group, version) && one.dropped)
}

async fn in_cluster(registry: &Registry, client: &Client) -> Vec<Unknown> {
    let api: Api<StoredDefinition> = Api::all_with(client.clone(), &resource());
    let definitions = own_kinds(registry).filter(|kind| kind.cluster);
    let definitions = definitions.map(async |kind| match look_up(&api, &kind.crd_name()).await {
        Ok(found) => found.map(|definition| (kind, definition)),
        Err(error) => {
            let error = chain(&error);
            tracing::warn!(
                kind = kind.name,
                error,
                "Cannot see in which versions the cluster stores objects"
            );
            None
        }
    });
    let definitions = join_all(definitions).await.into_iter().flatten();
    definitions
        .flat_map(|(kind, definition)| unknown_to(registry, kind, &definition))
        .collect()
}

fn unknown_to(registry: &Registry, kind: &'static Kind, definition: &StoredDefinition) -> Vec<Unknown> {
    let is_ours = definition.labels().get(MANAGED_BY).map(String::as_str) == Some(FIELD_MANAGER);
    let versions = stored(definition).map_or_else(Vec::new, |(_, stored)| stored.stored_versions);
    let unknown = versions.into_iter().filter_map(|version| {
        let dropped = is_dropped(registry, kind, &version);
        let is_declared = kind.version_names().any(|name| name == version);
        (!is_declared && (is_ours || dropped)).then_some(Unknown {
            kind: kind.name,
            version,
            place: Side::Cluster,
            dropped,
        })
    });
    unknown.collect()
}

async fn in_rows(registry: &Registry, store: Option<&dyn MetadataStorage>) -> Vec<Unknown> {
    let Some(store) = store else { return Vec::new() };
    let mut unknown = Vec::new();
    for kind in own_kinds(registry) {
        // A database that is down or empty is the affair of those who prepare it.
        let Ok(api_versions) = store.outermost_versions(kind).await else {
            break;
        };
        let is_declared = |api_version: &String| {
            let version = api_version
                .strip_prefix(kind.group)
                .and_then(|rest| rest.strip_prefix('/'));
            version.is_some_and(|version| kind.version_names().any(|name| name == version))
        };
        let undeclared = api_versions.into_iter().filter(|api_version| !is_declared(api_version));
        unknown.extend(undeclared.map(|api_version| {
            let version = api_version
                .rsplit_once('/')
                .map_or(&*api_version, |(_, version)| version);
            Unknown {
                kind: kind.name,
                dropped: is_dropped(registry, kind, version),
                version: version.to_owned(),
                place: Side::Database,
            }
        }));
    }
    unknown
}

#[cfg(test)]
mod tests {
    use kindex_generated::kinds::model;
    use kindex_model::kind::DeclaredVersion;
    use serde_json::json;

    use super::*;

    fn definition(managed_by: &str, stored: &[&str]) -> StoredDefinition {
        serde_json::from_value(json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "models.michelangelo.api", "uid": "u", "labels": {MANAGED_BY: managed_by}},
            "spec": {
                "group": model::KIND.group,
                "names": {"kind": "Model", "plural": "models"},
                "versions": [{"name": model::KIND.version, "served": true, "storage": true}],
            },
            "status": {"storedVersions": stored},
        }))
        .expect("a definition")
    }

    static DECLARED: [DeclaredVersion; 1] = [DeclaredVersion {
        kind: "Model",
        group: model::KIND.group,
        version: "v1",
        hash: "",
        dropped: true,
    }];

    fn registry() -> Registry {
        Registry {
            declared: &DECLARED,
            ..kindex_generated::registry()
        }
    }

    fn found(managed_by: &str, stored: &[&str]) -> Vec<String> {
        let unknown = unknown_to(&registry(), &model::KIND, &definition(managed_by, stored));
        unknown.iter().map(|unknown| refusal(unknown).to_string()).collect()
    }

    #[test]
    fn a_version_that_is_stored_and_not_declared_is_refused_with_what_to_do() {
        assert_eq!(found(FIELD_MANAGER, &[model::KIND.version]), [""; 0]);
        let refused = found(FIELD_MANAGER, &["v3", model::KIND.version]);
        assert_eq!(refused.len(), 1);
        assert!(refused[0].contains("the cluster stores objects in v3, which this program does not declare"));
        assert!(refused[0].contains("[kinds.Model.versions.v3]"), "{}", refused[0]);
    }

    #[test]
    fn rows_are_converted_and_objects_migrated() {
        let stored = |place| {
            refusal(&Unknown {
                kind: "Model",
                version: "v1".to_owned(),
                place,
                dropped: false,
            })
            .to_string()
        };
        let (cluster, database) = (stored(Side::Cluster), stored(Side::Database));
        assert!(cluster.contains("`kindex versions start Model --wait`"), "{cluster}");
        assert!(
            database.contains("`kindex versions convert --kind Model`"),
            "{database}"
        );
    }

    #[test]
    fn in_a_definition_of_others_a_dropped_version_is_refused_alone() {
        let refused = found("others", &["v3", "v1", model::KIND.version]);
        assert_eq!(refused.len(), 1);
        assert!(
            refused[0].contains("in v1, which schema/crds.lock calls dropped"),
            "{}",
            refused[0]
        );
    }
}
