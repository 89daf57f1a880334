//! The options of writes and lists.

use jiff::Timestamp;
use kindex_kube_api::request::{Subresource, parameter};

use super::ObjectKey;

/// Which part of an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All but the status.
    Main,
    /// The status.
    Status,
}

impl Part {
    pub(super) fn path(self, key: &ObjectKey<'_>) -> String {
        match self {
            Self::Main => key.path(),
            Self::Status => format!("{}/{}", key.path(), Subresource::Status.name()),
        }
    }
}

/// How something is written; all of it is the cluster's to understand.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Leave no trace.
    pub dry_run: bool,
    /// Who owns the fields.
    pub field_manager: Option<String>,
    /// `Strict`, `Warn` or `Ignore`.
    pub field_validation: Option<String>,
    /// Server-side apply takes fields from other managers.
    pub force: bool,
}

impl WriteOptions {
    pub(super) fn query(&self) -> Vec<(&'static str, String)> {
        let mut query = Vec::new();
        if self.dry_run {
            query.push((parameter::DRY_RUN, parameter::ALL_STAGES.to_owned()));
        }
        if let Some(manager) = &self.field_manager {
            query.push((parameter::FIELD_MANAGER, manager.clone()));
        }
        if let Some(validation) = &self.field_validation {
            query.push((parameter::FIELD_VALIDATION, validation.clone()));
        }
        if self.force {
            query.push((parameter::FORCE, "true".to_owned()));
        }
        query
    }
}

/// Which objects are listed.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// One namespace, or all.
    pub namespace: Option<String>,
    /// A label selector.
    pub labels: String,
    /// A field selector.
    pub fields: String,
    /// Most objects of the page; 0 means [`Sizes::page`](super::Sizes::page).
    pub limit: u32,
    /// From the page before; empty for the first.
    pub continue_token: String,
    /// Deleted objects too.
    pub include_deleted: bool,
    /// As it was at this moment, of a kind that keeps its history.
    pub at: Option<Timestamp>,
    /// As Kubernetes has it.
    pub resource_version: String,
    /// As Kubernetes has it.
    pub resource_version_match: String,
}
