//! How the values of an object merge: which lists and maps are one value, which are told apart by key. Read from
//! the schema, from the fixed shape of metadata, or from the value itself where nothing is declared. Knows nothing of
//! sets and managers.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::element::Element;
use crate::schema::{Additional, ListType, Structural, Type};

/// What is declared of a value.
#[derive(Clone, Copy)]
pub(super) enum Shape<'a> {
    /// A whole object, whose metadata has a shape of its own.
    Object(&'a Structural),
    /// By a schema.
    Declared(&'a Structural),
    /// Nothing: maps merge, lists are one value.
    Deduced,
}

/// How one value merges.
pub(super) enum Merging<'a> {
    /// As a whole: a scalar, an atomic list or map.
    Leaf,
    /// Field by field.
    Map(MapShape<'a>),
    /// Entry by entry.
    List(ListShape<'a>),
}

/// The fields of a map that merges.
#[derive(Clone, Copy)]
pub(super) struct MapShape<'a>(Shape<'a>);

/// The entries of a list that merges.
#[derive(Clone, Copy)]
pub(super) struct ListShape<'a>(&'a Structural);

static OBJECT_META: LazyLock<Structural> = LazyLock::new(|| {
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let shape = json!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "annotations": texts,
            "labels": texts,
            "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "ownerReferences": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
                "items": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "required": ["uid"],
                    "properties": {"uid": {"type": "string"}},
                },
            },
            "creationTimestamp": {"type": "string"},
            "deletionGracePeriodSeconds": {"type": "integer"},
            "deletionTimestamp": {"type": "string"},
            "generateName": {"type": "string"},
            "generation": {"type": "integer"},
            "name": {"type": "string"},
            "namespace": {"type": "string"},
            "resourceVersion": {"type": "string"},
            "selfLink": {"type": "string"},
            "uid": {"type": "string"},
        },
    });
    Structural::parse(&shape).expect("the shape of metadata is a structural schema")
});

impl<'a> Shape<'a> {
    /// The shape of a whole object.
    pub(super) fn of_object(schema: Option<&'a Structural>) -> Self {
        schema.map_or(Self::Deduced, Self::Object)
    }

    /// How `value` merges. A value of another JSON type than the declared one is taken for what it is.
    pub(super) fn merging(self, value: &Value) -> Merging<'a> {
        let schema = match self {
            Self::Deduced if value.is_object() => return Merging::Map(MapShape(self)),
            Self::Deduced => return Merging::Leaf,
            Self::Object(schema) | Self::Declared(schema) => schema,
        };
        let is_map = value.is_object() || (value.is_null() && matches!(schema.kind, None | Some(Type::Object)));
        let is_list = value.is_array() || (value.is_null() && schema.kind == Some(Type::Array));
        if is_map && !schema.atomic_map {
            Merging::Map(MapShape(self))
        } else if is_list && schema.list_type != ListType::Atomic {
            Merging::List(ListShape(schema))
        } else {
            Merging::Leaf
        }
    }

    /// The shape of a field, and whether it is declared by name.
    fn field(self, name: &str) -> (Self, bool) {
        let schema = match (self, name) {
            (Self::Deduced, _) => return (Self::Deduced, false),
            (Self::Object(_), "metadata") => return (Self::Declared(&OBJECT_META), true),
            (Self::Object(_), "apiVersion" | "kind") => return (Self::Deduced, true),
            (Self::Object(schema) | Self::Declared(schema), _) => schema,
        };
        match (schema.properties.get(name), &schema.additional) {
            (Some(property), _) => (Self::Declared(property), true),
            (None, Additional::Schema(additional)) => (Self::Declared(additional), false),
            (None, Additional::Absent | Additional::Refused | Additional::Any) => (Self::Deduced, false),
        }
    }

    /// The shape of the value at `element`.
    pub(super) fn at(self, element: &Element) -> Self {
        match (self, element) {
            (_, Element::Field(name)) => self.field(name).0,
            (Self::Declared(schema), Element::Key(_)) => ListShape(schema).item(),
            (Self::Object(_) | Self::Declared(_) | Self::Deduced, _) => Self::Deduced,
        }
    }

    /// Whether the schema declares the field by name, as opposed to a key of a map.
    pub(super) fn declares(self, name: &str) -> bool {
        self.field(name).1
    }
}

impl<'a> MapShape<'a> {
    pub(super) fn field(self, name: &str) -> Shape<'a> {
        self.0.field(name).0
    }

    pub(super) fn declares(self, name: &str) -> bool {
        self.0.declares(name)
    }
}

impl<'a> ListShape<'a> {
    pub(super) fn item(self) -> Shape<'a> {
        self.0.items.as_deref().map_or(Shape::Deduced, Shape::Declared)
    }

    /// What tells the entry `item`, at `index`, from the others. An entry without what its key needs is told by its
    /// position.
    pub(super) fn element(self, item: &Value, index: usize) -> Element {
        let by_index = Element::Index(index as u64);
        match (self.0.list_type, item) {
            (ListType::Set, Value::Bool(_) | Value::Number(_) | Value::String(_)) => Element::value(item),
            (ListType::Map, Value::Object(_)) => {
                let keys: Vec<_> = self
                    .0
                    .list_map_keys
                    .iter()
                    .filter_map(|name| self.key(item, name))
                    .collect();
                if keys.is_empty() { by_index } else { Element::key(keys) }
            }
            _ => by_index,
        }
    }

    /// A key field of an entry, else its default.
    fn key<'v>(&'v self, item: &'v Value, name: &'v str) -> Option<(&'v str, &'v Value)> {
        let default = || self.0.items.as_ref()?.properties.get(name)?.default.as_ref();
        Some((name, item.get(name).or_else(default)?))
    }
}
