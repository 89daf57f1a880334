//! Objects that are being deleted and that finalizers of others hold in the cluster. They are not differences, because
//! their rows follow them; the report names the finalizers that hold them.

use std::fmt;

use kindex_model::kind::Platform;
use kindex_model::object::Object;
use serde::Serialize;

/// Most of them that are named.
const NAMED_MAX: usize = 100;

/// One such object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldObject {
    /// Its namespace; empty for cluster-wide kinds.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Finalizers that are not ours.
    pub finalizers: Vec<String>,
}

impl HeldObject {
    /// The object, where it is one.
    pub fn of(object: &Object, platform: &Platform) -> Option<Self> {
        let metadata = &object.metadata;
        metadata.deletion_timestamp?;
        let finalizers = Self::foreign(&metadata.finalizers, platform);
        (!finalizers.is_empty()).then(|| Self {
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.to_string(),
            finalizers,
        })
    }

    /// Those that are not ours.
    pub fn foreign(finalizers: &[String], platform: &Platform) -> Vec<String> {
        let foreign = finalizers.iter().filter(|finalizer| *finalizer != platform.finalizer);
        foreign.cloned().collect()
    }
}

impl fmt::Display for HeldObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        write!(f, "{} is held by {}", self.name, self.finalizers.join(", "))
    }
}

/// How many there are, and the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HeldObjects {
    /// All.
    pub count: u64,
    /// As many as are named.
    pub named: Vec<HeldObject>,
}

impl HeldObjects {
    /// Adds one.
    pub fn add(&mut self, held: HeldObject) {
        self.count += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(held);
        }
    }

    /// A line for each that is named, and one for the others.
    pub fn lines(&self, kind: &str) -> Vec<String> {
        let named = self.named.iter().map(|held| format!("{kind} {held}"));
        let more = self.count - self.named.len() as u64;
        let more = (more > 0).then(|| format!("{kind}: {more} more objects are held by others"));
        named.chain(more).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_named_and_the_others_counted() {
        let mut held = HeldObjects::default();
        for number in 0..102 {
            held.add(HeldObject {
                namespace: "ns".to_owned(),
                name: format!("m{number}"),
                uid: number.to_string(),
                finalizers: vec!["example.com/a".to_owned(), "example.com/b".to_owned()],
            });
        }
        let lines = held.lines("Model");
        assert_eq!(lines.len(), 101);
        assert_eq!(lines[0], "Model ns/m0 is held by example.com/a, example.com/b");
        assert_eq!(lines[100], "Model: 2 more objects are held by others");
    }
}
