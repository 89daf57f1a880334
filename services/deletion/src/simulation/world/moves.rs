//! What the API server does to a reference or to a field of an archived holder when that is moved, each by one request,
//! and what archived holders must hold afterwards.

use std::collections::BTreeSet;

use kindex_model::reference_name::ReferenceName;

use super::{Refusal, Stored, World};
use crate::object::Key;

/// An object as the API server finds it under a name, in the cluster or archived.
#[derive(Clone, Debug)]
pub(in super::super) struct Found {
    pub(in super::super) object: Stored,
    /// Its references are finalizers, and a release may depend on its version.
    in_cluster: bool,
    pub(in super::super) is_deleting: bool,
}

impl Found {
    pub(in super::super) fn is_archived(&self) -> bool {
        !self.in_cluster && !self.is_deleting
    }
}

impl World {
    /// The object of a name. What leaves the cluster for the archive is archived already.
    pub(in super::super) fn find_object(&self, key: &Key) -> Option<Found> {
        if let Some(live) = self.servers.objects.get(key) {
            let is_leaving = live.terminating && !live.asked;
            return Some(Found {
                object: live.clone(),
                in_cluster: !is_leaving,
                is_deleting: !is_leaving && (live.terminating || live.requested),
            });
        }
        let rows = self.archives.rows.values().filter(|row| !row.deleted);
        let of_name = rows.filter(|row| row.object.key == *key);
        let last = of_name.max_by_key(|row| row.object.born)?;
        Some(Found {
            object: last.object.clone(),
            in_cluster: false,
            is_deleting: last.tombstone,
        })
    }

    /// The version on which a release may depend: that of an object in the cluster.
    pub(in super::super) fn version_of(&self, target: &Key) -> Result<Option<u64>, Refusal> {
        self.servers.answers(target)?;
        let found = self.find_object(target).filter(|found| found.in_cluster);
        Ok(found.map(|found| found.object.version))
    }

    /// Places a reference. What is in the cluster is written in any case.
    pub(in super::super) fn renew_reference(&mut self, target: &Key, reference: &str) -> Result<(), Refusal> {
        self.servers.answers(target)?;
        let found = self.find_object(target).ok_or(Refusal::Gone)?;
        let row = row_on(&found.object, reference);
        let has_reference = found.in_cluster && found.object.has_finalizer(reference);
        if found.is_deleting && !has_reference && !self.archives.references.contains(&row) {
            return Err(Refusal::Invalid);
        }
        if !found.in_cluster {
            self.servers.version += 1;
            self.archives.references.insert(row);
            return Ok(());
        }
        let written = self.write(target, Some(&found.object.uid), None, |object| {
            if !found.is_deleting && !object.has_finalizer(reference) {
                object.finalizers.push(reference.to_owned());
            }
        });
        written.map(drop)
    }

    /// Releases a reference; with a version, only if the object is in the cluster and has that still.
    pub(in super::super) fn release_at(
        &mut self,
        target: &Key,
        reference: &str,
        at: Option<u64>,
    ) -> Result<(), Refusal> {
        self.servers.answers(target)?;
        let Some(found) = self.find_object(target) else {
            return Ok(());
        };
        let row = row_on(&found.object, reference);
        let has_reference = found.in_cluster && found.object.has_finalizer(reference);
        if !has_reference && !self.archives.references.contains(&row) {
            return Ok(());
        }
        if at.is_some_and(|at| !found.in_cluster || found.object.version != at) {
            return Err(Refusal::Conflict);
        }
        if found.in_cluster {
            self.write(target, Some(&found.object.uid), None, |object| {
                object.finalizers.retain(|finalizer| *finalizer != reference);
            })?;
        }
        self.servers.version += 1;
        self.archives.references.remove(&row);
        Ok(())
    }

    /// Lets a field of an archived object name another one, if it is as it was read. That it is a tombstone by now does
    /// not stand against it.
    pub(in super::super) fn write_field(
        &mut self,
        uid: &str,
        version: u64,
        field: &'static str,
        name: &str,
    ) -> Result<(), Refusal> {
        let next = self.servers.version + 1;
        let row = self.archives.rows.get_mut(uid).filter(|row| !row.deleted);
        let row = row.ok_or(Refusal::Gone)?;
        if row.object.version != version {
            return Err(Refusal::Conflict);
        }
        row.object.named.insert(field, name.to_owned());
        row.object.version = next;
        let changed = row.object.clone();
        self.servers.version = next;
        self.judge.history.note_fields(&self.services, &changed);
        Ok(())
    }

    /// Whether an archived object names another one; nothing where it is not archived.
    pub(in super::super) fn is_named_by_archived(&self, uid: &str, target: &Key) -> Option<bool> {
        let row = self.archives.rows.get(uid).filter(|row| !row.deleted)?;
        Some(Self::names(&row.object, target))
    }

    /// Whether the object of a name has a reference.
    pub(in super::super) fn has_reference(&self, target: &Key, reference: &str) -> bool {
        self.find_object(target).is_some_and(|found| {
            let has_reference = found.in_cluster && found.object.has_finalizer(reference);
            has_reference || self.archives.references.contains(&row_on(&found.object, reference))
        })
    }

    /// Whether one that was archived holds what it names, but for what is being deleted, and nothing else. Of one that
    /// is deleted nothing may be left.
    pub(in super::super) fn holds_what_it_names(&self, uid: &str) -> Result<(), String> {
        let row = &self.archives.rows[uid];
        let holder = &row.object;
        let reference = holder.reference();
        let live = self.servers.objects.keys();
        let archived = self.archives.rows.values().map(|row| &row.object.key);
        let keys: BTreeSet<&Key> = live.chain(archived).collect();
        for found in keys.into_iter().filter_map(|key| self.find_object(key)) {
            let target = &found.object;
            let has_reference = self.has_reference(&target.key, &reference);
            let is_named = !row.deleted && target.uid != holder.uid && Self::names(holder, &target.key);
            let pair = (holder.uid.clone(), target.uid.clone());
            let may_lack = row.tombstone || found.is_deleting || self.archives.may_lack.contains(&pair);
            if is_named && !has_reference && !may_lack {
                return Err(format!(
                    "{} has no reference on {}, which it names",
                    holder.key, target.key
                ));
            }
            if has_reference && !is_named && !self.judge.is_excused(&holder.uid, &target.uid) {
                return Err(format!("{} holds {} and does not name it", holder.key, target.key));
            }
        }
        Ok(())
    }
}

/// Where a reference is on what is archived.
fn row_on(target: &Stored, reference: &str) -> (String, ReferenceName) {
    let name = ReferenceName::of_finalizer(reference).expect("a reference");
    (target.uid.clone(), name)
}
