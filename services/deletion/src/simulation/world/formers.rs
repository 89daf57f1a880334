//! Objects from which others were moved, and which hold these still.

use kindex_model::object::ResourceVersion;

use super::archive::Row;
use super::{Stored, World, fields};
use crate::archive::Holder;
use crate::object::{Edge, Key, KindName};

impl World {
    /// What is archived from now on, or changed in the archive, names others than those that have its reference. Nobody
    /// follows the fields of an archived holder: a former target of another service keeps the reference.
    pub(super) fn excuse_unnamed(&mut self, holder: &Stored) {
        let (reference, edges) = (holder.reference(), self.services.edges(holder));
        let bearing = self
            .servers
            .objects
            .values()
            .filter(|other| other.has_finalizer(&reference));
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
            !is_named && !former.asked && may_name(&former.key.kind) && former.has_finalizer(&reference)
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

    /// The archived objects of a service that have references on an object of another one and do not name it.
    pub(in super::super) fn archived_without_field(&self, former: &Stored, group: &str) -> Vec<Holder> {
        let own = former.references().filter(|name| name.group() == group);
        let holders = own.filter_map(|name| {
            let row = self.archives.rows.get(name.uid()).filter(|row| !row.deleted)?;
            let object = Some(&row.object).filter(|object| !Self::names(object, &former.key))?;
            Some(Holder {
                key: Some(object.key.clone()),
                uid: object.uid.clone(),
                reference: Some(name),
                version: Some(ResourceVersion(object.version)),
                edges: self.services.edges(object),
            })
        });
        holders.collect()
    }

    /// An archived object that was moved is written, unless a planted bug leaves that out, if it is as it was read and
    /// holds what it names. Whether its reference may be released after that.
    pub(in super::super) fn detach_archived(&mut self, holder: &Holder, former: &Key, writes: bool) -> bool {
        let row = self.archives.rows.get(&holder.uid).filter(|row| !row.deleted);
        let as_read = row.filter(|row| Some(ResourceVersion(row.object.version)) == holder.version);
        let may_go = as_read.is_some_and(|row| self.may_release(&row.object, former));
        if may_go && writes {
            self.servers.version += 1;
            let row = self.archives.rows.get_mut(&holder.uid).expect("it is there");
            row.object.version = self.servers.version;
        }
        may_go
    }

    /// Whether the reference of an archived object on another one goes once that is deleted: in its own service, or at
    /// another one that shows it.
    pub(in super::super) fn is_left(&self, holder: &Stored, former: &Stored) -> bool {
        let group = &holder.key.kind.group;
        let is_shown = || self.is_elsewhere(&former.key, group) && self.is_shown(former);
        let is_swept = former.key.kind.group == *group || is_shown();
        is_swept && self.archives.is_archived(&holder.uid) && self.may_release(holder, &former.key)
    }

    /// The same of one that was read as a holder, if it has a reference.
    pub(super) fn is_left_by(&self, holder: &Holder, former: &Stored) -> bool {
        let row = self.archives.rows.get(&holder.uid);
        holder.reference.is_some() && row.is_some_and(|row| self.is_left(&row.object, former))
    }

    /// Whether what is archived with a uid was moved from an object.
    pub(super) fn was_moved(&self, holder: &str, former: &Key) -> bool {
        let row = self.archives.rows.get(holder).filter(|row| !row.deleted);
        row.is_some_and(|row| was_moved_from(&self.services.edges(&row.object), former))
    }

    /// Whether a holder was moved from an object, and all that it names instead has its reference.
    fn may_release(&self, holder: &Stored, former: &Key) -> bool {
        was_moved_from(&self.services.edges(holder), former) && self.holds_elsewhere(holder)
    }

    /// Whether all objects of other services that one names have its reference, as these services say.
    fn holds_elsewhere(&self, holder: &Stored) -> bool {
        let (reference, group) = (holder.reference(), &holder.key.kind.group);
        let mut targets = self.named_elsewhere(holder).into_iter();
        targets.all(|target| {
            let found = self.look(&target, group).ok().flatten();
            found.is_some_and(|found| found.has_finalizer(&reference))
        })
    }
}

/// Whether a field that may name an object names something else, and none names that.
pub(in super::super) fn was_moved_from(edges: &[Edge], former: &Key) -> bool {
    let is_named = edges.iter().any(|edge| edge.target == *former);
    !is_named && edges.iter().any(|edge| edge.target.kind == former.kind)
}
