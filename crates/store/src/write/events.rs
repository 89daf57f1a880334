//! What the writes of a batch mean to those who follow the outbox. Pure; knows no table.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kindex_model::projection::Version;
use kindex_query::Life;

use crate::cells::{FoundRow, life};
use crate::row::RowWrite;
use crate::write::plan::Plan;

/// What becomes of the entry of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    pub(crate) uid: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// Since when it is being deleted. A tombstone keeps the time that its object was known to be deleted since.
    pub(crate) deletion: Option<Timestamp>,
    /// Whether the object is gone: the entry is a tombstone.
    pub(crate) erased: bool,
}

impl<'a> Event<'a> {
    /// An object that is there.
    pub(crate) fn of_row(row: &'a FoundRow, deletion: Option<Timestamp>) -> Self {
        Self {
            uid: &row.uid.0,
            namespace: &row.namespace,
            name: &row.name,
            deletion,
            erased: false,
        }
    }

    /// The object of a version, which is there.
    pub(crate) fn of_version(version: &'a Version, deletion: Option<Timestamp>) -> Self {
        let metadata = &version.object.metadata;
        Self {
            uid: &metadata.uid.0,
            namespace: &metadata.namespace,
            name: &metadata.name,
            deletion,
            erased: false,
        }
    }

    /// The same object, gone.
    pub(crate) fn erased(self, since: Timestamp) -> Self {
        Self {
            deletion: self.deletion.or(Some(since)),
            erased: true,
            ..self
        }
    }
}

/// The events of a batch, at most one of an object.
#[derive(Default)]
pub(crate) struct Events<'a> {
    settled: BTreeMap<&'a str, Event<'a>>,
    /// Objects that leave the cluster and stay: an event only where they become others on the way.
    leaving: Vec<&'a Version>,
    /// Objects that come back as archived ones.
    archived: Vec<&'a Version>,
}

impl<'a> Events<'a> {
    /// Notes what follows from one write to a row.
    pub(crate) fn note(&mut self, write: &'a RowWrite, row: Option<&'a FoundRow>, decision: &Plan<'a>, now: Timestamp) {
        let version: Option<&'a Version> = match write {
            RowWrite::Store { version, .. } => Some(version),
            RowWrite::SoftDelete { .. } | RowWrite::Record { .. } => None,
        };
        let (after, is_text_new) = match decision {
            Plan::Nothing(_) => return,
            Plan::Insert(new) | Plan::Update(new) => (life(new.delete_time, new.evicted_time), true),
            Plan::Move { life, .. } => (*life, false),
        };
        let before = row.map(FoundRow::life);
        let leaving = version.and_then(|version| version.object.metadata.deletion_timestamp);
        let event = match (version, row) {
            (Some(version), _) => Event::of_version(version, None),
            (None, Some(row)) => Event::of_row(row, None),
            (None, None) => return,
        };
        match (before, after, version) {
            (Some(Life::Deleted), Life::Deleted, _) => {}
            // What an archived object went through while it left the cluster was no deletion.
            (Some(Life::Archived), Life::Deleted, _) => self.add(event.erased(now)),
            (Some(Life::Live) | None, Life::Deleted, _) => {
                let deletion = leaving;
                self.add(Event { deletion, ..event }.erased(now));
            }
            (_, Life::Live, _) => self.add(Event {
                deletion: leaving,
                ..event
            }),
            (None, Life::Archived, _) => self.add(event),
            (Some(Life::Live), Life::Archived, Some(version)) if is_text_new => self.leaving.push(version),
            // The entry may say that the object is being deleted.
            (Some(Life::Live), Life::Archived, _) if leaving.is_some() => self.add(event),
            (Some(Life::Live), Life::Archived, _) => {}
            // A new text of an archived row is compared with the old one, for watches too.
            (Some(Life::Archived), Life::Archived, _) => {}
            (Some(Life::Deleted), Life::Archived, Some(version)) => self.archived.push(version),
            (Some(Life::Deleted), Life::Archived, None) => {}
        }
    }

    /// Adds an event, or replaces that of the same object.
    pub(crate) fn add(&mut self, event: Event<'a>) {
        self.settled.insert(event.uid, event);
    }

    /// The versions of objects that leave the cluster, to be compared with what their rows hold before the write.
    pub(crate) fn leaving(&self) -> &[&'a Version] {
        &self.leaving
    }

    /// Of these versions, which an eviction stored, the objects became others.
    pub(crate) fn became_others(&mut self, versions: impl Iterator<Item = &'a Version>) {
        versions.for_each(|version| self.add(Event::of_version(version, None)));
    }

    /// The objects of these versions are archived, before and after.
    pub(crate) fn changed_in_archive(&mut self, versions: impl Iterator<Item = &'a Version>) {
        self.archived.extend(versions);
    }

    /// The archived objects among them, of which only their tombstones say whether they are being deleted.
    pub(crate) fn archived(&self) -> Vec<&'a str> {
        let uids = self.archived.iter().map(|version| &*version.object.metadata.uid.0);
        uids.collect()
    }

    /// Settles the archived ones: those with a tombstone wait for the release of their references.
    pub(crate) fn settle(&mut self, requested: impl Fn(&str) -> Option<Timestamp>) {
        for version in std::mem::take(&mut self.archived) {
            let requested = requested(&version.object.metadata.uid.0);
            self.add(Event::of_version(version, requested));
        }
    }

    /// In the order in which they are numbered.
    pub(crate) fn into_sorted(self) -> Vec<Event<'a>> {
        self.settled.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kindex_model::object::{Object, ResourceVersion, Uid};
    use kindex_model::projection::ContentHash;
    use kindex_model::row_version::RowVersion;
    use kindex_query::Revive;

    use super::*;
    use crate::row::Arrival;
    use crate::write::plan::plan;

    const LIVES: [Life; 3] = [Life::Live, Life::Archived, Life::Deleted];

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    fn version(number: u64, leaving: bool) -> Arc<Version> {
        let leaving = if leaving {
            r#","deletionTimestamp":"1970-01-01T00:00:07Z""#
        } else {
            ""
        };
        let text = format!(r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"{number}"{leaving}}}}}"#);
        let hash = ContentHash {
            payload: [u8::try_from(number).expect("small"); 16],
            labels: [0; 8],
            annotations: [0; 8],
        };
        Arc::new(Version {
            object: Object::parse_str(&text).expect("an object"),
            columns: Vec::new(),
            proto: None,
            hash,
            problems: Vec::new(),
        })
    }

    fn row(number: u64, life: Life) -> FoundRow {
        FoundRow {
            arrival: Arrival(1),
            uid: Uid::from("u"),
            namespace: String::new(),
            name: "a".to_owned(),
            res_version: RowVersion::Cluster(ResourceVersion(number)),
            hash: Some(version(number, false).hash),
            delete_time: (life == Life::Deleted).then_some(at(1)),
            evicted_time: (life == Life::Archived).then_some(at(1)),
            group_ver: "test/v2".to_owned(),
        }
    }

    /// What a write comes to, and how many objects are to be compared before it is known.
    fn events(write: &RowWrite, row: Option<&FoundRow>) -> (Option<(Option<i64>, bool)>, usize) {
        let mut events = Events::default();
        events.note(write, row, &plan(write, row, "test/v2", at(100)), at(100));
        let compared = events.leaving().len();
        events.settle(|_| Some(at(3)));
        let sorted = events.into_sorted();
        assert!(sorted.len() <= 1);
        let event = sorted
            .first()
            .map(|event| (event.deletion.map(Timestamp::as_second), event.erased));
        (event, compared)
    }

    /// Every pair of states, with the same and with a newer version, of objects that leave and that do not.
    #[test]
    fn each_transition_of_a_row_has_its_event() {
        for (before, after) in LIVES.into_iter().flat_map(|a| LIVES.map(|b| (a, b))) {
            for (number, leaving) in [(10, false), (10, true), (11, false), (11, true)] {
                let write = RowWrite::Store {
                    version: version(number, leaving),
                    life: after,
                    revive: Revive::FromAny,
                };
                let since = leaving.then_some(7);
                let wanted = match (before, after) {
                    (Life::Deleted, Life::Deleted) => (None, 0),
                    (Life::Live, Life::Live) | (Life::Archived, Life::Archived) if number == 10 => (None, 0),
                    (Life::Live, Life::Deleted) => (Some((since.or(Some(100)), true)), 0),
                    (Life::Archived, Life::Deleted) => (Some((Some(100), true)), 0),
                    (_, Life::Live) => (Some((since, false)), 0),
                    (Life::Live, Life::Archived) if number == 11 => (None, 1),
                    (Life::Live, Life::Archived) => (leaving.then_some((None, false)), 0),
                    (Life::Archived, Life::Archived) => (None, 0),
                    (Life::Deleted, Life::Archived) => (Some((Some(3), false)), 0),
                };
                let case = format!("{before:?} to {after:?} at {number}, leaving {leaving}");
                assert_eq!(events(&write, Some(&row(10, before))), wanted, "{case}");
            }
        }
    }

    #[test]
    fn a_row_that_is_new_has_its_event() {
        let write = |life| RowWrite::Store {
            version: version(10, true),
            life,
            revive: Revive::Never,
        };
        assert_eq!(events(&write(Life::Live), None), (Some((Some(7), false)), 0));
        assert_eq!(events(&write(Life::Archived), None), (Some((None, false)), 0));
        assert_eq!(events(&write(Life::Deleted), None), (Some((Some(7), true)), 0));
    }

    #[test]
    fn a_soft_delete_leaves_a_tombstone_and_a_stale_write_nothing() {
        let gone = RowWrite::SoftDelete { uid: Uid::from("u") };
        for life in [Life::Live, Life::Archived] {
            assert_eq!(events(&gone, Some(&row(10, life))), (Some((Some(100), true)), 0));
        }
        assert_eq!(events(&gone, Some(&row(10, Life::Deleted))), (None, 0));
        assert_eq!(events(&gone, None), (None, 0));
        let stale = RowWrite::Store {
            version: version(9, false),
            life: Life::Deleted,
            revive: Revive::FromAny,
        };
        assert_eq!(events(&stale, Some(&row(10, Life::Live))), (None, 0));
    }
}
