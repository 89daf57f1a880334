//! Looks up the owners of an object. References name them by uid, and the garbage collector deletes an object at once
//! if all of its owners are absent, so every reference is checked before it is sent.

use kindex_kube_client::{ClusterError, ObjectName, ReadApi};
use kindex_model::kind::{Kind, Registry, Scope};
use kindex_model::object::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::retries::{RetryBudget, with_retries};

/// An owner whose reference is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OmittedOwner {
    /// `Kind/name`.
    pub owner: String,
    /// Why.
    pub reason: &'static str,
}

/// The references of the new object, and those that are left out.
#[derive(Debug, Default)]
pub(super) struct Owners {
    pub(super) kept: Vec<Value>,
    pub(super) left_out: Vec<OmittedOwner>,
}

#[derive(Deserialize)]
struct Parts {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    owner_references: Option<Vec<Value>>,
}

/// Reads the references of a text, and looks up the owners whose kinds are in the registry.
pub(super) async fn owners(
    cluster: &dyn ReadApi,
    registry: &Registry,
    object: &Object,
    retry_budget: RetryBudget,
) -> Result<Owners, ClusterError> {
    let mut owners = Owners::default();
    // The text was parsed as an object before. References of another shape are ignored.
    let parts: Option<Parts> = serde_json::from_str(object.text()).ok();
    for reference in parts
        .and_then(|parts| parts.metadata.owner_references)
        .unwrap_or_default()
    {
        let found = match owner_kind(registry, &reference) {
            None => Found::OfAnotherKind,
            Some(kind) => {
                let name = owner_name(kind, &reference, object);
                let owner = with_retries(retry_budget, || cluster.find(kind, &name)).await?;
                judge(&reference, owner.as_ref(), registry.platform.restored_from)
            }
        };
        owners.add(reference, found);
    }
    Ok(owners)
}

/// The result of the lookup of an owner.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// It is present.
    Same,
    /// It was restored, and has this uid now.
    Restored(String),
    Gone,
    OfAnotherKind,
}

impl Owners {
    fn add(&mut self, mut reference: Value, found: Found) {
        let reason = match found {
            Found::Same => return self.kept.push(reference),
            Found::Restored(uid) => {
                reference["uid"] = uid.into();
                return self.kept.push(reference);
            }
            Found::Gone => "gone",
            Found::OfAnotherKind => "of a kind that Kindex does not know",
        };
        let owner = format!("{}/{}", text(&reference, "kind"), text(&reference, "name"));
        self.left_out.push(OmittedOwner { owner, reason });
    }
}

fn text<'a>(reference: &'a Value, field: &str) -> &'a str {
    reference[field].as_str().unwrap_or_default()
}

fn owner_kind(registry: &Registry, reference: &Value) -> Option<&'static Kind> {
    let (group, _) = text(reference, "apiVersion").split_once('/')?;
    let name = text(reference, "kind");
    let of_name = |kind: &&&'static Kind| kind.name == name && kind.group == group;
    registry.kinds.iter().find(of_name).copied()
}

/// An owner is in its dependant's namespace, or in none.
fn owner_name(kind: &Kind, reference: &Value, object: &Object) -> ObjectName {
    ObjectName {
        namespace: match kind.scope {
            Scope::Namespaced => object.metadata.namespace.clone(),
            Scope::Cluster => String::new(),
        },
        name: text(reference, "name").to_owned(),
    }
}

fn judge(reference: &Value, owner: Option<&Object>, restored_from: &str) -> Found {
    let uid = text(reference, "uid");
    match owner {
        Some(owner) if *owner.metadata.uid.0 == *uid => Found::Same,
        Some(owner)
            if owner
                .metadata
                .annotations
                .get(restored_from)
                .is_some_and(|from| from == uid) =>
        {
            Found::Restored(owner.metadata.uid.to_string())
        }
        Some(_) | None => Found::Gone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::restore::manifest::tests::{KIND, PLATFORM};

    #[test]
    fn an_owner_is_the_one_of_its_uid_or_what_that_one_came_back_as() {
        let reference = serde_json::json!({"kind": "Thing", "name": "a", "uid": "o1"});
        let object = |text: &str| Object::parse_str(text).expect("an object");
        let same = object(r#"{"metadata":{"name":"a","uid":"o1","resourceVersion":"1"}}"#);
        let other = object(r#"{"metadata":{"name":"a","uid":"o2","resourceVersion":"1"}}"#);
        let restored = object(
            r#"{"metadata":{"name":"a","uid":"o3","resourceVersion":"1","annotations":{"test/RestoredFrom":"o1"}}}"#,
        );
        let judged = |owner| judge(&reference, owner, "test/RestoredFrom");
        assert_eq!(judged(Some(&same)), Found::Same);
        assert_eq!(judged(Some(&other)), Found::Gone);
        assert_eq!(judged(Some(&restored)), Found::Restored("o3".to_owned()));
        assert_eq!(judged(None), Found::Gone);
        let restored_from_another = serde_json::json!({"kind": "Thing", "name": "a", "uid": "o9"});
        assert_eq!(
            judge(&restored_from_another, Some(&restored), "test/RestoredFrom"),
            Found::Gone
        );

        let mut owners = Owners::default();
        owners.add(reference.clone(), judged(Some(&restored)));
        owners.add(reference.clone(), judged(None));
        assert_eq!(
            owners.kept,
            [serde_json::json!({"kind": "Thing", "name": "a", "uid": "o3"})]
        );
        assert_eq!(
            (owners.left_out.len(), owners.left_out[0].owner.as_str()),
            (1, "Thing/a")
        );
    }

    #[test]
    fn an_owner_is_in_the_namespace_of_its_dependant_or_in_none() {
        static WIDE: Kind = Kind {
            scope: Scope::Cluster,
            ..ONE
        };
        let reference = serde_json::json!({"kind": "Thing", "name": "a", "uid": "o1"});
        let text = r#"{"metadata":{"name":"part","namespace":"n","uid":"p","resourceVersion":"1"}}"#;
        let dependant = Object::parse_str(text).expect("an object");
        for (kind, namespace) in [(&ONE, "n"), (&WIDE, "")] {
            let name = owner_name(kind, &reference, &dependant);
            assert_eq!((name.namespace.as_str(), name.name.as_str()), (namespace, "a"));
        }
    }

    const fn kind(group: &'static str, name: &'static str) -> Kind {
        Kind { name, group, ..KIND }
    }

    static ONE: Kind = kind("one.test", "Thing");
    static OTHER: Kind = kind("other.test", "Thing");
    static PART: Kind = kind("one.test", "Part");

    #[test]
    fn of_two_kinds_of_one_name_the_owner_is_of_its_own_group() {
        static KINDS: &[&Kind] = &[&ONE, &OTHER, &PART];
        let registry = Registry {
            platform: PLATFORM,
            kinds: KINDS,
            ..Registry::EMPTY
        };
        for (group, name, expected) in [
            ("one.test", "Thing", Some("one.test")),
            ("other.test", "Thing", Some("other.test")),
            ("one.test", "Part", Some("one.test")),
            ("other.test", "Part", None),
            ("third.test", "Thing", None),
        ] {
            let reference = serde_json::json!({"apiVersion": format!("{group}/v0"), "kind": name, "name": "a"});
            let found = owner_kind(&registry, &reference);
            assert_eq!(
                found.map(|kind| (kind.group, kind.name)),
                expected.map(|group| (group, name))
            );
        }
    }
}
