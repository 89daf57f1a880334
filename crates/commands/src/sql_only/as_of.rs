//! A list as it was at a version, from the rows as they are and what has changed since. Pure.

use std::collections::BTreeMap;

use kindex_model::object::{Object, ResourceVersion};
use kindex_store::SqlOnlyChange;

/// Namespace and name.
pub(super) type Key = (String, String);

/// What has changed since a version, by name.
pub(super) struct ChangesSince {
    /// Up to here all changes are known.
    pub(super) seen: ResourceVersion,
    changed: BTreeMap<Key, Changed>,
}

struct Changed {
    /// What had the name at the version.
    then: Option<Object>,
    /// Whether something has it now.
    is_there: bool,
}

pub(super) fn key_of(object: &Object) -> Key {
    (object.metadata.namespace.clone(), object.metadata.name.clone())
}

impl ChangesSince {
    pub(super) fn new(version: ResourceVersion) -> Self {
        Self {
            seen: version,
            changed: BTreeMap::new(),
        }
    }

    /// The next changes, in order.
    pub(super) fn learn(&mut self, changes: Vec<SqlOnlyChange>) {
        for change in changes {
            self.seen = change.version;
            let is_there = !change.deleted;
            let changed = self.changed.entry(key_of(&change.object));
            changed.and_modify(|it| it.is_there = is_there).or_insert(Changed {
                then: change.before,
                is_there,
            });
        }
    }

    /// A page of what was there, of rows that come after one name, in order: all of them up to `upto`, or to the end.
    ///
    /// # Assumptions
    /// The rows were read before the changes.
    pub(super) fn page(&self, rows: Vec<Object>, after: &Key, upto: Option<&Key>, one: Option<&str>) -> Vec<Object> {
        let rows = rows.into_iter().filter(|row| !self.changed.contains_key(&key_of(row)));
        let within = |key: &Key| key > after && upto.is_none_or(|last| key <= last);
        let were = self.changed.iter().filter(|(key, _)| within(key) && is_of(key, one));
        let were = were.filter_map(|(_, changed)| changed.then.clone());
        let mut page: Vec<Object> = rows.chain(were).collect();
        page.sort_by_key(key_of);
        page
    }

    /// How many were there after a name, of which now so many are.
    pub(super) fn count(&self, now: u64, after: &Key, one: Option<&str>) -> u64 {
        let mut count = now;
        for (_, changed) in self.changed.iter().filter(|(key, _)| *key > after && is_of(key, one)) {
            count = count.saturating_sub(u64::from(changed.is_there)) + u64::from(changed.then.is_some());
        }
        count
    }
}

fn is_of(key: &Key, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|namespace| key.0 == namespace)
}

#[cfg(test)]
mod tests {
    use kindex_model::object::Uid;

    use super::*;

    fn object(name: &str, n: u64) -> Object {
        let text = format!(r#"{{"metadata":{{"name":"{name}","namespace":"n","uid":"u","resourceVersion":"{n}"}}}}"#);
        Object::parse_str(&text).expect("an object")
    }

    fn change(version: u64, name: &str, before: Option<u64>, deleted: bool) -> SqlOnlyChange {
        SqlOnlyChange {
            version: ResourceVersion(version),
            uid: Uid::from("u"),
            before: before.map(|n| object(name, n)),
            object: object(name, version),
            deleted,
        }
    }

    fn names(objects: Vec<Object>) -> Vec<(String, u64)> {
        let read = |object: Object| (object.metadata.name.clone(), object.metadata.resource_version.0);
        objects.into_iter().map(read).collect()
    }

    /// At 10 there were a, b and d; b was changed twice, c is new, d is deleted, e came and went.
    fn since() -> ChangesSince {
        let mut since = ChangesSince::new(ResourceVersion(10));
        since.learn(vec![
            change(11, "b", Some(2), false),
            change(12, "c", None, false),
            change(13, "d", Some(4), true),
        ]);
        since.learn(vec![
            change(14, "b", Some(11), false),
            change(15, "e", None, false),
            change(16, "e", Some(15), true),
        ]);
        since
    }

    #[test]
    fn a_list_at_a_version_has_what_was_there_and_nothing_that_came_later() {
        let rows = || vec![object("a", 1), object("b", 14), object("c", 12)];
        let start = (String::new(), String::new());
        let was = |pairs: &[(&str, u64)]| -> Vec<(String, u64)> {
            pairs.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect()
        };
        let since = since();
        assert_eq!(since.seen, ResourceVersion(16));
        assert_eq!(
            names(since.page(rows(), &start, None, None)),
            was(&[("a", 1), ("b", 2), ("d", 4)])
        );
        assert_eq!(names(since.page(rows(), &start, None, Some("other"))), was(&[("a", 1)]));
        // A page that ends with b has nothing of what comes behind it.
        let (a, b) = (("n".to_owned(), "a".to_owned()), ("n".to_owned(), "b".to_owned()));
        assert_eq!(
            names(since.page(vec![object("b", 14)], &a, Some(&b), None)),
            was(&[("b", 2)])
        );
        assert_eq!(since.count(3, &start, None), 3, "c is not counted, and d is");
        assert_eq!(since.count(1, &b, None), 1);
    }
}
