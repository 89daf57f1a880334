//! Makes the text of a new object from a stored one. Everything but the metadata and what it says of its deletion stays
//! byte for byte. Pure.

use std::collections::BTreeMap;

use kindex_kube_client::ObjectName;
use kindex_model::deletion::{Annotations, BLOCKED_CONDITION, CONDITION_LISTS, PHASE_CONDITION, REFUSED_CONDITION};
use kindex_model::kind::{Kind, Platform};
use kindex_model::object::{Object, Uid};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// Metadata that the API server sets, or that is specific to the old object.
const OF_THE_OLD_OBJECT: [&str; 10] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
    // Finalizers of controllers of the old object. Each adds its own to the new one, and one that no longer exists
    // would never remove it. Ours is added below.
    "finalizers",
    // They name owners by uid, and are resolved before.
    "ownerReferences",
];

/// What is sent to the cluster.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Where the object goes.
    pub name: ObjectName,
    /// The uid that it had.
    pub old_uid: Uid,
    /// The object, with its status if the kind has no status subresource.
    pub text: String,
    /// Its status, if the kind has a status subresource.
    pub status: Option<Box<RawValue>>,
}

/// Why an object cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It would be archived again at once.
    #[error("{0} is declared immutable: the restored object would be archived again at once")]
    Immutable(&'static str),
    /// The stored text is damaged.
    #[error("the stored text: {0}")]
    Text(#[from] serde_json::Error),
    /// It is stored in another version than the kind's own, and has no form in that.
    #[error(transparent)]
    Version(#[from] kindex_convert::ConvertError),
}

/// Makes the manifest of a stored object, with these as its `ownerReferences` and with the references that SQL has on
/// it, under its own name or a new one. It is in the kind's own version, whichever the stored text has.
///
/// # Guarantees
/// The new object has the uid of the old one in the annotation `restored_from`, and none of the annotations that would
/// remove it again. Neither annotations nor conditions say how far the deletion of the old one was. It has our
/// finalizer if the old one had it.
pub(super) fn manifest(
    kind: &Kind,
    platform: &Platform,
    object: &Object,
    owners: &[Value],
    references: &[String],
    new_name: Option<&str>,
) -> Result<Manifest, ManifestError> {
    if kind.immutable {
        return Err(ManifestError::Immutable(kind.name));
    }
    let object = &kindex_convert::object_in(platform, kind, object, kind.version)?;
    let mut parts: BTreeMap<String, Box<RawValue>> = serde_json::from_str(object.text())?;
    if let Some(status) = parts.get("status")
        && let Some(status) = without_deletion(status)?
    {
        parts.insert("status".to_owned(), status);
    }
    let status = parts.get("status").cloned();
    let said = parts.remove("metadata");
    let mut metadata: Map<String, Value> = match said {
        Some(raw) => serde_json::from_str(raw.get())?,
        None => Map::new(),
    };
    for field in OF_THE_OLD_OBJECT {
        metadata.remove(field);
    }
    let mut name = ObjectName::of(object);
    if let Some(new_name) = new_name {
        new_name.clone_into(&mut name.name);
        metadata.insert("name".to_owned(), new_name.into());
    }
    let old_uid = object.metadata.uid.clone();
    let mut annotations = object.metadata.annotations.clone();
    annotations.remove(platform.immutable);
    annotations.remove(platform.deleting);
    for of_its_deletion in Annotations::of(platform.group).names() {
        annotations.remove(of_its_deletion);
    }
    annotations.insert(platform.restored_from.to_owned(), old_uid.to_string());
    metadata.insert("annotations".to_owned(), serde_json::to_value(annotations)?);
    let ours = object
        .metadata
        .finalizers
        .iter()
        .filter(|mark| *mark == platform.finalizer);
    let finalizers: Vec<String> = ours.take(1).chain(references).cloned().collect();
    if !finalizers.is_empty() {
        metadata.insert("finalizers".to_owned(), finalizers.into());
    }
    if !owners.is_empty() {
        metadata.insert("ownerReferences".to_owned(), owners.into());
    }
    parts.insert("metadata".to_owned(), to_raw_value(&metadata)?);
    // The items of a list do not repeat these.
    parts.insert("apiVersion".to_owned(), to_raw_value(&kind.api_version())?);
    parts.insert("kind".to_owned(), to_raw_value(kind.name)?);
    Ok(Manifest {
        name,
        old_uid,
        text: serde_json::to_string(&parts)?,
        status: status.filter(|status| is_not_empty(status)),
    })
}

/// A status without the conditions of a deletion; `None` where it has none of them.
fn without_deletion(status: &RawValue) -> Result<Option<Box<RawValue>>, serde_json::Error> {
    let Ok(mut parts) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(status.get()) else {
        return Ok(None);
    };
    let mut has_some = false;
    for list in CONDITION_LISTS {
        let conditions = parts
            .get(list)
            .map(|list| serde_json::from_str::<Vec<Box<RawValue>>>(list.get()));
        let Some(Ok(mut conditions)) = conditions else { continue };
        let count = conditions.len();
        conditions.retain(|condition| !is_of_deletion(condition));
        if conditions.len() < count {
            has_some = true;
            parts.insert(list.to_owned(), to_raw_value(&conditions)?);
        }
    }
    has_some.then(|| to_raw_value(&parts)).transpose()
}

fn is_of_deletion(condition: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Condition {
        r#type: String,
    }
    // A condition whose type is no text is none of ours.
    let condition = serde_json::from_str::<Condition>(condition.get());
    condition.is_ok_and(|condition| {
        [PHASE_CONDITION, BLOCKED_CONDITION, REFUSED_CONDITION].contains(&condition.r#type.as_str())
    })
}

fn is_not_empty(status: &RawValue) -> bool {
    !matches!(status.get().replace(char::is_whitespace, "").as_str(), "null" | "{}")
}

/// Whether an object has a status that is not empty.
pub(super) fn has_status(object: &Object) -> bool {
    let parts: Result<BTreeMap<String, Box<RawValue>>, _> = serde_json::from_str(object.text());
    let status = parts.ok().and_then(|mut parts| parts.remove("status"));
    status.is_some_and(|status| is_not_empty(&status))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) const KIND: Kind = Kind {
        name: "Thing",
        group: "test.kindex",
        version: "v1",
        plural: "things",
        singular: "thing",
        table: "thing",
        ..Kind::EMPTY
    };

    pub(in super::super) const PLATFORM: Platform = Platform {
        group: "test.kindex",
        version: "v1",
        finalizer: "test/Ingester",
        deleting: "test/Deleting",
        immutable: "test/Immutable",
        restored_from: "test/RestoredFrom",
        ..Platform::EMPTY
    };

    fn made(text: &str) -> (Value, Manifest) {
        let object = Object::parse_str(text).expect("an object");
        let owners = [serde_json::json!({"uid": "o2"})];
        let manifest = manifest(&KIND, &PLATFORM, &object, &owners, &[], None).expect("a manifest");
        (serde_json::from_str(&manifest.text).expect("JSON"), manifest)
    }

    const STORED: &str = r#"{"metadata":{"name":"a","namespace":"n","uid":"u1","resourceVersion":"7","generation":3,
        "creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":"2026-01-02T00:00:00Z",
        "deletionGracePeriodSeconds":0,"managedFields":[{"manager":"x"}],"labels":{"team":"risk"},
        "finalizers":["test/Ingester","others/hold"],"ownerReferences":[{"uid":"o"}],
        "annotations":{"test.kindex/deletion-phase":"DELETING","test.kindex/deletion-phases":"[]",
        "test/Immutable":"true","test/Deleting":"true","note":"kept","test/RestoredFrom":"u0"}},
        "spec":{"rate":1.5000e1, "z":0,"a":18446744073709551616},"status":{"phase":"Done"},"data":{"k": "v"}}"#;

    #[test]
    fn what_the_server_gives_is_left_out_and_what_would_make_it_leave_again_too() {
        let (object, manifest) = made(STORED);
        let expected = serde_json::json!({
            "name": "a", "namespace": "n", "labels": {"team": "risk"},
            "annotations": {"note": "kept", "test/RestoredFrom": "u1"},
            "finalizers": ["test/Ingester"], "ownerReferences": [{"uid": "o2"}],
        });
        assert_eq!(object["metadata"], expected);
        assert_eq!(
            (&object["apiVersion"], &object["kind"]),
            (&"test.kindex/v1".into(), &"Thing".into())
        );
        assert_eq!(
            (manifest.old_uid, manifest.name.to_string()),
            (Uid::from("u1"), "n/a".to_owned())
        );
    }

    #[test]
    fn conditions_of_the_deletion_are_left_out_and_others_stay_to_the_byte() {
        let status = r#"{"conditions":[{"type":"Ready","rate":1.50e1},{"type":"DeletionPhase"},
            {"type":"DeletionBlocked"}],"state":"x"}"#;
        let (object, manifest) = made(&STORED.replace(r#"{"phase":"Done"}"#, status));
        let sent = manifest.status.expect("a status");
        assert_eq!(
            sent.get(),
            r#"{"conditions":[{"type":"Ready","rate":1.50e1}],"state":"x"}"#
        );
        assert_eq!(object["status"]["conditions"].as_array().map(Vec::len), Some(1));
        let others = r#"{"conditions":[{"type":"Ready"}, 1],  "statusConditions":{}}"#;
        let (_, manifest) = made(&STORED.replace(r#"{"phase":"Done"}"#, others));
        assert_eq!(manifest.status.expect("a status").get(), others);
    }

    #[test]
    fn who_used_the_old_object_uses_the_new_one() {
        let object = Object::parse_str(STORED).expect("an object");
        let holder = "cluster.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce".to_owned();
        let manifest =
            manifest(&KIND, &PLATFORM, &object, &[], std::slice::from_ref(&holder), None).expect("a manifest");
        let sent: Value = serde_json::from_str(&manifest.text).expect("JSON");
        assert_eq!(
            sent["metadata"]["finalizers"],
            serde_json::json!(["test/Ingester", holder])
        );
    }

    #[test]
    fn the_rest_stays_to_the_byte_and_the_status_goes_apart_as_well() {
        let (_, manifest) = made(STORED);
        assert!(
            manifest
                .text
                .contains(r#""spec":{"rate":1.5000e1, "z":0,"a":18446744073709551616}"#)
        );
        assert!(manifest.text.contains(r#""data":{"k": "v"}"#));
        assert!(manifest.text.contains(r#""status":{"phase":"Done"}"#));
        assert_eq!(manifest.status.expect("a status").get(), r#"{"phase":"Done"}"#);
        let bare = r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"1"},"status":{ }}"#;
        assert!(made(bare).1.status.is_none());
    }

    #[test]
    fn a_text_of_another_version_goes_out_in_the_kinds_own() {
        const V0: kindex_model::kind::Version = kindex_model::kind::Version {
            name: "v0",
            served: true,
            stored: false,
            deprecated: None,
            map: &[kindex_model::kind::FieldMap {
                here: Some(&["spec", "pace"]),
                own: Some(&["spec", "rate"]),
                rule: kindex_model::kind::MapRule::Same,
            }],
        };
        let kind = Kind {
            versions: &[V0],
            ..KIND
        };
        let old = |version: &str| {
            let text =
                STORED
                    .replace("rate", "pace")
                    .replacen('{', &format!(r#"{{"apiVersion":"test.kindex/{version}","#), 1);
            manifest(
                &kind,
                &PLATFORM,
                &Object::parse_str(&text).expect("an object"),
                &[],
                &[],
                None,
            )
        };
        let sent: Value = serde_json::from_str(&old("v0").expect("a manifest").text).expect("JSON");
        assert_eq!(sent["apiVersion"], "test.kindex/v1");
        assert_eq!((&sent["spec"]["rate"], sent["spec"].get("pace")), (&15.0.into(), None));
        let refused = old("v9").expect_err("no version of the kind");
        assert!(
            refused.to_string().contains("is not a version of this kind"),
            "{refused}"
        );
    }

    #[test]
    fn a_kind_whose_objects_never_stay_is_refused() {
        let kind = Kind {
            immutable: true,
            ..KIND
        };
        let object = Object::parse_str(STORED).expect("an object");
        let refused = manifest(&kind, &PLATFORM, &object, &[], &[], None).expect_err("refused");
        assert!(refused.to_string().contains("archived again at once"));
    }
}
