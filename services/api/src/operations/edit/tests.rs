//! What a change of an archived object may do, and what it makes of the object.

use kindex_model::reference::{Named, OnDelete, Reference};

use super::*;
use crate::operations::token::tests::KIND;

static HOLDERS: Kind = Kind {
    references: &[Reference {
        name: "network",
        targets: &[],
        kind_column: None,
        path: &["spec", "network"],
        named: Named::Name,
        columns: &[],
        owned: false,
        on_delete: OnDelete::Block,
    }],
    ..KIND
};

#[test]
fn only_a_merge_patch_that_mentions_no_reference_is_known_to_change_none() {
    let own = Resource::from(&HOLDERS);
    let other = Resource { version: "v0", ..own };
    let deep = format!(r#"{{"metadata": {}{}}}"#, "[".repeat(200), "]".repeat(200));
    let elsewhere = r#"{"metadata": {"labels": null}, "spec": {"size": 1}}"#;
    for (resource, patch_type, body, expected) in [
        (own, PatchType::Merge, elsewhere, false),
        (own, PatchType::Merge, r#"{"spec": {"network": null}}"#, true),
        (own, PatchType::Merge, r#"{"spec": null}"#, true),
        (own, PatchType::Merge, "null", true),
        (own, PatchType::Merge, deep.as_str(), true),
        (other, PatchType::Merge, elsewhere, true),
        (own, PatchType::Apply, elsewhere, true),
        (own, PatchType::Json, "[{}]", true),
    ] {
        assert_eq!(may_move(resource, patch_type, body.as_bytes()), expected, "{body}");
    }
}

#[test]
fn a_change_of_the_status_moves_a_field_only_where_one_is_there_or_may_be() {
    static OBSERVERS: Kind = Kind {
        references: &[Reference {
            path: &["status", "network"],
            ..HOLDERS.references[0]
        }],
        ..KIND
    };
    let own = Resource::from(&HOLDERS);
    let other = Resource { version: "v0", ..own };
    for (resource, part, expected) in [
        (own, Part::Main, true),
        (own, Part::Status, false),
        (other, Part::Status, true),
        (Resource::from(&OBSERVERS), Part::Status, true),
        (Resource::from(&KIND), Part::Main, false),
    ] {
        assert_eq!(may_name_in(resource, part), expected, "{}", resource.version);
    }
}

/// As if a webhook or a proxy could let anything into the archive.
#[test]
fn only_a_namespace_that_is_gone_lets_an_object_pass() {
    let (resource, namespace, name) = (Resource::from(&KIND), "n", "a");
    let seen = |message: &str, about: &str| {
        let body = json!({"reason": "NotFound", "message": message, "details": {"name": about}}).to_string();
        let key = ObjectKey {
            resource,
            namespace,
            name,
        };
        as_seen(&key, json!({}), Err(Refusal::from_status(404, body.as_bytes())))
    };
    assert!(seen("namespaces \"n\" not found", "n").is_ok());
    for (message, about) in [
        ("404 page not found", ""),
        ("admission webhook \"w\" denied the request: no", "n"),
    ] {
        assert_eq!(seen(message, about).unwrap_err().code, 404, "{message}");
    }
}

#[test]
fn identity_and_status_are_not_changed_by_the_way() {
    let old = json!({"apiVersion": "g/v1", "kind": "Run", "metadata": {
        "name": "a", "uid": "u", "generation": 3, "labels": {"a": "b"}}, "spec": {"n": 1}, "status": {"x": 1}});
    let wanted = json!({"apiVersion": "other", "kind": "Other", "metadata": {
        "name": "z", "uid": "v", "annotations": {"c": "d"}}, "spec": {"n": 2}, "status": {"x": 2}});
    let new = counted(&old, merged(&old, &wanted));
    assert_eq!(
        new,
        json!({"apiVersion": "g/v1", "kind": "Run", "metadata": {
            "name": "a", "uid": "u", "generation": 4, "annotations": {"c": "d"}},
            "spec": {"n": 2}, "status": {"x": 1}})
    );
    let status = counted(&old, with_status(&old, &wanted));
    assert_eq!(status["status"], json!({"x": 2}));
    assert_eq!(status["metadata"], old["metadata"]);
}

#[test]
fn a_small_patch_of_an_archived_object_does_not_make_a_large_one() {
    let old = json!({"apiVersion": "g/v1", "kind": "Run", "metadata": {"name": "a"}, "spec": {"text": "x"}});
    let refused = |patch_type, body: &Value| {
        let edit = Edit::patch(patch_type, body.to_string().as_bytes());
        edit.and_then(|edit| edit.apply(&Resource::from(&KIND), &old))
            .unwrap_err()
    };
    let double = |at: usize| json!({"op": "copy", "from": "/spec", "path": format!("/spec/x{at}")});
    let doubled = refused(PatchType::Json, &(0..30).map(double).collect());
    assert_eq!((doubled.code, &doubled.reason), (422, &Reason::Invalid));
    let causes = &doubled.details.as_ref().expect("why").causes;
    assert!(
        causes[0].message.contains("accumulated size increase of copy"),
        "{causes:?}"
    );
    let step = json!({"op": "test", "path": "/kind", "value": "Run"});
    let many = refused(PatchType::Json, &vec![step; 10_001].into());
    assert_eq!(
        (many.code, many.message.as_str()),
        (
            413,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
        )
    );
    let grown = json!({"spec": {"text": "x".repeat(OBJECT_BYTES_MAX)}});
    let grown = refused(PatchType::Merge, &grown);
    assert_eq!(
        (grown.code, grown.message.as_str()),
        (413, "Request entity too large: limit is 3145728")
    );
}

/// As if a patch could take everything off an archived object but its status.
#[test]
fn what_a_patch_makes_is_an_object_with_metadata_and_a_name() {
    let old = json!({"apiVersion": "g/v1", "kind": "Run", "spec": {"n": 1},
        "metadata": {"name": "a", "resourceVersion": "7", "labels": {"a": "b"}, "finalizers": ["g/f"]}});
    let key = ObjectKey {
        resource: Resource::from(&KIND),
        namespace: "n",
        name: "a",
    };
    let edited = |patch_type, patch: Value| {
        let edit = Edit::patch(patch_type, patch.to_string().as_bytes())?;
        let new = edit.apply(&Resource::from(&KIND), &old)?;
        check_update(group_resource(&KIND), &old, &new, true)?;
        check_metadata(&key, &merged(&old, &new))?;
        Ok::<_, Refusal>(new)
    };
    let replace = |path: &str, value: Value| json!([{"op": "replace", "path": path, "value": value}]);
    for (patch_type, patch, code) in [
        (PatchType::Json, replace("", json!([])), 400),
        (PatchType::Json, replace("", json!("x")), 400),
        (PatchType::Json, replace("", json!({})), 400),
        (PatchType::Json, replace("/metadata", json!("x")), 400),
        (PatchType::Json, replace("/metadata/labels", json!("x")), 400),
        (PatchType::Json, replace("/metadata/finalizers", json!({})), 400),
        (PatchType::Json, json!([{"op": "remove", "path": "/metadata"}]), 400),
        (PatchType::Json, json!({}), 400),
        (PatchType::Json, json!([{}]), 422),
        (PatchType::Merge, json!([]), 400),
        (PatchType::Merge, json!(null), 400),
        (PatchType::Merge, json!({"metadata": null}), 400),
        (PatchType::Merge, json!({"metadata": {"ownerReferences": "x"}}), 400),
        (PatchType::Merge, json!({"metadata": {"finalizers": [null]}}), 422),
        (
            PatchType::Merge,
            json!({"metadata": {"ownerReferences": [{"name": "b"}]}}),
            422,
        ),
        (PatchType::Merge, json!({"metadata": {"resourceVersion": null}}), 422),
        (PatchType::Merge, json!({"metadata": {"resourceVersion": "6"}}), 409),
    ] {
        let refused = edited(patch_type, patch.clone());
        assert_eq!(refused.map_err(|refusal| refusal.code), Err(code), "{patch}");
    }
    let refused = edited(PatchType::Json, replace("", json!([]))).expect_err("not an object");
    assert!(refused.message.ends_with("it is not a JSON object"), "{refused:?}");
    let changed = edited(PatchType::Merge, json!({"metadata": {"labels": null}})).expect("an object");
    assert_eq!(changed["metadata"]["labels"], Value::Null);
}
