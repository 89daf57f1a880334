//! Second half of a relist: scans the rows. A live row whose object was not in the list is looked up in the cluster,
//! and closed if it is gone.

use std::collections::{BTreeSet, VecDeque};

use kindex_kube_client::ObjectName;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::uid_set::UidSet;
use kindex_query::Life;
use kindex_store::{Arrival, RowState};

use crate::message::Output;
use crate::settings::{OrphanLimits, Settings};
use crate::status::HeldOrphans;

/// The scan of the rows after a list.
#[derive(Debug)]
pub(super) struct Sweep {
    after: Option<Arrival>,
    version: ResourceVersion,
    seen: UidSet,
    live: usize,
    orphans: Vec<Orphan>,
    /// Pending objects that were missing from the list: their rows may be written behind the scan.
    pending: Vec<Orphan>,
}

/// An object that was missing from a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Orphan {
    pub(super) uid: Uid,
    pub(super) name: ObjectName,
    pub(super) version: ResourceVersion,
}

/// Orphans that are being looked up, as there is room.
#[derive(Debug)]
pub(super) struct Closing {
    pub(super) version: ResourceVersion,
    pub(super) orphans: VecDeque<Orphan>,
}

/// The result of a scan.
#[derive(Debug)]
pub(super) struct Judgment {
    pub(super) version: ResourceVersion,
    /// Live rows whose objects were missing from the list.
    pub(super) found: usize,
    /// All live rows.
    pub(super) live: usize,
    /// Whether they exceed the limits, but were allowed.
    pub(super) on_demand: bool,
    /// Set if they exceed the limits and were not allowed: none of them is closed.
    pub(super) held: Option<HeldOrphans>,
    /// Those to look up.
    pub(super) orphans: Vec<Orphan>,
}

impl Sweep {
    pub(super) fn new(version: ResourceVersion, seen: UidSet, pending: Vec<Orphan>) -> Self {
        Self {
            after: None,
            version,
            seen,
            live: 0,
            orphans: Vec::new(),
            pending,
        }
    }

    pub(super) fn request(&self, settings: &Settings) -> Output {
        Output::Scan {
            after: self.after,
            limit: settings.page_rows,
        }
    }

    /// Takes a page of rows, of which `page_rows` were requested. Returns whether it is the last.
    pub(super) fn take(&mut self, rows: Vec<RowState>, page_rows: u32) -> bool {
        let last = rows.len() < page_rows as usize;
        self.after = rows.last().map(|row| row.arrival);
        for row in rows.into_iter().filter(|row| row.life == Life::Live) {
            self.live += 1;
            if !self.seen.contains(&row.uid) {
                let version = row.cluster_version();
                self.orphans.push(Orphan {
                    name: ObjectName {
                        namespace: row.namespace,
                        name: row.name,
                    },
                    // The row may be beyond the list: of a cluster that was restored, or by
                    // somebody who saw more. Asking tells.
                    version: version.min(self.version),
                    uid: row.uid,
                });
            }
        }
        last
    }

    /// Decides which orphans are looked up: all of them within the limits, or up to `allowed`.
    pub(super) fn judge(self, limits: OrphanLimits, allowed: usize) -> Judgment {
        let (found, live) = (self.orphans.len(), self.live);
        let forbidden = limits.forbids(found, live);
        let held = (forbidden && found > allowed).then_some(HeldOrphans {
            rows: found,
            live,
            limits,
        });
        let mut orphans = if held.is_some() { Vec::new() } else { self.orphans };
        // Pending objects that are not in the list left without an event.
        let known: BTreeSet<Uid> = orphans.iter().map(|orphan| orphan.uid.clone()).collect();
        orphans.extend(self.pending.into_iter().filter(|orphan| !known.contains(&orphan.uid)));
        Judgment {
            version: self.version,
            found,
            live,
            on_demand: forbidden && held.is_none(),
            held,
            orphans,
        }
    }
}

#[cfg(test)]
mod tests {
    use kindex_model::row_version::RowVersion;
    use kindex_model::uid_set::UidSetBuilder;

    use super::*;

    fn row(uid: &str, life: Life) -> RowState {
        RowState {
            arrival: Arrival(1),
            uid: Uid::from(uid),
            namespace: String::new(),
            name: uid.to_owned(),
            res_version: RowVersion::Cluster(ResourceVersion(9)),
            hash: None,
            life,
        }
    }

    fn orphan(uid: &str, version: u64) -> Orphan {
        Orphan {
            uid: Uid::from(uid),
            name: ObjectName {
                namespace: String::new(),
                name: uid.to_owned(),
            },
            version: ResourceVersion(version),
        }
    }

    fn swept(rows_max: u32, allowed: usize) -> Judgment {
        let mut seen = UidSetBuilder::default();
        seen.add(&Uid::from("there"));
        let pending = vec![orphan("missed", 3), orphan("pending", 4)];
        let mut sweep = Sweep::new(ResourceVersion(7), seen.finish(), pending);
        assert!(!sweep.take(vec![row("there", Life::Live), row("missed", Life::Live)], 2));
        assert!(sweep.take(vec![row("archived", Life::Archived)], 2));
        let percent_max = 10;
        sweep.judge(OrphanLimits { rows_max, percent_max }, allowed)
    }

    #[test]
    fn live_rows_that_the_list_lacks_are_orphans_and_what_was_pending_as_well() {
        let judged = swept(1, 0);
        assert_eq!((judged.found, judged.live, judged.held), (1, 2, None));
        assert_eq!(judged.orphans, [orphan("missed", 7), orphan("pending", 4)]);
    }

    #[test]
    fn more_than_is_believable_is_held_unless_it_was_allowed() {
        let held = swept(0, 0);
        assert_eq!(held.held.map(|held| (held.rows, held.live)), Some((1, 2)));
        assert_eq!(
            held.orphans,
            [orphan("missed", 3), orphan("pending", 4)],
            "what was pending is not a row"
        );
        let allowed = swept(0, 1);
        assert!(allowed.on_demand && allowed.held.is_none());
        assert_eq!(allowed.orphans.len(), 2);
    }
}
