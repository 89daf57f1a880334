//! What the fields of an object say, against the references that are on others.

use kindex_model::reference_name::ReferenceName;

use super::Graph;
use crate::object::{DeletionState, Edge, Key, Object};

impl Graph {
    /// Whether a field of an object may name objects of the kind of another one.
    pub(super) fn may_name(&self, object: &Object, target: &Object) -> bool {
        let mut declared = self.declared.iter();
        declared.any(|edge| edge.holder == object.key.kind && edge.target == target.key.kind)
    }

    /// Whether an object that is not being deleted has the reference of this one, whose fields may name it, but do
    /// not. That it is being deleted is not believed of a service that is doubted.
    pub(super) fn has_former(&self, object: &Object) -> bool {
        let name = object.reference_name();
        let targets = name.as_ref().and_then(|name| self.targets.get(name));
        let others = targets.into_iter().flatten().filter(|key| **key != object.key);
        let former = others.filter(|key| object.edges.iter().all(|edge| edge.target != **key));
        let mut former = former.filter_map(|key| self.objects.get(key));
        former.any(|former| {
            let goes = matches!(former.state, DeletionState::Requested | DeletionState::Deleting);
            (!goes || self.doubted.contains(&former.key.kind)) && self.may_name(object, former)
        })
    }

    /// Of the objects that these fields of a holder name, those leaving the cluster that do not have its reference.
    pub(super) fn unheld<'g>(&'g self, edges: &'g [Edge], name: &ReferenceName) -> Vec<&'g Key> {
        let refuses = |target: &Object| target.is_leaving() && !target.references.contains(name);
        let targets = edges.iter().map(|edge| &edge.target);
        targets
            .filter(|target| self.objects.get(*target).is_some_and(refuses))
            .collect()
    }
}
