//! What the server serves: one `Resource` for each kind and version, whether built in or defined by a
//! CustomResourceDefinition. Holds the compiled schema; knows nothing of requests and storage.

mod review;

mod webhook;

mod conversion;
mod events;
mod view;

use std::sync::Arc;

use kindex_kube_api::schema::Structural;
use kindex_kube_api::status::GroupResource;
use kindex_kube_api::table::PrinterColumn;
use serde::Deserialize;
use serde_json::Value;

pub(crate) use conversion::Conversion;
pub use conversion::Convert;
pub(crate) use view::{NotShown, Shown, is_stored_form, shown, stored};

/// What sets a resource apart from a plain custom resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResourceType {
    /// Defined by a CustomResourceDefinition.
    Custom,
    /// CustomResourceDefinitions themselves.
    Definition,
    /// Namespaces.
    Namespace,
    /// `events` of the core group.
    CoreEvent,
    /// `events` of `events.k8s.io`: the same objects as [`ResourceType::CoreEvent`] under other field names.
    Event,
    /// A built-in kind without behavior: configmaps, secrets, leases.
    Plain,
    /// A question about the caller, which is answered and not stored.
    Review,
}

/// The names of a resource, as in `spec.names` of a CustomResourceDefinition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Names {
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
}

/// One kind in one version.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    /// `group/version`, or the version alone in the core group.
    pub(crate) api_version: String,
    pub(crate) names: Names,
    pub(crate) namespaced: bool,
    pub(crate) resource_type: ResourceType,
    /// Whether `/status` is served and the main resource leaves the status alone.
    pub(crate) has_status: bool,
    /// The compiled schema; nothing is pruned or validated without one.
    pub(crate) schema: Option<Structural>,
    /// The schema as it was declared, for OpenAPI documents.
    pub(crate) declared_schema: Value,
    pub(crate) columns: Vec<PrinterColumn>,
    /// Paths besides name and namespace by which field selectors may select, without the leading dot.
    pub(crate) selectable: Vec<String>,
    /// The resource's name in the store: `plural.group`.
    pub(crate) storage: Arc<str>,
    /// The version in which objects are stored.
    pub(crate) storage_version: String,
    /// `group/version` of stored objects.
    pub(crate) storage_api_version: String,
    /// Whether that version is served.
    pub(crate) serves_storage_version: bool,
    /// How its objects become those of other versions, if more than `apiVersion` differs.
    pub(crate) conversion: Option<Conversion>,
    /// Objects written before this resource version may not fit the present schema.
    pub(crate) since: u64,
    /// Whether the definition is being deleted: nothing new may be created.
    pub(crate) terminating: bool,
    /// The warning for clients of a deprecated version.
    pub(crate) deprecation: Option<String>,
}

impl Resource {
    /// How a Status names it.
    pub(crate) fn group_resource(&self) -> GroupResource<'_> {
        GroupResource {
            group: &self.group,
            plural: &self.names.plural,
        }
    }

    /// Whether `metadata.generation` counts changes of this resource.
    pub(crate) fn has_generation(&self) -> bool {
        matches!(self.resource_type, ResourceType::Custom | ResourceType::Definition)
    }

    /// Whether an update without a resource version is taken as it comes.
    pub(crate) fn allows_unconditional_update(&self) -> bool {
        !matches!(self.resource_type, ResourceType::Custom | ResourceType::Definition)
    }

    /// Whether strategic merge patches are understood: only of kinds that are built in.
    pub(crate) fn allows_strategic_patch(&self) -> bool {
        self.resource_type != ResourceType::Custom
    }
}

/// `group/version`, or the version alone in the core group.
pub(crate) fn join_group(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// `group/version` of stored objects.
pub(crate) fn storage_api_version(resource_type: ResourceType, group: &str, storage_version: &str) -> String {
    match resource_type {
        // Both faces of events share the core form.
        ResourceType::Event => "v1".to_owned(),
        ResourceType::Custom
        | ResourceType::Definition
        | ResourceType::Namespace
        | ResourceType::CoreEvent
        | ResourceType::Plain
        | ResourceType::Review => join_group(group, storage_version),
    }
}

/// `plural.group`, or the plural alone in the core group: a resource's name in the store.
pub(crate) fn storage_name(group: &str, plural: &str) -> String {
    if group.is_empty() {
        plural.to_owned()
    } else {
        format!("{plural}.{group}")
    }
}
