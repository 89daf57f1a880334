//! One simulated object in one version: its fields and its text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Deref;
use std::sync::Arc;

use jiff::Timestamp;
use kindex_model::object::Object;

use super::thing::{DELETING, FINALIZER, IMMUTABLE, NAMESPACE, OWNED, POISON_LABEL, POISON_VALUE, REFERENCES};

/// The fields of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimObject {
    /// Its uid.
    pub uid: String,
    /// Its name.
    pub name: String,
    /// The version of this text.
    pub version: u64,
    /// `spec.value`.
    pub value: u64,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its finalizers.
    pub finalizers: Vec<String>,
    /// Its deletionTimestamp.
    pub deleted_at: Option<Timestamp>,
}

impl SimObject {
    /// Whether an annotation is `"true"`.
    pub fn is_annotated(&self, annotation: &str) -> bool {
        self.annotations.get(annotation).is_some_and(|value| value == "true")
    }

    /// Whether it has our finalizer.
    pub fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == FINALIZER)
    }

    /// The references that it has.
    pub fn references(&self) -> impl Iterator<Item = &str> {
        let finalizers = self.finalizers.iter().map(String::as_str);
        finalizers.filter(|finalizer| REFERENCES.contains(finalizer))
    }

    /// Whether it owns another object in the cluster.
    pub fn owns(&self) -> bool {
        self.references().any(|name| name == OWNED)
    }

    /// Whether it has references.
    pub fn is_in_use(&self) -> bool {
        self.references().next().is_some()
    }

    /// Whether it is deleted, or annotated for deletion.
    pub fn is_leaving(&self) -> bool {
        self.is_annotated(DELETING) || self.deleted_at.is_some()
    }

    /// Whether the database rejects it.
    pub fn is_poison(&self) -> bool {
        self.value == POISON_VALUE || self.labels.contains_key(POISON_LABEL)
    }

    /// Whether an ingester has to evict or delete it. `kind_immutable`: the kind is declared immutable.
    pub fn is_final(&self, kind_immutable: bool) -> bool {
        kind_immutable || self.is_annotated(IMMUTABLE) || self.is_annotated(DELETING)
    }

    /// What users wrote: SQL must hold all of it before the object leaves.
    pub fn content(&self) -> (u64, &BTreeMap<String, String>, &BTreeMap<String, String>) {
        (self.value, &self.labels, &self.annotations)
    }

    /// The text as an API server sends it.
    fn text(&self) -> String {
        let mut text = String::with_capacity(512);
        let mut add = |part: std::fmt::Arguments<'_>| text.write_fmt(part).expect("a string takes any text");
        add(format_args!(
            r#"{{"apiVersion":"sim.kindex/v1","kind":"Thing","metadata":{{"annotations":"#
        ));
        map(&mut add, &self.annotations);
        add(format_args!(r#","creationTimestamp":"2026-01-01T00:00:00Z""#));
        if let Some(time) = self.deleted_at {
            add(format_args!(r#","deletionTimestamp":"{time}""#));
        }
        if !self.finalizers.is_empty() {
            add(format_args!(r#","finalizers":["{}"]"#, self.finalizers.join("\",\"")));
        }
        add(format_args!(r#","labels":"#));
        map(&mut add, &self.labels);
        let (name, uid, version, value) = (&self.name, &self.uid, self.version, self.value);
        add(format_args!(
            r#","name":"{name}","namespace":"{NAMESPACE}","resourceVersion":"{version}","uid":"{uid}"}},"spec":{{"value":{value}}}}}"#
        ));
        text
    }
}

/// No simulated text holds anything that JSON would escape.
fn map(add: &mut impl FnMut(std::fmt::Arguments<'_>), map: &BTreeMap<String, String>) {
    add(format_args!("{{"));
    for (index, (key, value)) in map.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        add(format_args!(r#"{comma}"{key}":"{value}""#));
    }
    add(format_args!("}}"));
}

/// An object in one version, with its text as the runtime reads it.
#[derive(Debug)]
pub struct Revision {
    /// Its fields.
    pub state: SimObject,
    /// The same as text.
    pub object: Object,
}

impl Revision {
    pub(crate) fn new(state: SimObject) -> Arc<Self> {
        let object = Object::parse_str(&state.text()).expect("simulated objects are objects");
        Arc::new(Self { state, object })
    }
}

impl Deref for Revision {
    type Target = SimObject;

    fn deref(&self) -> &SimObject {
        &self.state
    }
}
