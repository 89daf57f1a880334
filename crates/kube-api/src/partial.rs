//! Objects without their content, as PartialObjectMetadata of `meta.k8s.io/v1`: to who asks for metadata alone, and
//! beside the rows of tables.

use serde_json::{Value, json};

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

/// A list of `items`, which are without their content, with the metadata of the list.
pub fn list(items: Vec<Value>, metadata: Value) -> Value {
    let mut list = json!({"apiVersion": VERSION, "kind": LIST_KIND});
    list["metadata"] = metadata;
    list["items"] = items.into();
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_metadata_of_an_object_is_left() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
        let left = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "a"}});
        assert_eq!(of(&object), left);
        let listed = list(vec![left.clone()], json!({"resourceVersion": "7"}));
        assert_eq!((&listed["kind"], &listed["items"]), (&json!(LIST_KIND), &json!([left])));
        assert_eq!(listed["metadata"]["resourceVersion"], "7");
        assert_eq!(of(&json!({}))["metadata"], json!({}));
    }
}
