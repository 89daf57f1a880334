//! One Kubernetes object: its exact JSON text, which is the truth, and the
//! metadata that the runtime acts on. Knows nothing of spec and status.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// `metadata.uid`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub Arc<str>);

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self(Arc::from(text))
    }
}

/// `metadata.resourceVersion` as a number: etcd's revision, which only grows.
/// Kubernetes has guaranteed the order of versions of one resource type since 1.35.
/// In the text of an archived object it may be SQL's: [`RowVersion`](crate::row_version::RowVersion) says which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceVersion(pub u64);

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The metadata that decisions and base columns are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// `apiVersion`, as the object says it.
    pub api_version: String,
    /// Identity over time.
    pub uid: Uid,
    /// Empty for cluster-wide kinds.
    pub namespace: String,
    /// Name within the namespace.
    pub name: String,
    /// Version of this text. SQL may have given it if the object is archived:
    /// [`RowVersion::unpack`](crate::row_version::RowVersion::unpack) distinguishes the two.
    pub resource_version: ResourceVersion,
    /// When the API server first stored it.
    pub creation_timestamp: Option<Timestamp>,
    /// Set while the object waits for its finalizers.
    pub deletion_timestamp: Option<Timestamp>,
    /// Labels, sorted by key.
    pub labels: BTreeMap<String, String>,
    /// Annotations, sorted by key.
    pub annotations: BTreeMap<String, String>,
    /// Finalizers, in the object's order.
    pub finalizers: Vec<String>,
}

/// Why a text is not an object that can be stored.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// Not JSON, or metadata of the wrong shape.
    #[error("not a Kubernetes object: {0}")]
    Json(#[from] serde_json::Error),
    /// A field without which the object has no identity.
    #[error("{namespace}/{name}: metadata.{field} is missing")]
    Missing {
        /// The object, as far as it is known.
        namespace: String,
        /// The object, as far as it is known.
        name: String,
        /// The field.
        field: &'static str,
    },
    /// A resource version that does not fit the `res_version` column.
    #[error("{namespace}/{name}: metadata.resourceVersion {text:?} is not a number below 2^63")]
    ResourceVersion {
        /// The object.
        namespace: String,
        /// The object.
        name: String,
        /// What it says.
        text: String,
    },
}

/// One version of one object.
#[derive(Clone)]
pub struct Object {
    raw: Arc<RawValue>,
    /// Read from the text once.
    pub metadata: Arc<Metadata>,
}

impl Object {
    /// Reads an object's metadata and keeps its text as it is.
    ///
    /// # Errors
    /// [`ObjectError`] where the text has no identity or no usable version.
    pub fn parse(raw: Box<RawValue>) -> Result<Self, ObjectError> {
        Self::parse_or_return(raw).map_err(|(error, _)| error)
    }

    /// Like [`parse`](Object::parse), for who wants to look at a text that is no object.
    ///
    /// # Errors
    /// As [`parse`](Object::parse), with the text.
    pub fn parse_or_return(raw: Box<RawValue>) -> Result<Self, (ObjectError, Box<RawValue>)> {
        let head = serde_json::from_str(raw.get()).map_err(ObjectError::from);
        match head.and_then(Head::into_metadata) {
            Ok(metadata) => Ok(Self {
                metadata: Arc::new(metadata),
                raw: Arc::from(raw),
            }),
            Err(error) => Err((error, raw)),
        }
    }

    /// Like [`parse`](Object::parse), from a string.
    pub fn parse_str(text: &str) -> Result<Self, ObjectError> {
        Self::parse(RawValue::from_string(text.to_owned())?)
    }

    /// The same object in another version; its text is otherwise the same to the byte.
    #[must_use]
    pub fn with_version(&self, version: ResourceVersion) -> Self {
        let text = self.text();
        let found: Result<VersionSpan<'_>, _> = serde_json::from_str(text);
        let place = found.expect("an object has a version").metadata.resource_version.get();
        // Borrowed from the text, so that it says where it stands.
        let start = place.as_ptr().addr() - text.as_ptr().addr();
        let (before, after) = (&text[..start], &text[start + place.len()..]);
        let text = format!("{before}\"{version}\"{after}");
        Self {
            metadata: Arc::new(Metadata {
                resource_version: version,
                ..(*self.metadata).clone()
            }),
            raw: Arc::from(RawValue::from_string(text).expect("a string for a string is JSON")),
        }
    }

    /// The same with a version of its kind, `group/version`, where its text names none.
    #[must_use]
    pub fn or_in(mut self, api_version: &str) -> Self {
        if self.metadata.api_version.is_empty() {
            Arc::make_mut(&mut self.metadata).api_version = api_version.to_owned();
        }
        self
    }

    /// The exact JSON text.
    pub fn text(&self) -> &str {
        self.raw.get()
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let m = &self.metadata;
        write!(
            f,
            "Object({}/{} {} @{})",
            m.namespace, m.name, m.uid, m.resource_version
        )
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(raw).map_err(serde::de::Error::custom)
    }
}

/// Where the version stands in the text.
#[derive(Deserialize)]
struct VersionSpan<'a> {
    #[serde(borrow)]
    metadata: VersionSpanInMetadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VersionSpanInMetadata<'a> {
    #[serde(borrow)]
    resource_version: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    #[serde(default)]
    api_version: String,
    metadata: HeadMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMetadata {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    resource_version: String,
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<Timestamp>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
    #[serde(default)]
    finalizers: Option<Vec<String>>,
}

impl Head {
    fn into_metadata(self) -> Result<Metadata, ObjectError> {
        let head = self.metadata;
        let missing = |field| ObjectError::Missing {
            namespace: head.namespace.clone(),
            name: head.name.clone(),
            field,
        };
        if head.name.is_empty() {
            return Err(missing("name"));
        }
        if head.uid.is_empty() {
            return Err(missing("uid"));
        }
        let resource_version = match head.resource_version.parse::<i64>() {
            Ok(version) if version >= 0 => ResourceVersion(version.unsigned_abs()),
            _ => {
                return Err(ObjectError::ResourceVersion {
                    namespace: head.namespace,
                    name: head.name,
                    text: head.resource_version,
                });
            }
        };
        Ok(Metadata {
            api_version: self.api_version,
            uid: Uid::from(head.uid.as_str()),
            namespace: head.namespace,
            name: head.name,
            resource_version,
            creation_timestamp: head.creation_timestamp,
            deletion_timestamp: head.deletion_timestamp,
            labels: head.labels.unwrap_or_default(),
            annotations: head.annotations.unwrap_or_default(),
            finalizers: head.finalizers.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_changes_nothing_else_of_the_text() {
        let text = r#" { "spec": {"resourceVersion": "7", "n": 1.0e0}, "metadata" : {"resourceVersion":"7" ,
            "name":"a", "uid":"u", "labels": {"resourceVersion": "7"}}, "metadat\u0061x": 1}"#;
        let object = Object::parse_str(text).expect("an object");
        let changed = object.with_version(ResourceVersion(1 << 62));
        let expected = text.replace(r#":"7" ,"#, r#":"4611686018427387904" ,"#);
        assert_eq!(changed.text(), expected.trim());
        let read = Object::parse_str(changed.text()).expect("an object");
        assert_eq!(*read.metadata, *changed.metadata);
    }
}
