//! Objects from which others were moved, and which hold these still.

use super::archive::Row;
use super::{Stored, World, fields};
use crate::object::{Key, KindName};

impl World {
    /// What is archived from now on, or changed in the archive, names others than those that have its reference. Nobody
    /// follows the fields of an archived holder: a former target of another service keeps the reference.
    pub(super) fn excuse_unnamed(&mut self, holder: &Stored) {
        let (reference, edges) = (holder.reference(), self.services.edges(holder));
        let bearing = self.servers.objects.values().filter(|other| other.bears(&reference));
        let unnamed = bearing.filter(|other| edges.iter().all(|edge| edge.target != other.key));
        let unnamed: Vec<_> = unnamed.map(|other| (holder.uid.clone(), other.uid.clone())).collect();
        self.judge.excused.extend(unnamed);
    }

    /// Whether an object that is not being deleted, and that no field names, has the reference of one that was moved
    /// from there, in the cluster or archived.
    pub(in super::super) fn has_former(&self, object: &Stored) -> bool {
        let (reference, edges) = (object.reference(), self.services.edges(object));
        let may_name = |kind: &KindName| fields(&object.key.kind.kind).any(|field| field.target == kind.kind);
        let mut others = self.servers.objects.values().filter(|other| other.key != object.key);
        let in_cluster = others.any(|former| {
            let is_named = edges.iter().any(|edge| edge.target == former.key);
            !is_named && !former.asked && may_name(&former.key.kind) && former.bears(&reference)
        });
        in_cluster || self.is_held_in_archive(object, |_| true)
    }

    /// Whether an archived object of its service that is not being deleted, and that no field names, has the
    /// reference of one that was moved from there.
    pub(in super::super) fn has_archived_former(&self, object: &Stored) -> bool {
        self.is_held_in_archive(object, |former| former.kind.group == object.key.kind.group)
    }

    fn is_held_in_archive(&self, object: &Stored, which: impl Fn(&Key) -> bool) -> bool {
        let (reference, edges) = (object.reference(), self.services.edges(object));
        let may_name = |target: &Key| fields(&object.key.kind.kind).any(|field| field.target == target.kind.kind);
        let rows = self.archives.rows.values().filter(|row| !row.deleted && !row.tombstone);
        let mut rows = rows.filter(|row| which(&row.object.key));
        rows.any(|Row { object: former, .. }| {
            let is_named = edges.iter().any(|edge| edge.target == former.key);
            !is_named && may_name(&former.key) && self.archives.has_row(former, &reference)
        })
    }
}
