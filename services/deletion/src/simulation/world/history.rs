//! What fields have said at any time, what users have deleted, and when deletions began. By these alone, whatever went
//! must have gone, however users went on.

use std::collections::{BTreeMap, BTreeSet};

use kindex_model::reference::OnDelete;

use super::declared::Services;
use super::{Stored, World, fields, names};
use crate::object::Key;

/// All objects that there ever were, by uid.
#[derive(Debug, Default)]
pub(in super::super) struct History {
    objects: BTreeMap<String, Past>,
    /// Those that users have deleted.
    by_users: BTreeSet<String>,
}

/// What an object was.
#[derive(Debug)]
struct Past {
    key: Key,
    named: BTreeMap<&'static str, String>,
    /// The version in which the fields became these, or the object was archived.
    since: u64,
    /// Whom the fields have ever named that take the object along.
    takers: BTreeSet<Key>,
    /// The version in which its deletion began, if it had the deletion finalizer.
    begun: Option<u64>,
}

impl History {
    /// A user deletes an object.
    pub(in super::super) fn deleted_by_user(&mut self, uid: &str) {
        self.by_users.insert(uid.to_owned());
    }

    /// Whether the fields of an archived holder are what they are since before the deletion of a target began.
    pub(in super::super) fn is_named_in_time(&self, holder: &str, target: &str) -> bool {
        let begun = self.objects.get(target).and_then(|past| past.begun);
        let since = self.objects.get(holder).map(|past| past.since);
        begun.is_some_and(|begun| since.is_some_and(|since| since < begun))
    }

    /// An object is about to be stored.
    pub(super) fn note(&mut self, services: &Services, object: &Stored) {
        self.note_fields(services, object);
        let has_deletion_finalizer = object.has_finalizer(&names(&object.key.kind.group).finalizer);
        let past = self.objects.get_mut(&object.uid);
        let past =
            past.filter(|past| object.terminating && object.asked && has_deletion_finalizer && past.begun.is_none());
        if let Some(past) = past {
            past.begun = Some(object.version);
        }
    }

    /// The fields of an object, in the cluster or archived, are these now.
    pub(super) fn note_fields(&mut self, services: &Services, object: &Stored) {
        let leaves = object.terminating && object.finalizers.is_empty();
        let known = self.objects.get(&object.uid);
        if known.is_some_and(|past| past.named == object.named && !leaves) {
            return;
        }
        let taking = fields(&object.key.kind.kind).filter(|field| field.owned || field.on_delete == OnDelete::Cascade);
        let takers = taking.filter_map(|field| Some(services.key(field.target, object.named.get(field.name)?)));
        let takers: Vec<Key> = takers.collect();
        let past = self.objects.entry(object.uid.clone()).or_insert_with(|| Past {
            key: object.key.clone(),
            named: BTreeMap::new(),
            since: 0,
            takers: BTreeSet::new(),
            begun: None,
        });
        (past.named, past.since) = (object.named.clone(), object.version);
        past.takers.extend(takers);
    }
}

impl World {
    /// Whether everything that is deleted, or gone, goes back to something that a user deleted: over fields that take
    /// it along, as they were at any time. How much is gone.
    pub(in super::super) fn in_reach(&self) -> Result<usize, String> {
        let live = self.servers.objects.values().filter(|object| object.asked);
        let rows = self.archives.rows.values().filter(|row| row.tombstone || row.deleted);
        let deleted = live.chain(rows.map(|row| &row.object)).map(|object| &object.uid);
        let deleted: BTreeSet<&String> = deleted.chain(self.judge.ends.keys()).collect();
        let deleted = deleted.into_iter();
        let left = deleted.filter_map(|uid| Some((uid, self.judge.history.objects.get(uid)?)));
        let mut left: BTreeMap<&String, &Past> = left.collect();
        let roots = left.extract_if(.., |uid, _| self.judge.history.by_users.contains(*uid));
        let mut reached: BTreeSet<&Key> = roots.map(|(_, past)| &past.key).collect();
        loop {
            let next = left.extract_if(.., |_, past| past.takers.iter().any(|taker| reached.contains(taker)));
            let next: Vec<&Key> = next.map(|(_, past)| &past.key).collect();
            if next.is_empty() {
                break;
            }
            reached.extend(next);
        }
        match left.values().next() {
            Some(past) => Err(format!(
                "{} is deleted, and no user deleted what takes it along",
                past.key
            )),
            None => Ok(self.judge.ends.len()),
        }
    }

    /// Whether no deletion in the cluster was through before what was archived and named the object since before it
    /// began. What lost the deletion finalizer waits for nobody.
    pub(in super::super) fn after_archived(&self) -> Result<(), String> {
        let waited = self
            .judge
            .ends
            .iter()
            .filter(|(uid, _)| !self.judge.vanished.contains(*uid));
        for (uid, end) in waited {
            let Some((key, begun)) = self
                .judge
                .history
                .objects
                .get(uid)
                .and_then(|past| Some((&past.key, past.begun?)))
            else {
                continue;
            };
            let own = self.archives.rows.values().map(|row| &row.object);
            let own = own.filter(|holder| holder.key.kind.group == key.kind.group && holder.uid != *uid);
            let naming =
                own.filter(|holder| self.judge.history.objects[&holder.uid].since < begun && Self::names(holder, key));
            let mut late = naming.filter(|holder| self.judge.ends.get(&holder.uid).is_none_or(|other| other > end));
            if let Some(holder) = late.next() {
                return Err(format!("{key} was through before {}, which is archived", holder.key));
            }
        }
        Ok(())
    }
}
