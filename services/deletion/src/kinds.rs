//! The kinds of a registry that are in the graph, and how their objects are read. Knows no cluster.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kindex_model::deletion::{CONDITION_LISTS, REFUSED_CONDITION};
use kindex_model::kind::{Kind, Platform, Registry, Scope};
use kindex_model::named_object::naming_paths;
use kindex_model::object::Object as Text;
use kindex_model::picked::{PathSegment, picked};
use kindex_model::reference::{Reference, Service, Target};
use kindex_model::reference_name::ReferenceName;
use serde_json::Value;

use crate::edges::edges;
use crate::graph::Declared;
use crate::object::{Edge, Key, KindName, Names, Object};

/// The kinds of the graph.
#[derive(Clone, Debug)]
pub struct Kinds {
    of: BTreeMap<KindName, &'static Kind>,
    /// The finalizers and annotations of its objects.
    pub names: Names,
    /// The same of objects that are only in SQL: these leave for no archive, whatever their annotations say.
    names_of_sql_only: Names,
}

impl Kinds {
    /// Those that wait for each other, or for kinds of other services.
    pub fn of(registry: &Registry) -> Self {
        let in_graph = registry.kinds.iter().copied().filter(|kind| registry.is_of_graph(kind));
        let names = Names::of(&registry.platform);
        Self {
            of: in_graph.map(|kind| (name_of(kind), kind)).collect(),
            names_of_sql_only: Names {
                immutable: String::new(),
                ..names.clone()
            },
            names,
        }
    }

    /// The kinds of other services that they wait for.
    pub fn foreign(&self) -> BTreeMap<KindName, &'static Service> {
        let targets = self.of.values().copied().flat_map(waiting);
        let foreign = targets.filter_map(|(_, target)| {
            let service = target.service?;
            Some((KindName::new(target.group, target.kind), service))
        });
        foreign.collect()
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &'static Kind> {
        self.of.values().copied()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Whether the holder of a reference is of one of these kinds.
    pub fn has_holder(&self, name: &ReferenceName) -> bool {
        self.all()
            .any(|kind| kind.group == name.group() && kind.name.eq_ignore_ascii_case(name.kind()))
    }

    /// The kind of that name.
    pub fn get(&self, name: &KindName) -> Option<&'static Kind> {
        self.of.get(name).copied()
    }

    /// The edges of their graph.
    pub fn declared(&self) -> Vec<Declared> {
        let edges = self.of.values().flat_map(|kind| {
            waiting(kind).map(|(reference, target)| Declared {
                holder: name_of(kind),
                target: KindName::new(target.group, target.kind),
                owned: reference.owned,
            })
        });
        edges.collect()
    }

    /// The fields that may name objects of a kind, which wait for these, each with the kind that has it.
    pub fn referrers(&self, target: &KindName) -> impl Iterator<Item = (&'static Kind, &'static Reference)> {
        self.all().flat_map(move |holder| {
            let fields = holder.references.iter().filter(|field| field.waits());
            let fields = fields.filter(|field| field.target(&target.group, &target.kind).is_some());
            fields.map(move |field| (holder, field))
        })
    }

    /// Whether a field of the first kind may name objects of the other one, and waits for them.
    pub fn may_name(&self, holder: &KindName, target: &KindName) -> bool {
        let targets = self.get(holder).into_iter().flat_map(waiting);
        let mut targets = targets.map(|(_, target)| target);
        targets.any(|other| other.group == target.group && other.kind == target.kind)
    }

    /// Whether a holder with these fields was moved from an object that has its reference: a field that may name that
    /// one names another, and none names it. What no field may name, or names nothing, somebody else has placed.
    pub fn was_moved_from(&self, holder: &KindName, edges: &[Edge], target: &Key) -> bool {
        let is_named = edges.iter().any(|edge| edge.target == *target);
        !is_named && self.instead(holder, edges, target).next().is_some()
    }

    /// Of the fields of a holder, those that could name an object.
    pub fn instead<'e>(
        &self,
        holder: &KindName,
        edges: &'e [Edge],
        target: &Key,
    ) -> impl Iterator<Item = &'e Edge> + use<'e> {
        let fields = self.get(holder).into_iter().flat_map(waiting);
        let fields = fields.filter(|(_, other)| other.group == target.kind.group && other.kind == target.kind.kind);
        let names: Vec<_> = fields.map(|(field, _)| field.name).collect();
        edges.iter().filter(move |edge| names.contains(&edge.reference))
    }

    /// Reads an object of SQL, whose text may be in another version than that of whose fields the references are. One
    /// without a form in that version is read as it is.
    pub fn read_stored(&self, platform: &Platform, kind: &Kind, object: &Text) -> Object {
        self.read(kind, &in_own_version(platform, kind, object))
    }

    /// Reads an object.
    pub fn read(&self, kind: &Kind, object: &Text) -> Object {
        let mut paths = naming_paths(kind);
        paths.extend(condition_paths());
        // A text that is an object is JSON, and none is too deep for this.
        let fields = picked(object.text(), &paths).unwrap_or_default();
        let scope = |target: &Target| match target.service {
            Some(service) if !service.has_namespaces(target.kind) => Scope::Cluster,
            Some(_) => Scope::Namespaced,
            None => {
                let own = self.get(&KindName::new(target.group, target.kind));
                own.map_or(Scope::Namespaced, |kind| kind.scope)
            }
        };
        let edges = edges(kind, &fields, scope);
        let recorded = self.names.recorded.status_in(&object.metadata.annotations);
        let names = match kind.cluster {
            true => &self.names,
            false => &self.names_of_sql_only,
        };
        Object {
            refused: says_refused(&fields["status"]) || says_refused(&recorded),
            ..Object::read(name_of(kind), &object.metadata, names, kind.immutable, edges)
        }
    }
}

/// An object of SQL in the version that its kind declares; as it is, if it has no form in that one.
pub fn in_own_version<'a>(platform: &Platform, kind: &Kind, object: &'a Text) -> Cow<'a, Text> {
    match kindex_convert::object_in(platform, kind, object, kind.version) {
        Ok(own) => Cow::Owned(own),
        Err(error) => {
            let uid = &object.metadata.uid;
            tracing::warn!(kind = kind.name, %uid, %error, "A row is read in the version in which it was written");
            Cow::Borrowed(object)
        }
    }
}

/// Where an object has what [`says_refused`] reads of its status.
fn condition_paths() -> Vec<Vec<PathSegment>> {
    let of_list = |list| {
        ["type", "status"].map(|part| {
            vec![
                PathSegment::Field("status"),
                PathSegment::Field(list),
                PathSegment::Items,
                PathSegment::Field(part),
            ]
        })
    };
    CONDITION_LISTS.into_iter().flat_map(of_list).collect()
}

/// Whether a condition says that the object cannot hold what it names, in whichever list and spelling.
fn says_refused(status: &Value) -> bool {
    let lists = CONDITION_LISTS.into_iter().filter_map(|list| status[list].as_array());
    let mut said = lists
        .flatten()
        .filter(|condition| condition["type"] == REFUSED_CONDITION);
    said.any(|condition| {
        let status = condition["status"]
            .as_str()
            .and_then(|status| status.rsplit('_').next());
        status.is_some_and(|word| word.eq_ignore_ascii_case("true"))
    })
}

/// The name of a kind.
pub fn name_of(kind: &Kind) -> KindName {
    KindName::new(kind.group, kind.name)
}

/// Where an object of a kind is.
pub fn key_of(kind: &Kind, object: &Text) -> Key {
    Key {
        kind: name_of(kind),
        namespace: object.metadata.namespace.as_str().into(),
        name: object.metadata.name.as_str().into(),
    }
}

fn waiting(kind: &'static Kind) -> impl Iterator<Item = (&'static Reference, &'static Target)> {
    let references = kind.references.iter().filter(|reference| reference.waits());
    references.flat_map(|reference| reference.targets.iter().map(move |target| (reference, target)))
}

#[cfg(test)]
mod tests {
    use kindex_model::kind::{FieldMap, MapRule, Version};
    use kindex_model::reference::OnDelete;
    use serde_json::json;

    use super::*;
    use crate::fixture::{self, GROUP, NETWORK, PLATFORM, key};
    use crate::object::DeletionState;

    /// Its first version called the network a net.
    static CLUSTER: Kind = Kind {
        version: "v2",
        versions: &[Version {
            name: "v1",
            served: true,
            stored: false,
            deprecated: None,
            map: &[FieldMap {
                here: Some(&["spec", "net"]),
                own: Some(&["spec", "network"]),
                rule: MapRule::Same,
            }],
        }],
        ..fixture::CLUSTER
    };
    static SQL_ONLY: Kind = Kind {
        cluster: false,
        ..NETWORK
    };
    static KINDS: [&Kind; 2] = [&NETWORK, &CLUSTER];

    #[test]
    fn a_condition_says_that_something_is_refused_in_any_list_and_spelling() {
        let status = |list: &str, name: &str, status: &str| json!({list: [{"type": name, "status": status}]});
        assert!(says_refused(&status("conditions", "ReferenceRefused", "True")));
        assert!(says_refused(&status(
            "statusConditions",
            "ReferenceRefused",
            "CONDITION_STATUS_TRUE"
        )));
        assert!(!says_refused(&status("conditions", "ReferenceRefused", "False")));
        assert!(!says_refused(&status("conditions", "Ready", "True")));
        assert!(!says_refused(&Value::Null));
    }

    /// As if each key had a copy of its kind's name: very many keys are made and cloned.
    #[test]
    fn the_name_of_a_kind_is_borrowed_from_the_registry_and_equals_one_that_is_not() {
        let name = name_of(&NETWORK);
        assert!(matches!(
            (&name.group, &name.kind),
            (Cow::Borrowed(_), Cow::Borrowed(_))
        ));
        assert_eq!(name, KindName::new(GROUP.to_owned(), "Network".to_owned()));
    }

    #[test]
    fn the_fields_of_a_row_are_those_of_the_own_version_whichever_it_was_written_in() {
        let kinds = Kinds::of(&Registry {
            platform: PLATFORM,
            kinds: &KINDS,
            ..Registry::EMPTY
        });
        let targets = |version: &str, field: &str| {
            let text = format!(
                r#"{{"apiVersion":"{GROUP}/{version}","kind":"Cluster","spec":{{"{field}":"blue"}},
                    "metadata":{{"name":"a","namespace":"default","uid":"u","resourceVersion":"7"}}}}"#
            );
            let stored = Text::parse_str(&text).expect("an object");
            let read = kinds.read_stored(&PLATFORM, &CLUSTER, &stored);
            assert_eq!((read.key, read.version.0), (key("Cluster", "a"), 7));
            read.edges.into_iter().map(|edge| edge.target).collect::<Vec<_>>()
        };
        assert_eq!(targets("v2", "network"), [key("Network", "blue")]);
        assert_eq!(targets("v1", "net"), [key("Network", "blue")]);
        assert!(targets("v9", "net").is_empty(), "nobody knows such a version");
    }

    /// As if such a holder protected nothing, and could hold whatever it names.
    #[test]
    fn what_an_object_names_is_read_however_deeply_the_rest_of_it_is_nested() {
        let kinds = Kinds::of(&Registry {
            platform: PLATFORM,
            kinds: &KINDS,
            ..Registry::EMPTY
        });
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for (version, field) in [("v2", "network"), ("v1", "net")] {
            let text = format!(
                r#"{{"apiVersion":"{GROUP}/{version}","kind":"Cluster","spec":{{"deep":{deep},"{field}":"blue"}},
                    "status":{{"deep":{deep},"conditions":[{deep},
                        {{"type":"ReferenceRefused","deep":{deep},"status":"True"}}]}},
                    "metadata":{{"name":"a","namespace":"default","uid":"u","resourceVersion":"7"}}}}"#
            );
            let stored = Text::parse_str(&text).expect("an object");
            let read = kinds.read_stored(&PLATFORM, &CLUSTER, &stored);
            assert_eq!(read.edges[0].target, key("Network", "blue"), "{version}");
            assert!(read.refused, "{version}");
        }
    }

    /// As if any reference that no field backs were left by a move, also one that somebody has placed by hand.
    #[test]
    fn a_holder_was_moved_from_what_a_field_could_name_that_names_another_object() {
        let kinds = Kinds::of(&Registry {
            platform: PLATFORM,
            kinds: &KINDS,
            ..Registry::EMPTY
        });
        let edge = |reference: &'static str, name: &str| Edge {
            reference,
            target: key("Network", name),
            owned: false,
            on_delete: OnDelete::Block,
        };
        let was_moved = |edges: &[Edge], kind: &str| {
            let holder = key("Cluster", "c").kind;
            kinds.was_moved_from(&holder, edges, &key(kind, "a"))
        };
        assert!(was_moved(&[edge("network", "b")], "Network"));
        assert!(!was_moved(&[edge("network", "a")], "Network"), "it names that");
        assert!(
            !was_moved(&[edge("network", "b"), edge("second", "a")], "Network"),
            "another field names that"
        );
        assert!(!was_moved(&[], "Network"), "its field names nothing");
        assert!(!was_moved(&[edge("network", "b")], "Cluster"), "no field may name that");
        assert!(
            !was_moved(&[edge("second", "b")], "Network"),
            "the field is another one"
        );
    }

    /// As if what is only in SQL left for the archive: its deletion would have no phases, and release nothing.
    #[test]
    fn no_annotation_makes_an_eviction_of_the_deletion_of_an_sql_only_object() {
        const FINAL: &str = "x/Immutable";
        let platform = Platform {
            immutable: FINAL,
            ..PLATFORM
        };
        let kinds = Kinds::of(&Registry {
            platform,
            kinds: &KINDS,
            ..Registry::EMPTY
        });
        let text = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7",
            "annotations": {FINAL: "true"}, "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        let deleted = Text::parse_str(&text.to_string()).expect("an object");
        let read = |kind: &Kind| {
            let read = kinds.read(kind, &deleted);
            (read.state, read.immutable)
        };
        assert_eq!(read(&NETWORK), (DeletionState::Evicting, true));
        assert_eq!(read(&SQL_ONLY), (DeletionState::Deleting, false));
    }
}
