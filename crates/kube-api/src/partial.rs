//! Objects without their content, as PartialObjectMetadata of `meta.k8s.io/v1`: to who asks for metadata alone, and
//! beside the rows of tables.

use serde_json::{Value, json};

use crate::list::{self, ListMeta};

/// The version of what is answered in place of objects: this, and tables.
pub const VERSION: &str = "meta.k8s.io/v1";
/// The kind of one.
pub const KIND: &str = "PartialObjectMetadata";
/// The kind of a list of them.
pub const LIST_KIND: &str = "PartialObjectMetadataList";

/// The object without its content.
pub fn of(object: &Value) -> Value {
    let mut partial = json!({"apiVersion": VERSION, "kind": KIND, "metadata": {}});
    if let Some(metadata) = object.get("metadata") {
        partial["metadata"] = metadata.clone();
    }
    partial
}

/// A list of `items`, which are without their content.
pub fn list(items: Vec<Value>, meta: &ListMeta) -> Value {
    list::value(VERSION, LIST_KIND, items, meta)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_metadata_of_an_object_is_left() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
        let left = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "a"}});
        assert_eq!(of(&object), left);
        let meta = ListMeta {
            resource_version: "7".to_owned(),
            ..ListMeta::default()
        };
        let listed = list(vec![left.clone()], &meta);
        assert_eq!((&listed["kind"], &listed["items"]), (&json!(LIST_KIND), &json!([left])));
        assert_eq!(listed["metadata"]["resourceVersion"], "7");
        assert_eq!(of(&json!({}))["metadata"], json!({}));
    }
}
