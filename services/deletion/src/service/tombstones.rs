//! Walks the tombstones of archived objects, again and again, beside the loop of one cluster: what is deleted there
//! never holds up what is deleted in the cluster. Of all tombstones one page of uids is in memory at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kindex_kube_client::{ClusterCause, ClusterError};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::cluster::Cluster;
use crate::cluster::cycle::CycleAnswer;
use crate::cluster::follower::Follower;
use crate::cluster::outcome::Unanswered;
use crate::cluster::tombstone::TombstoneProgress;
use crate::decide::{Seen, Step, Wait};
use crate::kinds::name_of;
use crate::metrics::Metrics;
use crate::notice::{cycle_notice, notice, unanswered};
use crate::object::{KindName, Object};

use super::archived_cleanups::ArchivedCleanups;
use super::refused;
use super::unread_kinds::UnreadKinds;
use super::walked::{Awaited, WaitCounts, Walked};

/// Between two walks at least.
const REST: Duration = Duration::from_secs(1);
/// A walk rests for so many times as long as it took: most of the time, the database is there for others.
const RESTS: u32 = 4;
/// Steps of one tombstone in succession.
const STEPS_MAX: usize = 8;

/// By kind, what waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocked(Arc<Mutex<BTreeMap<String, WaitCounts>>>);

impl Blocked {
    /// What waits of a kind, as of the last walk.
    pub(super) fn of(&self, kind: &str) -> WaitCounts {
        let blocked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        blocked.get(kind).copied().unwrap_or_default()
    }

    fn set(&self, blocked: BTreeMap<String, WaitCounts>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = blocked;
    }
}

/// The uids of objects that are on cycles, or may be, as far as that was found out since a walk began. Those that are
/// archived may have been reported before.
#[derive(Clone, Debug, Default)]
pub(super) struct Cycles(Arc<Mutex<BTreeSet<String>>>);

impl Cycles {
    /// These are to be looked at in the next walk.
    pub(super) fn add(&self, uids: impl IntoIterator<Item = String>) {
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        objects.extend(uids);
    }

    fn take(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A walk over the archive of one cluster.
pub(super) struct Walk {
    cluster: Cluster,
    metrics: Metrics,
    blocked: Blocked,
    cycles: Cycles,
    /// The uids of objects that were found before this walk to be on cycles, or that may be.
    on_cycles: BTreeSet<String>,
    /// Those of which this walk could not find out whether they are on one.
    unread: BTreeSet<String>,
    follower: Follower,
    walked: Walked,
    unread_kinds: UnreadKinds,
    cleanups: ArchivedCleanups,
    /// Services that have not answered in this walk. Each of them would be waited for once more by every tombstone.
    silent: BTreeSet<String>,
}

impl Walk {
    /// One that has not begun.
    pub(super) fn new(
        cluster: Cluster,
        metrics: Metrics,
        blocked_after: Duration,
        blocked: Blocked,
        cycles: Cycles,
        follower: Follower,
    ) -> Self {
        Self {
            cleanups: ArchivedCleanups::new(cluster.clone(), metrics.clone()),
            cluster,
            metrics,
            blocked,
            cycles,
            on_cycles: BTreeSet::new(),
            unread: BTreeSet::new(),
            follower,
            walked: Walked::new(blocked_after),
            unread_kinds: UnreadKinds::default(),
            silent: BTreeSet::new(),
        }
    }

    /// Walks until stopped.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let (began, mut is_whole) = (Instant::now(), true);
            self.on_cycles.extend(self.cycles.take());
            for kind in self.cluster.clone().kinds().all() {
                let name = name_of(kind);
                match self.walk(&name, &stop).await {
                    Ok(()) => self.unread_kinds.read(&name.kind),
                    Err(error) => {
                        self.failed(&name, &error);
                        is_whole = false;
                    }
                }
            }
            self.silent.clear();
            self.end_cycles(is_whole);
            self.blocked.set(self.walked.end(Instant::now()));
            if is_whole {
                self.cleanups.end_walk();
            }
            let rest = REST.max(began.elapsed() * RESTS);
            tokio::select! {
                () = stop.cancelled() => break,
                () = sleep(rest) => {}
            }
        }
        self.cleanups.end().await;
    }

    /// A kind cannot be read in this walk.
    fn failed(&mut self, kind: &KindName, error: &ClusterError) {
        self.metrics.failed(&kind.kind);
        self.walked.unread_kind(&kind.kind);
        let is_away = matches!(
            error,
            ClusterError::Retryable {
                cause: ClusterCause::ArchiveAway,
                ..
            }
        );
        // That the database is away, the store says once for all.
        if !is_away && self.unread_kinds.failed(&kind.kind, error.to_string()) {
            tracing::warn!(%kind, %error, "Objects that are deleted in the archive cannot be read");
        }
    }

    /// Those that are not looked at again in the next walk are forgotten: all that this one came to, if it is whole.
    fn end_cycles(&mut self, is_whole: bool) {
        let unread = std::mem::take(&mut self.unread);
        self.on_cycles.retain(|uid| !is_whole || unread.contains(uid));
    }

    /// All of a kind, page by page.
    async fn walk(&mut self, kind: &KindName, stop: &CancellationToken) -> Result<(), ClusterError> {
        let mut after = String::new();
        self.cleanups.begin_walk(kind);
        loop {
            self.cleanups.take_ended();
            let uids = self.cluster.tombstones(kind, &after).await?;
            let Some(last) = uids.last() else {
                return Ok(());
            };
            last.clone_into(&mut after);
            for uid in &uids {
                self.cleanups.found(uid);
                self.visit(kind, uid, stop).await;
            }
            if stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    /// As many steps as there are now. What fails is tried again in the next walk, and keeps no other from going.
    async fn visit(&mut self, kind: &KindName, uid: &str, stop: &CancellationToken) {
        let mut was_refused = false;
        for _ in 0..STEPS_MAX {
            if stop.is_cancelled() {
                return;
            }
            let states = self.cleanups.states();
            let progress =
                self.cluster
                    .advance_tombstone(kind, uid, &self.silent, states, &self.follower, Timestamp::now());
            match progress.await {
                Ok(None) => return,
                Ok(Some(mut progress)) => {
                    let moved = progress.moved;
                    // Each sweep of a visit may be refused the same, which counts once.
                    if was_refused {
                        progress.refused = None;
                    }
                    was_refused |= progress.refused.is_some();
                    self.note(uid, progress).await;
                    self.walked.refused(uid, was_refused);
                    if !moved {
                        return;
                    }
                }
                Err(error) => {
                    self.metrics.failed(&kind.kind);
                    tracing::warn!(%kind, uid, %error, "The deletion of an archived object is tried again");
                    self.walked.unread(uid);
                    if self.on_cycles.contains(uid) {
                        self.unread.insert(uid.to_owned());
                    }
                    return;
                }
            }
        }
    }

    /// Reports what has waited for too long, once for each set of others that it waits for, and for each service.
    async fn note(&mut self, uid: &str, progress: TombstoneProgress) {
        if let Some(refused) = &progress.refused {
            refused::note(&self.metrics, &progress.object, refused);
        }
        let TombstoneProgress { object, step, .. } = progress;
        let (kind, now) = (&*object.key.kind.kind, Instant::now());
        if let Some(Unanswered { place, why, is_silent }) = progress.unanswered {
            self.metrics.failed(kind);
            tracing::warn!(object = %object.key, why, "Another service releases nothing, and is asked again");
            if self.walked.waits(uid, kind, Awaited::Service(place.clone()), now) {
                self.cluster.report(&object, &unanswered(&place, &why)).await;
            }
            if is_silent {
                self.silent.insert(place);
            }
        } else if step == Step::CleanUp {
            // Until it has said something, the tombstone waits for what it waited for before.
            self.walked.unread(uid);
            self.cleanups.call(&object.key.kind, uid);
        } else if let Step::Wait(wait) = &step {
            let awaited = match wait {
                Wait::Cleanup(left) => Awaited::Cleanup(left.clone()),
                _ => Awaited::Holders(step.clone()),
            };
            let waits_for_holders = matches!(awaited, Awaited::Holders(_));
            if self.walked.waits(uid, kind, awaited, now) {
                self.report(uid, &object, &step, waits_for_holders).await;
            } else if self.on_cycles.contains(uid) && self.walked.may_turn_to_cycle(uid) {
                self.report_cycle(uid, &object).await;
            }
        } else {
            self.walked.moves(uid);
            self.metrics.carried_out(kind, &step);
        }
    }

    async fn report(&mut self, uid: &str, object: &Object, step: &Step, waits_for_holders: bool) {
        let is_said = waits_for_holders && self.report_cycle(uid, object).await;
        if let Some(notice) = notice(step, None).filter(|_| !is_said) {
            self.cluster.report(object, &notice).await;
        }
    }

    /// Reports the cycle that an object is on. Whether nothing else is to be said: without an answer, people are shown
    /// the holders.
    async fn report_cycle(&mut self, uid: &str, object: &Object) -> bool {
        let answer = self.cluster.cycle_of(object, &self.follower).await;
        self.searched(uid, &answer);
        match answer {
            CycleAnswer::Path(path) => {
                let notice = cycle_notice(&Seen::keys(&path));
                self.cluster.report(object, &notice).await;
                self.follower.cycle(path).await;
                true
            }
            CycleAnswer::Absent | CycleAnswer::Unread => false,
            CycleAnswer::Stopped => true,
        }
    }

    /// A tombstone is looked at again in the next walk if nobody has answered in this one.
    fn searched(&mut self, uid: &str, answer: &CycleAnswer) {
        match answer {
            CycleAnswer::Path(_) => {
                self.walked.reported_as_cycle(uid);
                self.on_cycles.remove(uid);
            }
            CycleAnswer::Absent => _ = self.on_cycles.remove(uid),
            CycleAnswer::Unread => {
                self.on_cycles.insert(uid.to_owned());
                self.unread.insert(uid.to_owned());
            }
            CycleAnswer::Stopped => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use kindex_kube_client::peer::Address;
    use kindex_model::kind::Registry;

    use super::*;
    use crate::answers::RefusedHolders;
    use crate::fixture::{deleting, key};
    use crate::kinds::Kinds;

    /// A tombstone whose last step waits for the service at this place.
    fn waits_for(place: &str, is_silent: bool) -> TombstoneProgress {
        TombstoneProgress {
            object: deleting(key("Cluster", "c"), "u"),
            step: Step::Free { confirm: Vec::new() },
            unanswered: Some(Unanswered {
                place: place.to_owned(),
                why: String::new(),
                is_silent,
            }),
            refused: None,
            moved: false,
        }
    }

    async fn walk() -> Walk {
        let nowhere = Address {
            name: "own".to_owned(),
            url: "http://127.0.0.1:1".to_owned(),
            ca_file: None,
            token_file: None,
        };
        let client = nowhere.client().await.expect("a client");
        let cluster = Cluster::new(client, Kinds::of(&Registry::EMPTY));
        let (follower, _) = Follower::channel();
        Walk::new(
            cluster,
            Metrics::default(),
            Duration::MAX,
            Blocked::default(),
            Cycles::default(),
            follower,
        )
    }

    /// As if an object were never looked at again because the archive was away when it was its turn.
    #[tokio::test]
    async fn whoever_may_be_on_a_cycle_is_looked_at_until_somebody_has_answered() {
        let mut walk = walk().await;
        let left = |walk: &Walk| walk.on_cycles.iter().cloned().collect::<Vec<_>>();
        walk.on_cycles = ["absent", "live", "path", "unread"].map(ToOwned::to_owned).into();
        walk.searched("absent", &CycleAnswer::Absent);
        walk.searched("path", &CycleAnswer::Path(Vec::new()));
        walk.searched("unread", &CycleAnswer::Unread);
        walk.searched("new", &CycleAnswer::Unread);
        walk.searched("live", &CycleAnswer::Stopped);
        walk.end_cycles(false);
        assert_eq!(left(&walk), ["live", "new", "unread"], "not all was read");
        walk.searched("unread", &CycleAnswer::Unread);
        walk.end_cycles(true);
        assert_eq!(left(&walk), ["unread"]);
        walk.end_cycles(true);
        assert!(left(&walk).is_empty());
    }

    /// As if only what fails as a whole were a failure: an operator would not learn of a webhook before the object
    /// counts as stuck.
    #[tokio::test]
    async fn a_tombstone_that_waits_for_a_holder_that_is_denied_counts_a_failure_each_time() {
        let mut walk = walk().await;
        for failures in 1..=2 {
            let holder = "cluster.x.example.com default/h".to_owned();
            let denied = TombstoneProgress {
                step: Step::Wait(Wait::Archived(vec![holder.clone()])),
                unanswered: None,
                refused: Some(RefusedHolders {
                    first: holder,
                    why: "admission webhook \"a.b.c\" denied the request: no".to_owned(),
                    count: 1,
                    leaves_others: false,
                }),
                ..waits_for("nobody", false)
            };
            walk.note("u", denied).await;
            assert_eq!(walk.metrics.failures("Cluster"), failures);
        }
    }

    #[tokio::test]
    async fn only_a_service_that_is_silent_is_not_asked_again_in_a_walk() {
        let mut walk = walk().await;
        walk.note("u", waits_for("the service that refuses", false)).await;
        assert!(walk.silent.is_empty(), "it may release what others hold");
        walk.note("u", waits_for("the service that is away", true)).await;
        assert_eq!(walk.silent, BTreeSet::from(["the service that is away".to_owned()]));
    }
}
