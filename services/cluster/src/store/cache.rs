//! The live revisions that were written last, with their parsed objects: whoever works on an object reads again what
//! was just written. Bounded in number and memory; the file has all revisions.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kindex_kube_api::size::held_bytes;

use super::record::{Change, ObjectKey, Revision};

/// Revisions that are kept.
const REVISIONS_MAX: usize = 2_048;
/// And about how much memory their texts and parsed objects take.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// An object with a longer text is read from the file: few are large, and each would displace many.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// The newest revisions, by key.
///
/// # Guarantees
/// What is in it is live: the writer takes the keys of a transaction out before it begins, and puts in what became of
/// them after the commit. Reads in between ask the file, and so do reads after a transaction that failed, whatever
/// became of it.
///
/// # Assumptions
/// Nobody but the one writer writes.
#[derive(Default)]
pub(super) struct RevisionCache {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    by_key: HashMap<ObjectKey, Arc<Revision>>,
    /// The same by resource version, with their memory: the lowest leaves first.
    by_rv: BTreeMap<u64, (Arc<Revision>, usize)>,
    bytes: usize,
}

impl RevisionCache {
    /// The live revision of an object, if it is kept.
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<Revision>> {
        self.locked().by_key.get(key).cloned()
    }

    /// Takes out what may change.
    pub(super) fn forget<'a>(&self, keys: impl Iterator<Item = &'a ObjectKey>) {
        let mut entries = self.locked();
        for key in keys {
            entries.remove(key);
        }
    }

    /// Keeps a committed revision. Those of one object come in order.
    pub(super) fn keep(&self, revision: &Arc<Revision>) {
        let is_kept = revision.change != Change::Deleted && revision.text.len() <= TEXT_BYTES_MAX;
        let bytes = if is_kept { memory_bytes(revision) } else { 0 };
        let mut entries = self.locked();
        entries.remove(&revision.key);
        if is_kept {
            entries.insert(Arc::clone(revision), bytes);
        }
    }

    fn locked(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn insert(&mut self, revision: Arc<Revision>, bytes: usize) {
        self.bytes += bytes;
        self.by_key.insert(revision.key.clone(), Arc::clone(&revision));
        self.by_rv.insert(revision.rv, (revision, bytes));
        while self.by_rv.len() > REVISIONS_MAX || self.bytes > BYTES_MAX {
            let Some((_, (oldest, bytes))) = self.by_rv.pop_first() else {
                return;
            };
            self.by_key.remove(&oldest.key);
            self.bytes -= bytes;
        }
    }

    fn remove(&mut self, key: &ObjectKey) {
        let found = self.by_key.remove(key);
        if let Some((_, bytes)) = found.and_then(|revision| self.by_rv.remove(&revision.rv)) {
            self.bytes -= bytes;
        }
    }
}

/// A parsed object has copies of all that its text says.
fn memory_bytes(revision: &Revision) -> usize {
    2 * revision.text.len() + revision.object().map_or(0, held_bytes)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("widgets", "ns", name)
    }

    fn keep(cache: &RevisionCache, rv: u64, name: &str, object: Value) {
        let text = Bytes::from(object.to_string());
        let revision = Revision::with_object(rv, Change::Modified, key(name), text, object);
        cache.keep(&Arc::new(revision));
    }

    fn kept(cache: &RevisionCache, name: &str) -> Option<u64> {
        cache.get(&key(name)).map(|revision| revision.rv)
    }

    #[test]
    fn what_was_written_last_is_kept() {
        let cache = RevisionCache::default();
        for rv in 1..=2_048 {
            keep(&cache, rv, &rv.to_string(), json!({}));
        }
        keep(&cache, 2_049, "1", json!({}));
        assert_eq!((kept(&cache, "1"), kept(&cache, "2")), (Some(2_049), Some(2)));
        keep(&cache, 2_050, "another", json!({}));
        assert_eq!((kept(&cache, "1"), kept(&cache, "2")), (Some(2_049), None));
        assert_eq!(cache.locked().by_key.len(), 2_048);
    }

    /// Of many small maps: a hundred times as much as its text.
    #[test]
    fn parsed_objects_are_held_to_a_limit_of_memory() {
        let cache = RevisionCache::default();
        let object = json!({"items": vec![json!({"a": 1}); 1_000]});
        for rv in 1..=100 {
            keep(&cache, rv, &rv.to_string(), object.clone());
        }
        let entries = cache.locked();
        assert!(entries.bytes <= BYTES_MAX && entries.by_key.len() < 50);
        assert_eq!(entries.by_key.len(), entries.by_rv.len());
        drop(entries);
        assert_eq!((kept(&cache, "1"), kept(&cache, "100")), (None, Some(100)));
        let keys: Vec<_> = (1..=100).map(|rv: u64| key(&rv.to_string())).collect();
        cache.forget(keys.iter());
        assert_eq!(cache.locked().bytes, 0);
    }

    #[test]
    fn an_object_that_has_grown_large_is_no_longer_kept() {
        let cache = RevisionCache::default();
        keep(&cache, 1, "a", json!("x".repeat(16 * 1024 - 2)));
        assert_eq!(kept(&cache, "a"), Some(1));
        keep(&cache, 2, "a", json!("x".repeat(16 * 1024 - 1)));
        assert_eq!(kept(&cache, "a"), None);
    }
}
