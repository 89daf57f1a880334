//! The status of the ingester, for readiness checks and for people.

use jiff::Timestamp;
use std::collections::BTreeMap;

use kindex_model::object::{ResourceVersion, Uid};
use kindex_store::Stalled;

use super::settings::OrphanLimits;

/// Rows that were not closed because there are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldOrphans {
    /// Live rows whose objects are not in the list.
    pub rows: usize,
    /// All live rows.
    pub live: usize,
    /// The limits that they exceed.
    pub limits: OrphanLimits,
}

/// One kind's ingester.
#[derive(Clone, Debug)]
pub struct KindStatus {
    /// The kind.
    pub kind: &'static str,
    /// Whether SQL has been compared with the cluster, or the stream resumed, since the start.
    pub synced: bool,
    /// Whether this replica works on the kind. If not, the other fields have no meaning.
    pub active: bool,
    /// Whether the cluster does not serve the kind because its CRD is not installed.
    pub unserved: bool,
    /// What the intake does: `watching`, `listing`, …
    pub phase: &'static str,
    /// Objects that are not settled.
    pub pending: usize,
    /// Those among them that wait: for `deletionDelay`, for what they own, or for another attempt.
    pub waiting: usize,
    /// Those among them that finalizers of others hold, with rows that are up to date.
    pub held: usize,
    /// Those among them that wait for the CRD of the kind, which the cluster does not serve.
    pub without_crd: usize,
    /// The newest version received.
    pub position: ResourceVersion,
    /// The version up to which everything is settled.
    pub settled: ResourceVersion,
    /// When the oldest pending object arrived, those left out that are within their `deletionDelay`, or wait for what
    /// they own or for the CRD.
    pub oldest_arrival: Option<Timestamp>,
    /// Objects that the database refuses, with the reason.
    pub quarantined: BTreeMap<Uid, String>,
    /// Those among them of which it rejects even the record.
    pub unrecorded: usize,
    /// Rows that the last list did not close because there were too many.
    pub held_orphans: Option<HeldOrphans>,
    /// The last error, also if it is over.
    pub last_error: Option<String>,
    /// Whether the last attempt to reach the cluster or the database failed.
    pub failing: bool,
}

impl KindStatus {
    /// A kind whose controller has not begun.
    pub fn starting(kind: &'static str) -> Self {
        Self {
            kind,
            synced: false,
            active: true,
            unserved: false,
            phase: "starting",
            pending: 0,
            waiting: 0,
            held: 0,
            without_crd: 0,
            position: ResourceVersion(0),
            settled: ResourceVersion(0),
            oldest_arrival: None,
            quarantined: BTreeMap::new(),
            unrecorded: 0,
            held_orphans: None,
            last_error: None,
            failing: false,
        }
    }

    /// A kind that another replica works on.
    pub fn elsewhere(kind: &'static str) -> Self {
        Self {
            active: false,
            phase: "with another replica",
            ..Self::starting(kind)
        }
    }

    /// Why the kind is not ready; `None` where it is, and where another replica answers for it.
    pub fn not_ready(&self) -> Option<String> {
        if !self.active {
            return None;
        }
        let trouble = self.last_error.as_deref().unwrap_or("no error yet");
        if self.failing {
            return Some(format!("{}: {}: {trouble}", self.kind, self.phase));
        }
        if !self.synced {
            return Some(format!("{}: {}, not yet synced", self.kind, self.phase));
        }
        let HeldOrphans { rows, live, limits } = self.held_orphans?;
        let OrphanLimits { rows_max, percent_max } = limits;
        Some(format!(
            "{kind}: {rows} of {live} live rows have no object in the cluster, more than maxOrphans ({rows_max}) and \
             maxOrphanPercent ({percent_max} %) allow: none is closed. Check that this is the right cluster and that \
             Kindex may list all of it. If the objects are really gone, start once with --allow-orphans {kind}={rows}",
            kind = self.kind
        ))
    }

    /// Whether every event received so far is stored, and only others are waited for. Also true for a kind that the
    /// cluster does not serve.
    pub fn is_caught_up(&self) -> bool {
        !self.active || (self.synced || self.unserved) && self.pending == self.held + self.without_crd
    }
}

/// The whole ingester.
#[derive(Clone, Debug)]
pub struct IngesterStatus {
    /// Why the database is not ready, where it is not.
    pub database: Option<String>,
    /// The call that the database has not answered for too long, where there is one.
    pub stalled: Option<Stalled>,
    /// The kinds, in the order of the registry.
    pub kinds: Vec<KindStatus>,
}

impl IngesterStatus {
    /// Every reason why the ingester is not ready; empty where it is.
    pub fn not_ready(&self) -> Vec<String> {
        if let Some(reason) = &self.database {
            return vec![format!("database: {reason}")];
        }
        let stalled = self.stalled.as_ref().map(Stalled::to_string);
        let kinds = self.kinds.iter().filter_map(KindStatus::not_ready);
        stalled.into_iter().chain(kinds).collect()
    }

    /// Whether all kinds have caught up and no row is held open.
    pub fn is_caught_up(&self) -> bool {
        self.database.is_none() && self.kinds.iter().all(KindStatus::is_caught_up)
    }
}
