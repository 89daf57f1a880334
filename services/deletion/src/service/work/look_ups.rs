//! What is known of the objects of other services: by look-ups, which are due where something was heard of an object,
//! and in doubt where their events are not to be trusted.

use std::collections::BTreeSet;

use kindex_model::object::Uid;
use tokio::time::Instant;

use crate::object::{Key, KindName, Object};

use super::Work;

impl Work {
    /// Something happened to an object of another service, of which nothing is known where none of ours names it. What
    /// is archived may go with one that is deleted.
    pub(in super::super) fn happened(&mut self, key: Key, is_deleted: bool) {
        let is_known = self.graph.get(&key).is_some() || self.graph.is_named(&key);
        if is_known || (is_deleted && self.setup.archives) {
            self.look_ups.ask(key);
        }
    }

    /// All objects of another service's kind were heard of; these have references of ours.
    pub(in super::super) fn replayed(&mut self, kind: &KindName, targets: Vec<Key>) {
        let known = self
            .graph
            .objects()
            .map(|object| &object.key)
            .filter(|key| key.kind == *kind);
        let matter = known.chain(self.graph.names_of(kind)).cloned().chain(targets).collect();
        if self.look_ups.replayed(kind, matter) {
            self.queue.add(self.graph.complete(kind));
        }
    }

    /// What is known of a kind of another service is not to be trusted.
    pub(in super::super) fn doubted(&mut self, kind: &KindName) {
        self.look_ups.doubted(kind);
        self.graph.doubt(kind);
    }

    /// Whether that is so still.
    pub(in super::super) fn doubts(&self, kind: &KindName) -> bool {
        self.graph.doubts(kind)
    }

    /// Whether it is so at least until an object is looked up.
    pub(in super::super) fn doubts_until_looked_up(&self, key: &Key) -> bool {
        self.doubts(&key.kind) && self.look_ups.is_missing(key)
    }

    /// The next object of another service that is to be looked up.
    pub(in super::super) fn next_look_up(&mut self) -> Option<Key> {
        self.look_ups.next_due()
    }

    /// What its service says of an object.
    pub(in super::super) fn looked_up(&mut self, key: &Key, found: Option<Object>, now: Instant) {
        match found {
            Some(object) => self.seen(object, now),
            None => {
                if let Some(uid) = self.graph.get(key).map(|known| known.uid.clone()) {
                    self.gone(key, &uid, now);
                }
            }
        }
        if self.look_ups.answered(key) {
            self.queue.add(self.graph.complete(&key.kind));
        }
    }

    /// Its service does not say, and is asked again.
    pub(in super::super) fn look_up_again(&mut self, key: &Key) {
        self.look_ups.failed(key);
    }

    /// The objects of another service's kind that have references of ours.
    pub(in super::super) fn held(&self, kind: &KindName) -> BTreeSet<Uid> {
        let of_kind = self.graph.objects().filter(|object| object.key.kind == *kind);
        let held = of_kind.filter(|object| {
            object
                .references
                .iter()
                .any(|name| self.graph.find(name.uid()).is_some())
        });
        held.map(|object| Uid::from(object.uid.as_str())).collect()
    }
}
