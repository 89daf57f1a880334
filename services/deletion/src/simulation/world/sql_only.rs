//! Objects of SQL-only kinds. Those of the graph are among all others: without an ingester, they are never archived,
//! and go with their last finalizer. Where no field has an order of deletion, the graph does not know the kind, and
//! nothing is deleted with its objects, nor are they with others: they hold others by references that are placed and
//! released by the API, finalizers on what is live, and rows in the archive.

use kindex_model::reference_name::ReferenceName;

use super::World;
use crate::object::Key;

impl World {
    /// One that the graph does not know is created and holds an object from now on, live or archived. Whether it does.
    pub(in super::super) fn hold_from_sql(&mut self, target: &Key, uid: &str) -> bool {
        let holder = format!("{:08x}-0000-4000-8000-00000000005a", self.servers.next_uid());
        let name = ReferenceName::new("Team", &target.kind.group, &holder).expect("a name");
        let archived = self.archives.rows.get(uid);
        if archived.is_some_and(|row| !row.deleted && !row.tombstone) {
            self.servers.version += 1;
            self.archives.references.insert((uid.to_owned(), name.clone()));
        } else {
            let placed = self.write(target, Some(uid), None, |target| {
                target.finalizers.push(name.to_string())
            });
            if placed.is_err() {
                return false;
            }
        }
        self.api_holders.insert(holder, (name, uid.to_owned()));
        true
    }

    /// One of them releases what it holds, and is deleted. The last release ends the deletion of what is archived and
    /// may have nothing outside. Whether all servers answer.
    pub(in super::super) fn release_from_sql(&mut self, holder: &str) -> bool {
        let Some((name, _)) = self.api_holders.get(holder).cloned() else {
            return true;
        };
        let reference = name.to_string();
        let targets = self
            .servers
            .objects
            .values()
            .filter(|object| object.has_finalizer(&reference));
        let targets: Vec<Key> = targets.map(|object| object.key.clone()).collect();
        for key in &targets {
            let written = self.write(key, None, None, |object| {
                object.finalizers.retain(|finalizer| *finalizer != reference);
            });
            if written.is_err() {
                return false;
            }
        }
        let rows = self.archives.references.extract_if(.., |(_, other)| *other == name);
        let held: Vec<String> = rows.map(|(held, _)| held).collect();
        for uid in held {
            self.servers.version += 1;
            let found = self.tombstone(&uid).filter(|_| !self.archives.is_held(&uid));
            if let Some(found) = found.filter(|found| !self.ends_by_walk(&found.key.kind)).cloned() {
                self.erase_unless_held(&found, false);
            }
        }
        self.api_holders.remove(holder);
        true
    }
}
