//! Objects that wait for each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kindex_model::reference_name::ReferenceName;

use super::Graph;
use crate::decide::{FoundHolder, Seen};
use crate::object::{DeletionState, Key, Object};

#[cfg(test)]
mod tests;

/// References that a search looks at, on all objects together: one may have very many.
const REFERENCES_MAX: usize = 10_000;

/// Those that an object waits for, over any number of others.
#[derive(Debug)]
pub struct CycleSearch {
    /// The objects around one of its references back to itself, where there is such a path: a deletion of any of them
    /// waits for itself.
    pub cycle: Option<Vec<Seen>>,
    /// The object and those leaving the cluster that it waits for, as far as the search went.
    pub looked_at: Vec<Key>,
    /// Whether one of them that is of another service waits for one of this service which is not known here: it may be
    /// archived.
    pub may_be_archived: bool,
}

/// One that a search comes to.
#[derive(Clone, Copy)]
enum Holder<'h> {
    Known(&'h Object),
    /// By its uid, with what its service says of it.
    Elsewhere(&'h str, &'h FoundHolder),
}

impl<'h> Holder<'h> {
    fn key(self) -> &'h Key {
        match self {
            Self::Known(object) => &object.key,
            Self::Elsewhere(_, found) => &found.key,
        }
    }

    fn uid(self) -> &'h str {
        match self {
            Self::Known(object) => &object.uid,
            Self::Elsewhere(uid, _) => uid,
        }
    }

    fn seen(self) -> Seen {
        Seen {
            key: self.key().clone(),
            uid: self.uid().to_owned(),
        }
    }

    fn is_leaving(self) -> bool {
        match self {
            Self::Known(object) => object.is_leaving(),
            Self::Elsewhere(_, found) => found.is_leaving,
        }
    }

    fn held_by(self) -> &'h BTreeSet<ReferenceName> {
        match self {
            Self::Known(object) => &object.references,
            Self::Elsewhere(_, found) => &found.held_by,
        }
    }
}

impl Graph {
    /// Those that an object waits for. Of a holder that is not known here, `elsewhere` is what its service says.
    pub fn search_cycle<'h>(
        &'h self,
        key: &Key,
        elsewhere: impl Fn(&ReferenceName) -> Option<&'h FoundHolder>,
    ) -> CycleSearch {
        let begin = self.objects.get(key).map(Holder::Known);
        let mut reached: BTreeMap<String, Seen> = BTreeMap::new();
        let (mut next, mut looked_at): (VecDeque<_>, _) = (begin.into_iter().collect(), vec![key.clone()]);
        let (mut left, mut cycle, mut may_be_archived) = (REFERENCES_MAX, None, false);
        'search: while let Some(target) = next.pop_front() {
            for name in target.held_by().iter().take(left) {
                left -= 1;
                let known = self.uids.get(name.uid()).and_then(|key| self.objects.get(key));
                let holder = known
                    .map(Holder::Known)
                    .or_else(|| elsewhere(name).map(|found| Holder::Elsewhere(name.uid(), found)));
                let Some(holder) = holder else {
                    let is_elsewhere = target.key().kind.group != key.kind.group;
                    may_be_archived |= is_elsewhere && name.group() == key.kind.group;
                    continue;
                };
                // Another one may have had its name.
                if begin.is_some_and(|begin| begin.uid() == holder.uid()) {
                    cycle = Some(path(&reached, holder.uid(), target.seen()));
                    break 'search;
                }
                if holder.is_leaving() && !reached.contains_key(holder.uid()) {
                    reached.insert(holder.uid().to_owned(), target.seen());
                    looked_at.push(holder.key().clone());
                    next.push_back(holder);
                }
            }
        }
        CycleSearch {
            cycle,
            looked_at,
            may_be_archived,
        }
    }

    /// The uids of the holders that are not known here and that an object waits for, over any number of others that are
    /// leaving the cluster. They may be archived.
    pub fn unknown_holders(&self, object: &Object) -> BTreeSet<String> {
        let (mut unknown, mut reached) = (BTreeSet::new(), BTreeSet::from([object.uid.as_str()]));
        let (mut next, mut left) = (VecDeque::from([object]), REFERENCES_MAX);
        while let Some(target) = next.pop_front() {
            for name in target.references.iter().take(left) {
                left -= 1;
                match self.uids.get(name.uid()).and_then(|key| self.objects.get(key)) {
                    None => _ = unknown.insert(name.uid().to_owned()),
                    Some(holder) if holder.is_leaving() && reached.insert(holder.uid.as_str()) => {
                        next.push_back(holder);
                    }
                    Some(_) => {}
                }
            }
        }
        unknown
    }

    /// The objects that are being deleted and have the reference of a holder, live or not: they wait for it.
    pub fn waiting_on(&self, holder: &Seen) -> Vec<Seen> {
        let name = holder.reference_name();
        let targets = name.as_ref().into_iter().flat_map(|name| self.targets(name));
        let targets = targets.filter_map(|key| self.objects.get(key));
        let waiting = targets.filter(|object| object.state == DeletionState::Deleting);
        waiting.map(Seen::of).collect()
    }
}

/// From the object with the uid `begin` to `last`, where by uid of each that was reached it is known from which one.
pub(crate) fn path(reached: &BTreeMap<String, Seen>, begin: &str, last: Seen) -> Vec<Seen> {
    let mut path = vec![last];
    while let Some(before) = path.last().and_then(|at| reached.get(&at.uid)) {
        path.push(before.clone());
    }
    debug_assert!(path.last().is_some_and(|at| at.uid == begin), "the search began there");
    path.reverse();
    path
}
