//! Which objects the cluster had at the version of a list, by uid. Collected from the pages of lists, so that objects
//! that left recently need not be looked up one by one.
//!
//! # Why this is enough
//! Each object must come from exactly one part of a merged list: the cluster's or SQL's. One that left the cluster well
//! before the list began comes from SQL. For one that left recently, clocks cannot decide whether that was before or
//! after the version of the list, but the cluster's own list at that version can. So a recently archived object comes
//! from SQL if and only if the cluster's list of that version, without selectors, lacks its uid. That list is
//! immutable, so it is read at most once and can be cached indefinitely.
//!
//! Only complete lists are cached. Pages form a complete list if each continues the one before by its token and has the
//! same version. A chain with a gap, because another server read a page or the cluster continued at a newer version, is
//! dropped.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use kindex_model::kind::Kind;
use kindex_model::object::Uid;

/// Lists that are remembered at once.
const LISTS_MAX: usize = 16;
/// Objects that are remembered at once, of all lists: about 10 MB. A longer list is not remembered.
pub(super) const UIDS_MAX: usize = 100_000;

/// A collection of the cluster at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CollectionVersion {
    table: &'static str,
    namespace: Option<String>,
    version: String,
}

impl CollectionVersion {
    pub(super) fn new(kind: &Kind, namespace: Option<&str>, version: &str) -> Self {
        Self {
            table: kind.table,
            namespace: namespace.map(str::to_owned),
            version: version.to_owned(),
        }
    }
}

struct Snapshot {
    of: CollectionVersion,
    uids: Arc<HashSet<Uid>>,
    /// The token of the page that is missing next; none where the list is whole.
    next: Option<String>,
}

/// The lists that are remembered, those that were begun last at the end.
#[derive(Default)]
pub(super) struct Snapshots(Mutex<VecDeque<Snapshot>>);

impl Snapshots {
    /// Takes note of a page: that after `token`, or the first, and which one follows.
    pub(super) fn note(&self, of: &CollectionVersion, token: Option<&str>, uids: &[Uid], next: Option<&str>) {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lists.iter().position(|list| list.of == *of);
        let mut list = match (known, token) {
            (Some(at), None) if lists[at].next.is_none() => return,
            (known, None) => {
                let _begun = known.and_then(|at| lists.remove(at));
                Snapshot {
                    of: of.clone(),
                    uids: Arc::default(),
                    next: None,
                }
            }
            (Some(at), Some(_)) if lists[at].next.as_deref() == token => match lists.remove(at) {
                Some(list) => list,
                None => return,
            },
            (_, Some(_)) => return,
        };
        Arc::make_mut(&mut list.uids).extend(uids.iter().cloned());
        list.next = next.map(str::to_owned);
        lists.push_back(list);
        let count = |lists: &VecDeque<Snapshot>| lists.iter().map(|list| list.uids.len()).sum::<usize>();
        while lists.len() > LISTS_MAX || count(&lists) > UIDS_MAX {
            lists.pop_front();
        }
    }

    /// All that the cluster had then, where it is known.
    pub(super) fn whole(&self, of: &CollectionVersion) -> Option<Arc<HashSet<Uid>>> {
        let lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut whole = lists.iter().filter(|list| list.next.is_none());
        whole.find(|list| list.of == *of).map(|list| list.uids.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collection_version(version: &str) -> CollectionVersion {
        CollectionVersion {
            table: "model",
            namespace: None,
            version: version.to_owned(),
        }
    }

    #[test]
    fn a_version_is_of_one_kind_in_one_namespace_at_one_version() {
        use crate::operations::token::tests::KIND;
        static OTHER: Kind = Kind { table: "other", ..KIND };
        let versions = [
            CollectionVersion::new(&KIND, None, "7"),
            CollectionVersion::new(&KIND, None, "8"),
            CollectionVersion::new(&KIND, Some("a"), "7"),
            CollectionVersion::new(&KIND, Some("b"), "7"),
            CollectionVersion::new(&OTHER, None, "7"),
        ];
        let lists = Snapshots::default();
        for (number, of) in versions.iter().enumerate() {
            lists.note(of, None, &uids(number..number + 1), None);
        }
        for (number, of) in versions.iter().enumerate() {
            let whole = lists.whole(of).expect("whole");
            assert_eq!(
                whole.iter().collect::<Vec<_>>(),
                uids(number..number + 1).iter().collect::<Vec<_>>()
            );
        }
    }

    fn uids(numbers: std::ops::Range<usize>) -> Vec<Uid> {
        numbers.map(|number| Uid::from(number.to_string().as_str())).collect()
    }

    #[test]
    fn only_an_unbroken_chain_of_pages_is_whole() {
        let (lists, of) = (Snapshots::default(), collection_version("7"));
        lists.note(&of, None, &uids(0..2), Some("a"));
        assert!(lists.whole(&of).is_none(), "a page is missing");
        lists.note(&of, Some("b"), &uids(4..6), None);
        assert!(lists.whole(&of).is_none(), "the page between is missing");
        lists.note(&collection_version("8"), Some("a"), &uids(2..4), None);
        assert!(lists.whole(&collection_version("8")).is_none() && lists.whole(&of).is_none());
        lists.note(&of, Some("a"), &uids(2..4), Some("b"));
        lists.note(&of, Some("b"), &uids(4..6), None);
        let whole = lists.whole(&of).expect("all pages have passed");
        assert_eq!(whole.len(), 6);
        lists.note(&of, None, &uids(0..2), Some("a"));
        assert!(lists.whole(&of).is_some(), "what is whole stays so");
    }

    #[test]
    fn a_list_that_begins_anew_begins_empty_and_the_oldest_are_forgotten() {
        let (lists, of) = (Snapshots::default(), collection_version("7"));
        lists.note(&of, None, &uids(0..5), Some("a"));
        lists.note(&of, None, &uids(0..2), None);
        assert_eq!(lists.whole(&of).expect("whole").len(), 2);
        for version in 0..LISTS_MAX {
            lists.note(&collection_version(&format!("later-{version}")), None, &[], None);
        }
        assert!(lists.whole(&of).is_none());
        lists.note(&of, None, &uids(0..UIDS_MAX + 1), None);
        assert!(lists.whole(&of).is_none(), "too long");
    }
}
