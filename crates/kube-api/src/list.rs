//! Lists in wire format: the items as texts, and the metadata of the list, read and written.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// A list, or a page of one.
#[derive(Debug, Deserialize)]
pub struct List {
    /// What is said of the list.
    pub metadata: ListMeta,
    /// Its items, each with its exact text. Kubernetes says `null` of none.
    #[serde(default)]
    pub items: Option<Vec<Box<RawValue>>>,
}

/// What is said of a list, and of how far a watch has come.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ListMeta {
    /// The version of all of it.
    pub resource_version: String,
    /// Fetches the next page; [`next`](Self::next) passes over an empty one.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub continue_token: Option<String>,
    /// How many items follow this page, where the server says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_item_count: Option<u64>,
}

impl ListMeta {
    /// The token of the next page, where there is one.
    pub fn next(&self) -> Option<&str> {
        self.continue_token.as_deref().filter(|token| !token.is_empty())
    }

    /// As JSON.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("it holds only texts and a number")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_of_a_list_is_read_again_and_nothing_is_written_of_what_it_lacks() {
        let last = json!({"resourceVersion": "7"});
        let first = json!({"resourceVersion": "7", "continue": "t", "remainingItemCount": 3});
        for (written, next) in [(last, None), (first, Some("t"))] {
            let read: ListMeta = serde_json::from_value(written.clone()).expect("metadata");
            assert_eq!(read.next(), next);
            assert_eq!(read.to_value(), written);
        }
        let empty: ListMeta = serde_json::from_value(json!({"continue": ""})).expect("metadata");
        assert_eq!((empty.next(), empty.resource_version.as_str()), (None, ""));
    }
}
