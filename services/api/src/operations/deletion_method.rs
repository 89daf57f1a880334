//! The method by which an object in the cluster is deleted, and the mark by which the deletion of a final one is told
//! from an eviction.

use kindex_kube_api::request::Propagation;
use kindex_model::head::Head;
use kindex_model::kind::Platform;
use kindex_model::object::Object;
use serde_json::{Value, json};

use super::DeleteOptions;

/// How an object in the cluster is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeletionMethod {
    /// The ingester stores it, and then deletes it.
    Annotation,
    /// The cluster deletes it, and our finalizer holds it until SQL has it.
    Tombstone,
    /// The same, and it needs our finalizer first.
    AdoptedTombstone,
    /// The same, and it needs the annotation first: it is final, and its deletion would be taken for an eviction.
    MarkedTombstone,
    /// Its deletion was asked for, and counts as one as long as others use the object, whatever its row says: nothing
    /// is left to do.
    Going,
    /// It leaves the cluster: for the archive, and is deleted there, or because it is deleted already.
    Leaving {
        /// Whether it looks as if it left for the archive, and needs the annotation if it does not.
        unmarked: bool,
    },
}

/// Whether the dependents are to be treated in a way that only a deletion by the cluster knows.
pub(super) fn is_for_the_cluster(options: &DeleteOptions) -> bool {
    !matches!(options.propagation(), Ok(None | Some(Propagation::Background))) || options.is_dry_run()
}

/// How one is deleted; `of_graph`: others wait for its deletion, or it waits for others.
pub(super) fn deletion_method(of_graph: bool, object: Head) -> DeletionMethod {
    if object.deletion_timestamp.is_some() {
        return match object.deleting && object.in_use() {
            true => DeletionMethod::Going,
            false => DeletionMethod::Leaving {
                unmarked: object.immutable && !object.deleting,
            },
        };
    }
    match (of_graph, object.immutable, object.has_finalizer) {
        (false, ..) => DeletionMethod::Annotation,
        (true, true, _) => DeletionMethod::MarkedTombstone,
        (true, false, true) => DeletionMethod::Tombstone,
        (true, false, false) => DeletionMethod::AdoptedTombstone,
    }
}

/// The patch that says of a final object that its deletion is one, where it is still in this version. With our
/// finalizer, which an object that is leaving cannot get any more.
pub(super) fn mark(object: &Object, platform: &Platform) -> Value {
    let metadata = &object.metadata;
    let deleting = platform.deleting;
    let mut marked = json!({
        "uid": metadata.uid.to_string(),
        "resourceVersion": metadata.resource_version.to_string(),
        "annotations": {deleting: "true"},
    });
    let mut finalizers: Vec<&str> = metadata.finalizers.iter().map(String::as_str).collect();
    if metadata.deletion_timestamp.is_none() && !finalizers.contains(&platform.finalizer) {
        finalizers.push(platform.finalizer);
        marked["finalizers"] = json!(finalizers);
    }
    json!({"metadata": marked})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::objects::tests::PLATFORM;
    use crate::operations::token::tests::KIND;

    fn object(more: &Value) -> Object {
        let mut metadata = json!({"name": "a", "uid": "u", "resourceVersion": "7"});
        for (field, value) in more.as_object().expect("fields") {
            metadata[field.as_str()] = value.clone();
        }
        Object::parse_str(&json!({"metadata": metadata}).to_string()).expect("an object")
    }

    fn method_of(of_graph: bool, annotations: &Value, more: &Value) -> DeletionMethod {
        let mut more = more.clone();
        more["annotations"] = annotations.clone();
        deletion_method(of_graph, Head::of(&object(&more), &KIND, &PLATFORM))
    }

    #[test]
    fn what_others_wait_for_is_deleted_by_a_tombstone() {
        let (plain, last) = (json!({}), json!({"g/Immutable": "true"}));
        let (bare, adopted) = (json!({}), json!({"finalizers": ["g/Ingester"]}));
        for (of_graph, annotations, more, expected) in [
            (false, &plain, &bare, DeletionMethod::Annotation),
            (false, &plain, &adopted, DeletionMethod::Annotation),
            (false, &last, &adopted, DeletionMethod::Annotation),
            (true, &plain, &adopted, DeletionMethod::Tombstone),
            (true, &plain, &bare, DeletionMethod::AdoptedTombstone),
            (true, &last, &adopted, DeletionMethod::MarkedTombstone),
            (true, &last, &bare, DeletionMethod::MarkedTombstone),
        ] {
            assert_eq!(method_of(of_graph, annotations, more), expected);
        }
    }

    #[test]
    fn what_leaves_needs_the_mark_if_it_is_final() {
        let leaving = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        for of_graph in [false, true] {
            for (annotations, unmarked) in [
                (json!({}), false),
                (json!({"g/Deleting": "true"}), false),
                (json!({"g/Immutable": "true"}), true),
                (json!({"g/Immutable": "true", "g/Deleting": "true"}), false),
            ] {
                let expected = DeletionMethod::Leaving { unmarked };
                assert_eq!(method_of(of_graph, &annotations, &leaving), expected, "{annotations}");
            }
        }
    }

    /// As if a row that was archived just before the mark were deleted: the ingester would bring it back.
    #[test]
    fn what_was_marked_while_others_use_it_is_left_to_the_ingester() {
        let unmarked = json!({"g/Immutable": "true"});
        for finalizer in ["run.g/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce", "g/deletion"] {
            let leaving = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["g/Ingester", finalizer]});
            let marked = json!({"g/Immutable": "true", "g/Deleting": "true"});
            assert_eq!(method_of(true, &marked, &leaving), DeletionMethod::Going, "{finalizer}");
            let evicting = DeletionMethod::Leaving { unmarked: true };
            assert_eq!(method_of(true, &unmarked, &leaving), evicting, "{finalizer}");
        }
    }

    #[test]
    fn a_mark_is_of_one_version_and_comes_with_our_finalizer_as_long_as_the_cluster_takes_one() {
        let marked = |more: Value| mark(&object(&more), &PLATFORM)["metadata"].clone();
        let bare = json!({"uid": "u", "resourceVersion": "7", "annotations": {"g/Deleting": "true"}});
        let mut adopted = bare.clone();
        adopted["finalizers"] = json!(["run.g/one", "g/Ingester"]);
        assert_eq!(marked(json!({"finalizers": ["run.g/one"]})), adopted);
        assert_eq!(marked(json!({"finalizers": ["g/Ingester"]})), bare);
        let leaving = json!({"finalizers": ["run.g/one"], "deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(marked(leaving), bare);
    }

    /// Orphans and dependents to wait for are the work of the cluster's own garbage collector.
    #[test]
    fn the_cluster_deletes_what_it_alone_can() {
        for (options, is_for_the_cluster) in [
            (json!({}), false),
            (
                json!({"propagationPolicy": "Background", "gracePeriodSeconds": 0}),
                false,
            ),
            (json!({"orphanDependents": false}), false),
            (json!({"dryRun": []}), false),
            (json!({"propagationPolicy": "Foreground"}), true),
            (json!({"propagationPolicy": "Orphan"}), true),
            (json!({"orphanDependents": true}), true),
            (json!({"dryRun": ["All"]}), true),
            (
                json!({"propagationPolicy": "Background", "orphanDependents": false}),
                true,
            ),
        ] {
            let read: DeleteOptions = serde_json::from_value(options.clone()).expect("options");
            assert_eq!(super::is_for_the_cluster(&read), is_for_the_cluster, "{options}");
        }
    }
}
