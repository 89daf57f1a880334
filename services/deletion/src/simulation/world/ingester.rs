//! The ingester, and the controllers of others: what they do with one object at a time.

use kindex_model::reference_name::ReferenceName;

use super::{FOREIGN, INGESTER, Refusal, Stored, World};
use crate::object::Key;

impl World {
    /// One object further: what is immutable is evicted, what is requested is deleted, and finalizers are removed, the
    /// ingester's last. What is only in SQL has no ingester.
    pub(in super::super) fn others(&mut self, key: &Key, clean: bool) {
        let Some(object) = self.servers.objects.get(key) else {
            return;
        };
        let only = object.finalizers.len() == 1 && object.has_finalizer(INGESTER);
        let is_requested = object.requested && !self.services.is_sql_only(&key.kind);
        let result = match object.terminating {
            false if is_requested || (object.immutable && !self.owns(object)) => {
                self.write(key, None, None, |object| object.terminating = true)
            }
            true if only => self.write(key, None, None, |object| object.finalizers.clear()),
            true if clean && object.has_finalizer(FOREIGN) => self.write(key, None, None, |object| {
                object.finalizers.retain(|finalizer| finalizer != FOREIGN);
            }),
            true if self.is_archived_in_use(object) => self.take_references(key),
            false | true => return,
        };
        // Without the API server, another time.
        drop(result);
    }

    /// Whether a reference on an object is of something in the cluster that it owns.
    fn owns(&self, object: &Stored) -> bool {
        let mut owned = object
            .references()
            .filter(|name| matches!(name.kind(), "tree" | "server"));
        self.services.takes_references && owned.any(|name| self.servers.of_uid(name.uid()).is_some())
    }

    /// Whether nothing keeps what leaves for the archive but those who refer to it. Where nothing archived is held from
    /// other services, these release their references before, and no row is played of them.
    fn is_archived_in_use(&self, object: &Stored) -> bool {
        let leaves =
            !object.asked && object.has_finalizer(INGESTER) && !object.has_finalizer(FOREIGN) && !self.owns(object);
        let is_own = |name: ReferenceName| name.group() == object.key.kind.group;
        self.services.takes_references && leaves && (self.archives.across || object.references().all(is_own))
    }

    /// The references become rows in the transaction of the object's own, and are taken off with the finalizer.
    fn take_references(&mut self, key: &Key) -> Result<Stored, Refusal> {
        let object = &self.servers.objects[key];
        let rows: Vec<_> = object.references().map(|name| (object.uid.clone(), name)).collect();
        let taken = self.write(key, None, None, |object| {
            object
                .finalizers
                .retain(|one| one != INGESTER && ReferenceName::of_finalizer(one).is_none());
        })?;
        self.archives.references.extend(rows);
        Ok(taken)
    }
}
