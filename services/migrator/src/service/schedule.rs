//! Which migrations run: one of a resource at a time, so many at once, those first that have begun.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube::ResourceExt as _;

use crate::migration::Progress;
use crate::wire::{GroupResource, StorageVersionMigration};

/// What is known of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// Whose objects it migrates.
    pub(super) resource: GroupResource,
    /// Where it stands.
    pub(super) progress: Progress,
    /// When it was created.
    pub(super) created: Option<Timestamp>,
}

impl From<&StorageVersionMigration> for Known {
    fn from(object: &StorageVersionMigration) -> Self {
        let resource = &object.spec.resource;
        let status = object.status.as_ref();
        Self {
            resource: GroupResource {
                group: resource.group.clone(),
                resource: resource.resource.clone(),
            },
            progress: status.map_or(Progress::Pending, |status| status.progress()),
            created: object.creation_timestamp().map(|time| time.0),
        }
    }
}

/// What to do about the runs under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Uids of those that begin.
    pub(super) start: Vec<String>,
    /// Uids of those that end, since nobody wants them any more.
    pub(super) stop: Vec<String>,
}

/// Compares what there is, by uid, with what runs. One that pauses keeps others of its resource waiting, and none else.
pub(super) fn plan(
    known: &BTreeMap<String, Known>,
    running: &BTreeMap<String, GroupResource>,
    pausing: &BTreeSet<String>,
    most: usize,
) -> Plan {
    let stop = running
        .keys()
        .filter(|uid| !known.contains_key(*uid))
        .cloned()
        .collect();
    let mut busy: BTreeSet<&GroupResource> = running.values().collect();
    let mut waiting: Vec<_> = known
        .iter()
        .filter(|(uid, one)| !running.contains_key(*uid) && is_open(one.progress))
        .collect();
    waiting.sort_by_key(|(uid, one)| (one.progress != Progress::Running, one.created, *uid));
    let mut start = Vec::new();
    for (uid, one) in waiting {
        if pausing.contains(uid) {
            busy.insert(&one.resource);
        } else if running.len() + start.len() < most && busy.insert(&one.resource) {
            start.push(uid.clone());
        }
    }
    Plan { start, stop }
}

fn is_open(progress: Progress) -> bool {
    match progress {
        Progress::Pending | Progress::Running => true,
        Progress::Succeeded | Progress::Failed { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(name: &str) -> GroupResource {
        GroupResource {
            group: "zoo".to_owned(),
            resource: name.to_owned(),
        }
    }

    const NONE: BTreeSet<String> = BTreeSet::new();

    fn known(all: &[(&str, &str, Progress, i64)]) -> BTreeMap<String, Known> {
        let one = |(uid, name, progress, created): &(&str, &str, Progress, i64)| {
            let known = Known {
                resource: resource(name),
                progress: *progress,
                created: Timestamp::from_second(*created).ok(),
            };
            ((*uid).to_owned(), known)
        };
        all.iter().map(one).collect()
    }

    fn running(all: &[(&str, &str)]) -> BTreeMap<String, GroupResource> {
        all.iter()
            .map(|(uid, name)| ((*uid).to_owned(), resource(name)))
            .collect()
    }

    #[test]
    fn of_one_resource_the_migration_that_has_begun_goes_first_and_alone() {
        let known = known(&[
            ("1", "pets", Progress::Pending, 1),
            ("2", "pets", Progress::Running, 2),
            ("3", "cages", Progress::Pending, 3),
        ]);
        assert_eq!(plan(&known, &running(&[]), &NONE, 9).start, ["2", "3"]);
        assert_eq!(plan(&known, &running(&[("2", "pets")]), &NONE, 9).start, ["3"]);
    }

    #[test]
    fn the_oldest_go_first_and_no_more_than_may_run() {
        let known = known(&[
            ("1", "a", Progress::Pending, 3),
            ("2", "b", Progress::Pending, 1),
            ("3", "c", Progress::Pending, 2),
        ]);
        assert_eq!(plan(&known, &running(&[]), &NONE, 2).start, ["2", "3"]);
        assert_eq!(plan(&known, &running(&[("2", "b")]), &NONE, 2).start, ["3"]);
        assert!(
            plan(&known, &running(&[("2", "b"), ("3", "c")]), &NONE, 2)
                .start
                .is_empty()
        );
    }

    #[test]
    fn one_that_pauses_leaves_its_place_to_other_resources() {
        let known = known(&[
            ("1", "a", Progress::Running, 1),
            ("2", "a", Progress::Pending, 2),
            ("3", "b", Progress::Pending, 3),
        ]);
        let pausing = BTreeSet::from(["1".to_owned()]);
        assert_eq!(plan(&known, &running(&[]), &pausing, 1).start, ["3"]);
    }

    #[test]
    fn migrations_that_ended_stay_so() {
        use crate::migration::Cause;

        let since = Timestamp::UNIX_EPOCH;
        let known = known(&[
            ("1", "a", Progress::Succeeded, 1),
            (
                "2",
                "b",
                Progress::Failed {
                    since,
                    cause: Cause::Refused,
                },
                1,
            ),
        ]);
        assert_eq!(plan(&known, &running(&[]), &NONE, 9), Plan::default());
    }

    #[test]
    fn a_run_whose_migration_was_deleted_stops() {
        let stopped = plan(&BTreeMap::new(), &running(&[("1", "a")]), &NONE, 9);
        assert_eq!(stopped.stop, ["1"]);
    }
}
