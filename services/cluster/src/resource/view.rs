//! Stored objects as a resource shows them, and back: another version of the same kind, the other face of an event, an
//! object from before the present schema. Most objects are shown as the very bytes that are stored.

use bytes::Bytes;
use kindex_kube_api::schema;
use serde_json::Value;

use super::{Resource, ResourceType, events};
use crate::store::{Revision, StoreError};

/// An object ready to be served.
#[derive(Debug)]
pub(crate) enum Shown<'a> {
    /// The stored text as it is.
    Text(&'a Revision),
    /// Something else than what is stored.
    Object(Value),
}

impl Shown<'_> {
    /// The JSON text.
    pub(crate) fn text(&self) -> Bytes {
        match self {
            Self::Text(revision) => revision.text.clone(),
            Self::Object(value) => Bytes::from(value.to_string()),
        }
    }

    /// The object, parsed where it was not.
    pub(crate) fn value(&self) -> Result<&Value, StoreError> {
        match self {
            Self::Text(revision) => revision.object(),
            Self::Object(value) => Ok(value),
        }
    }
}

/// Why an object cannot be shown, or stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotShown {
    /// What is stored cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It has no form in the other version.
    #[error("{0}")]
    Conversion(String),
}

/// The revision as `resource` shows it.
pub(crate) async fn shown<'a>(resource: &Resource, revision: &'a Revision) -> Result<Shown<'a>, NotShown> {
    let api_version = &resource.api_version;
    if revision.rv >= resource.since && is_of(&revision.text, api_version) {
        return Ok(Shown::Text(revision));
    }
    let mut object = revision.object()?.clone();
    if resource.resource_type == ResourceType::Event {
        return Ok(Shown::Object(events::from_core(object)));
    }
    object = in_version(resource, object, &resource.version, api_version).await?;
    if let Some(structural) = &resource.schema {
        schema::prune(structural, &mut object);
        // An object from before the present schema is shown with the defaults that fit.
        let _shown_in_part = schema::apply_defaults(structural, &mut object);
    }
    Ok(Shown::Object(object))
}

/// An object in the resource's form, in the form in which it is stored.
pub(crate) async fn stored(resource: &Resource, object: Value) -> Result<Value, NotShown> {
    if resource.resource_type == ResourceType::Event {
        return Ok(events::to_core(object));
    }
    let api_version = &resource.storage_api_version;
    in_version(resource, object, &resource.storage_version, api_version).await
}

async fn in_version(
    resource: &Resource,
    mut object: Value,
    version: &str,
    api_version: &str,
) -> Result<Value, NotShown> {
    match &resource.conversion {
        Some(conversion) if object["apiVersion"] != *api_version => {
            let converted = conversion.convert(&object, version, api_version).await;
            converted.map_err(NotShown::Conversion)
        }
        Some(_) | None => {
            object["apiVersion"] = api_version.into();
            Ok(object)
        }
    }
}

/// Whether a revision is stored in the version in which objects are stored now.
pub(crate) fn is_stored_form(resource: &Resource, revision: &Revision) -> Result<bool, StoreError> {
    let api_version = resource.storage_api_version.as_str();
    Ok(is_of(&revision.text, api_version) || revision.object()?["apiVersion"] == *api_version)
}

/// Keys are sorted, so that the version almost always stands first and no parsing is needed to see it.
fn is_of(text: &[u8], api_version: &str) -> bool {
    const HEAD: &[u8] = br#"{"apiVersion":""#;
    text.strip_prefix(HEAD)
        .and_then(|rest| rest.strip_prefix(api_version.as_bytes()))
        .is_some_and(|rest| rest.first() == Some(&b'"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_version_is_served_as_stored() {
        let text = br#"{"apiVersion":"example.com/v1","kind":"Widget"}"#;
        assert!(is_of(text, "example.com/v1"));
        assert!(!is_of(text, "example.com/v"));
        assert!(!is_of(text, "example.com/v2"));
        assert!(!is_of(b"{}", "example.com/v1"));
    }
}
