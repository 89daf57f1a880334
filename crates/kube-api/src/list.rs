//! Lists in wire format: the items as texts, and the metadata of the list, read and written. Knows nothing of what the
//! items are.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

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

/// What stands before the items of a list in JSON; [`LIST_END`] follows them.
pub fn head(api_version: &str, kind: &str, meta: &ListMeta) -> String {
    let metadata = meta.to_value();
    format!("{{\"apiVersion\":\"{api_version}\",\"kind\":\"{kind}\",\"metadata\":{metadata},\"items\":[")
}

/// What ends a list, or a table, that begins with a head.
pub const LIST_END: &str = "]}";

/// A list in JSON, made of the texts of its items. Its fields are in alphabetical order, as kube-apiserver writes those
/// of custom resources.
pub fn text(api_version: &str, kind: &str, items: &[impl AsRef<[u8]>], meta: &ListMeta) -> Vec<u8> {
    let size: usize = items.iter().map(|item| item.as_ref().len() + 1).sum();
    let mut list = Vec::with_capacity(size + 256);
    list.extend_from_slice(format!("{{\"apiVersion\":\"{api_version}\",\"items\":[").as_bytes());
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            list.push(b',');
        }
        list.extend_from_slice(item.as_ref());
    }
    let metadata = meta.to_value();
    list.extend_from_slice(format!("],\"kind\":\"{kind}\",\"metadata\":{metadata}}}").as_bytes());
    list
}

/// A list as a value.
pub fn value(api_version: &str, kind: &str, items: Vec<Value>, meta: &ListMeta) -> Value {
    let mut list = json!({"apiVersion": api_version, "kind": kind});
    list["metadata"] = meta.to_value();
    list["items"] = items.into();
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_the_same_as_a_text_as_a_value_and_from_its_head_on() {
        let meta = ListMeta {
            resource_version: "7".to_owned(),
            continue_token: Some("t".to_owned()),
            remaining_item_count: Some(3),
        };
        let metadata = r#"{"continue":"t","remainingItemCount":3,"resourceVersion":"7"}"#;
        let objects = [r#"{"a": 1}"#, r#"{"b":2}"#];
        for items in [&objects[..], &objects[..1], &objects[..0]] {
            let joined = items.join(",");
            let whole = text("g/v1", "WidgetList", items, &meta);
            let expected =
                format!(r#"{{"apiVersion":"g/v1","items":[{joined}],"kind":"WidgetList","metadata":{metadata}}}"#);
            assert_eq!(std::str::from_utf8(&whole), Ok(expected.as_str()));
            let headed = head("g/v1", "WidgetList", &meta) + &joined + LIST_END;
            let expected =
                format!(r#"{{"apiVersion":"g/v1","kind":"WidgetList","metadata":{metadata},"items":[{joined}]}}"#);
            assert_eq!(headed, expected);
            let parsed = items
                .iter()
                .map(|item| serde_json::from_str::<Value>(item).expect("an item"));
            let as_value = value("g/v1", "WidgetList", parsed.collect(), &meta);
            for written in [whole, headed.into_bytes()] {
                assert_eq!(serde_json::from_slice::<Value>(&written).expect("JSON"), as_value);
            }
        }
    }

    #[test]
    fn an_empty_token_is_written() {
        let meta = ListMeta {
            continue_token: Some(String::new()),
            ..ListMeta::default()
        };
        assert_eq!(meta.to_value(), json!({"continue": "", "resourceVersion": ""}));
    }

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
