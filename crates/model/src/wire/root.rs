//! Whole objects and lists of them as messages: what the `proto` column holds and what gRPC
//! carries. One generic type for all kinds, because only spec and status differ.

use std::fmt::Debug;

use prost::Message;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::decode::{decode, nameless};
use super::meta::{ListMeta, ObjectMeta, TypeMeta};
use super::report::collect_strictly;
use super::shape::{or_default, unset};
use crate::kind::{Encoded, Problem};

/// A message that can be part of another; every generated one can.
pub trait Part: Message + Default + Debug {}

impl<M: Message + Default + Debug> Part for M {}

/// The root message of a kind: `type_meta` = 1, `metadata` = 2, `spec` = 3, `status` = 4.
///
/// In JSON `kind` and `apiVersion` stand beside the others, as everywhere in Kubernetes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Root<S: Part, T: Part> {
    /// Kind and API version.
    #[prost(message, optional, tag = "1")]
    pub type_meta: Option<TypeMeta>,
    /// Name, labels, versions and finalizers.
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<ObjectMeta>,
    /// What is wanted.
    #[prost(message, optional, tag = "3")]
    pub spec: Option<S>,
    /// What is.
    #[prost(message, optional, tag = "4")]
    pub status: Option<T>,
}

/// The status of a kind that has none: it reads nothing and is never written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
pub struct NoStatus {}

/// The list message of a kind: `type_meta` = 1, `metadata` = 2, `items` = 3.
#[derive(Clone, PartialEq, prost::Message)]
pub struct List<R: Part> {
    /// Kind and API version.
    #[prost(message, optional, tag = "1")]
    pub type_meta: Option<TypeMeta>,
    /// Version and continuation.
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<ListMeta>,
    /// The objects.
    #[prost(message, repeated, tag = "3")]
    pub items: Vec<R>,
}

/// A root as its JSON shows it.
#[derive(Deserialize)]
#[serde(
    default,
    rename_all = "camelCase",
    bound = "S: Deserialize<'de>, T: Deserialize<'de>"
)]
struct RootText<S, T> {
    #[serde(deserialize_with = "or_default")]
    api_version: String,
    #[serde(deserialize_with = "or_default")]
    kind: String,
    metadata: Option<ObjectMeta>,
    spec: Option<S>,
    status: Option<T>,
}

/// Derived, it would ask for defaults of `S` and `T`.
impl<S, T> Default for RootText<S, T> {
    fn default() -> Self {
        Self {
            api_version: String::new(),
            kind: String::new(),
            metadata: None,
            spec: None,
            status: None,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RootView<'a, S, T> {
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a ObjectMeta>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<&'a S>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a T>,
}

impl<'de, S, T> Deserialize<'de> for Root<S, T>
where
    S: Part + Deserialize<'de>,
    T: Part + Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = RootText::deserialize(deserializer)?;
        let type_meta = TypeMeta {
            kind: text.kind,
            api_version: text.api_version,
        };
        Ok(Self {
            type_meta: (!unset(&type_meta)).then_some(type_meta),
            metadata: text.metadata,
            spec: text.spec,
            status: text.status,
        })
    }
}

impl<S, T> Serialize for Root<S, T>
where
    S: Part + Serialize,
    T: Part + Serialize,
{
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let type_meta = self.type_meta.as_ref();
        RootView {
            api_version: type_meta.map_or("", |meta| meta.api_version.as_str()),
            kind: type_meta.map_or("", |meta| meta.kind.as_str()),
            metadata: self.metadata.as_ref(),
            spec: self.spec.as_ref(),
            status: self.status.as_ref(),
        }
        .serialize(serializer)
    }
}

/// Encodes an object's JSON text as the root message of its kind: the bytes of the `proto` column.
pub fn encode_root<S, T>(text: &str) -> Encoded
where
    S: Part + DeserializeOwned,
    T: Part + DeserializeOwned,
{
    let decoded = decode::<Root<S, T>>(text);
    Encoded {
        proto: decoded.value.map(|root| root.encode_to_vec()),
        problems: decoded.problems,
    }
}

/// The JSON text of an object whose root message these bytes are: the way back of [`encode_root`].
///
/// # Errors
/// Everything that keeps the object from JSON: bytes that are no such message, values without a JSON form, and numbers
/// that no value of their enum has, with their paths.
pub fn decode_root<S, T>(bytes: &[u8]) -> Result<String, Vec<Problem>>
where
    S: Part + Serialize + DeserializeOwned,
    T: Part + Serialize + DeserializeOwned,
{
    let whole = |message: String| {
        vec![Problem {
            path: String::new(),
            message,
        }]
    };
    let root = Root::<S, T>::decode(bytes).map_err(|error| whole(error.to_string()))?;
    let (text, reports) = collect_strictly(|| serde_json::to_string(&root));
    let text = text.map_err(|error| whole(error.to_string()))?;
    if reports.problems.is_empty() {
        return Ok(text);
    }
    // Writing does not know where it is; reading does.
    match nameless::<Root<S, T>>(&text) {
        located if located.is_empty() => Err(reports.problems),
        located => Err(located),
    }
}
