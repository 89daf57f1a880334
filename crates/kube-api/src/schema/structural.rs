//! A compiled structural schema: what a JSON value must look like and which of its fields are known. Knows neither how
//! a schema is written (parse) nor what is done with it (validate, prune, default, merge).

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use super::cel::Expression;
use super::formats::Format;
use super::problem::FieldReason;

/// The JSON type that a schema asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A JSON object.
    Object,
    /// A JSON array.
    Array,
    /// A JSON string.
    String,
    /// A number without fraction.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
}

impl Type {
    /// All types with their names, in alphabetical order.
    pub(super) const ALL: [(&'static str, Self); 6] = [
        ("array", Self::Array),
        ("boolean", Self::Boolean),
        ("integer", Self::Integer),
        ("number", Self::Number),
        ("object", Self::Object),
        ("string", Self::String),
    ];

    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, kind)| *kind)
    }

    pub(super) fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(_, kind)| *kind == self)
            .map_or("", |(name, _)| name)
    }
}

/// How the entries of a list are told apart when two writers merge (`x-kubernetes-list-type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListType {
    /// The list is one value.
    #[default]
    Atomic,
    /// Each entry is its own key; scalars.
    Set,
    /// Entries are objects with key fields.
    Map,
}

/// What is said of the fields that a schema does not name (`additionalProperties`).
#[derive(Debug, Clone, Default)]
pub enum Additional {
    /// Nothing: they are unknown.
    #[default]
    Absent,
    /// `false`.
    Refused,
    /// `true`.
    Any,
    /// They look like this.
    Schema(Box<Structural>),
}

/// A compiled schema of one value. Build one with [`Structural::parse`]; patterns are compiled once, there.
#[derive(Debug, Clone, Default)]
pub struct Structural {
    /// `type`; `None` where any type is let in.
    pub kind: Option<Type>,
    /// Whether null is let in beside the type.
    pub nullable: bool,
    /// What stands where nothing is sent.
    pub default: Option<Value>,
    /// The fields that are named.
    pub properties: BTreeMap<String, Structural>,
    /// What is said of all other fields.
    pub additional: Additional,
    /// What each entry of a list looks like.
    pub items: Option<Box<Structural>>,
    /// Whether unknown fields are kept (`x-kubernetes-preserve-unknown-fields`).
    pub preserve_unknown: bool,
    /// Whether the value is an object with metadata of its own (`x-kubernetes-embedded-resource`).
    pub embedded_resource: bool,
    /// Whether integers and texts are let in (`x-kubernetes-int-or-string`).
    pub int_or_string: bool,
    /// `x-kubernetes-list-type`
    pub list_type: ListType,
    /// The fields that tell the entries of a map-like list apart (`x-kubernetes-list-map-keys`).
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type: atomic`.
    pub atomic_map: bool,
    pub(super) rules: Rules,
    /// Its rules in CEL that are evaluated.
    pub(super) validations: Vec<Validation>,
    /// Whether it, or anything inside it, has such rules.
    pub(super) is_validated: bool,
    /// Whether it, or anything inside it, is a list whose entries are told apart.
    pub(super) has_keyed_lists: bool,
    /// Whether it, or anything inside it, is an object with metadata of its own.
    pub(super) has_embedded: bool,
}

/// A validation rule in CEL, with what is told when it is broken.
#[derive(Debug, Clone)]
pub(super) struct Validation {
    pub(super) rule: String,
    pub(super) message: String,
    pub(super) reason: FieldReason,
    pub(super) expression: Expression,
    /// Whether it speaks of the value before, so that it is asked on updates alone.
    pub(super) is_transition: bool,
}

/// What is asked of a value beyond its structure.
#[derive(Debug, Clone, Default)]
pub(super) struct Rules {
    pub(super) required: Vec<String>,
    pub(super) choices: Option<Vec<Value>>,
    pub(super) format: Option<(String, Format)>,
    /// A format of numbers.
    pub(super) number_format: Option<String>,
    pub(super) maximum: Option<Bound>,
    pub(super) minimum: Option<Bound>,
    pub(super) multiple_of: Option<f64>,
    pub(super) pattern: Option<Pattern>,
    pub(super) max_length: Option<u64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) min_items: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) min_properties: Option<u64>,
    pub(super) all_of: Vec<Structural>,
    pub(super) any_of: Vec<Structural>,
    pub(super) one_of: Vec<Structural>,
    pub(super) not: Option<Box<Structural>>,
}

/// A limit of a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    pub(super) value: f64,
    pub(super) exclusive: bool,
}

/// A regular expression with the text it was written as.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub(super) text: String,
    pub(super) regex: Regex,
}

impl Structural {
    /// The schema of the field `name`: the property, else what is said of unnamed fields.
    pub fn field(&self, name: &str) -> Option<&Self> {
        match (self.properties.get(name), &self.additional) {
            (Some(property), _) => Some(property),
            (None, Additional::Schema(schema)) => Some(schema),
            (None, Additional::Absent | Additional::Refused | Additional::Any) => None,
        }
    }
}
