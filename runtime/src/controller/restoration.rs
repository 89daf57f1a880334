//! Handles a restored cluster: drains what is in flight, saves the restore mark, moves lost versions of a history to a
//! branch, and rewinds rows above the version of the cluster, so that its versions replace them. Then `listing` reads
//! the whole list.

use kindex_model::checkpoint::Checkpoint;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_store::{Arrival, RowState};

use super::checkpoints::Checkpoints;
use crate::message::Output;
use crate::settings::Settings;

/// A restoration in progress.
#[derive(Clone, Debug)]
pub(super) struct Restoration {
    /// The version to which the cluster was restored: rows above it hold lost versions.
    version: ResourceVersion,
    step: Step,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Work in flight is being drained.
    Draining,
    /// The restore mark is being saved.
    Marking,
    /// Lost versions of the history are being moved to a branch.
    SettingAside,
    /// A page of rows is being read.
    Scanning { after: Option<Arrival> },
    /// Rows of that page are being rewound; the next page follows, if there is one.
    Rewinding { uids: Vec<Uid>, next: Option<Arrival> },
}

impl Restoration {
    pub(super) fn new(version: ResourceVersion) -> Self {
        Self {
            version,
            step: Step::Draining,
        }
    }

    /// The request that the step waits for.
    pub(super) fn request(&self, settings: &Settings, checkpoints: &mut Checkpoints) -> Option<Output> {
        Some(match &self.step {
            Step::Draining => return None,
            Step::Marking => checkpoints.save(self.checkpoint()),
            Step::SettingAside => Output::SetHistoryAside(self.version),
            Step::Scanning { after } => Output::Scan {
                after: *after,
                limit: settings.page_rows,
            },
            Step::Rewinding { uids, .. } => Output::Rewind(uids.clone()),
        })
    }

    pub(super) fn version(&self) -> ResourceVersion {
        self.version
    }

    /// The restore mark, as it is saved.
    pub(super) fn checkpoint(&self) -> Checkpoint {
        Checkpoint::Restoring(self.version)
    }

    pub(super) fn is_marking(&self) -> bool {
        self.step == Step::Marking
    }

    /// The step after draining. What was in flight may have shown an earlier version: `known`.
    pub(super) fn drained(&self, known: ResourceVersion) -> Option<Self> {
        let marking = Self {
            version: self.version.min(known),
            step: Step::Marking,
        };
        (self.step == Step::Draining).then_some(marking)
    }

    /// The same with an earlier version, from another mark.
    pub(super) fn before(self, known: ResourceVersion) -> Self {
        Self { version: known, ..self }
    }

    /// The step after the mark was saved.
    pub(super) fn marked(self, history: bool) -> Self {
        let step = match history {
            true => Step::SettingAside,
            false => Step::Scanning { after: None },
        };
        Self { step, ..self }
    }

    /// The step after a page of rows was read, of which `page_rows` were requested; `None` after the last.
    pub(super) fn scanned(self, rows: Vec<RowState>, page_rows: u32) -> Option<Self> {
        let full = rows.len() >= page_rows as usize;
        let next = rows.last().filter(|_| full).map(|row| row.arrival);
        let beyond = rows.into_iter().filter(|row| row.cluster_version() > self.version);
        let uids: Vec<Uid> = beyond.map(|row| row.uid).collect();
        if uids.is_empty() {
            return self.go_on(next);
        }
        let step = Step::Rewinding { uids, next };
        Some(Self { step, ..self })
    }

    /// The step after rows were rewound or the history was moved; `None` after the last.
    pub(super) fn rewound(self) -> Option<Self> {
        match &self.step {
            Step::SettingAside => Some(Self {
                step: Step::Scanning { after: None },
                ..self
            }),
            Step::Rewinding { next, .. } => {
                let next = *next;
                self.go_on(next)
            }
            Step::Draining | Step::Marking | Step::Scanning { .. } => Some(self),
        }
    }

    fn go_on(self, next: Option<Arrival>) -> Option<Self> {
        let after = Some(next?);
        Some(Self {
            step: Step::Scanning { after },
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use kindex_model::row_version::RowVersion;
    use kindex_query::Life;

    use super::*;

    fn row(arrival: i64, version: u64) -> RowState {
        RowState {
            arrival: Arrival(arrival),
            uid: Uid::from(format!("u{arrival}").as_str()),
            namespace: String::new(),
            name: "a".to_owned(),
            res_version: RowVersion::Cluster(ResourceVersion(version)),
            hash: None,
            life: Life::Live,
        }
    }

    #[test]
    fn rows_beyond_the_split_are_rewound_page_by_page_until_the_last() {
        let scanning = Restoration::new(ResourceVersion(5))
            .drained(ResourceVersion(9))
            .expect("nothing is in flight")
            .marked(false);
        let rewinding = scanning
            .scanned(vec![row(1, 5), row(2, 6)], 2)
            .expect("a row is beyond");
        let expected = Step::Rewinding {
            uids: vec![Uid::from("u2")],
            next: Some(Arrival(2)),
        };
        assert_eq!(rewinding.step, expected);
        let scanning = rewinding.rewound().expect("the page was full");
        let after = Some(Arrival(2));
        assert_eq!(scanning.step, Step::Scanning { after });
        assert!(
            scanning.scanned(vec![row(3, 5)], 2).is_none(),
            "nothing is beyond on the last page"
        );
    }

    #[test]
    fn a_history_is_put_aside_before_rows_are_rewound() {
        let aside = Restoration::new(ResourceVersion(5)).marked(true);
        assert_eq!(aside.step, Step::SettingAside);
        let scanning = aside.rewound().expect("rows follow");
        assert_eq!(scanning.step, Step::Scanning { after: None });
    }

    #[test]
    fn what_was_in_flight_may_show_an_earlier_version() {
        let draining = Restoration::new(ResourceVersion(5));
        let marking = draining.drained(ResourceVersion(3)).expect("it was draining");
        assert_eq!(marking.version(), ResourceVersion(3));
        assert!(marking.is_marking() && marking.drained(ResourceVersion(2)).is_none());
    }
}
