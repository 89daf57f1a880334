//! Lists in wire format: the items as texts, and the metadata of the list.

use serde::Deserialize;
use serde_json::value::RawValue;

/// A list, or a page of one.
#[derive(Debug, Deserialize)]
pub struct List {
    /// What is said of the list.
    pub metadata: ListMetadata,
    /// Its items, each with its exact text. Kubernetes says `null` of none.
    #[serde(default)]
    pub items: Option<Vec<Box<RawValue>>>,
}

/// What is said of a list, and of how far a watch has come.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListMetadata {
    /// The version of all of it.
    #[serde(default)]
    pub resource_version: String,
    /// Fetches the next page; [`next`](Self::next) passes over an empty one.
    #[serde(default, rename = "continue")]
    continue_token: Option<String>,
    /// How many items follow this page, where the server says.
    #[serde(default)]
    pub remaining_item_count: Option<u64>,
}

impl ListMetadata {
    /// The token of the next page, where there is one.
    pub fn next(&self) -> Option<&str> {
        self.continue_token.as_deref().filter(|token| !token.is_empty())
    }
}
