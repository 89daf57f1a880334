//! One page of the list: what SQL lacks is stored, then what SQL holds is released, then the
//! versions that this made are stored too, so that both sides are equal afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::join_all;
use jiff::Timestamp;
use kindex_decide::repair::{self, ReleaseDecision};
use kindex_decide::row::Row;
use kindex_kube_client::{ClusterError, ObjectName, Page, Target, WriteApi};
use kindex_model::head::{Head, is_deletion_finalizer};
use kindex_model::kind::{Kind, Platform};
use kindex_model::object::{Object, Uid};
use kindex_model::projection::Version;
use kindex_query::{Life, Revive};
use kindex_store::pace::Pace;
use kindex_store::progress::Progress;
use kindex_store::{RowState, RowWrite, StoreError};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::options::Options;
use super::refusals::{Refusal, Refusals, RefusedAlike};
use crate::backfill::Filler;
use crate::retries::with_retries;
use crate::sides::RepairError;

/// Most releases in flight.
const RELEASES_MAX: usize = 8;
/// How often an object that keeps changing is read again.
const CONFLICTS_MAX: u32 = 5;

/// The result of a release of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Released {
    /// The kind.
    pub kind: &'static str,
    /// Objects in the list.
    pub objects: u64,
    /// Those that held a finalizer of ours.
    #[serde(rename = "guarded")]
    pub with_finalizer: u64,
    /// Those that this run released; in a dry run, those that it would release.
    pub released: u64,
    /// Those that another program released in between, such as another run.
    pub elsewhere: u64,
    /// Those that are gone since: they had been deleted.
    pub gone: u64,
    /// Those that SQL lacked, in this version or at all, and holds now; in a dry run, those that it lacks.
    pub stored: u64,
    /// Those that keep their finalizers because the database rejects them.
    pub unstored: u64,
    /// Those that keep their finalizers because they kept changing.
    pub contended: u64,
    /// Those that keep their finalizers because the cluster refuses their release, such as by a webhook.
    pub refused: u64,
    /// Those that keep their finalizers because they were not tried: the cluster had refused the first ones.
    pub untried: u64,
    /// Those that keep their finalizers because others use them, or because Kindex is deleting them.
    pub in_use: u64,
    /// How the cluster refused the first ones, if others are not tried after that.
    #[serde(skip)]
    pub refused_alike: Option<RefusedAlike>,
}

/// What all pages of a kind have in common.
pub(super) struct Releaser<'a> {
    pub(super) kind: &'static Kind,
    pub(super) platform: Platform,
    pub(super) cluster: Arc<dyn WriteApi>,
    /// Writes to SQL; `None` if SQL is not used.
    pub(super) filler: Option<Filler>,
    pub(super) options: &'a Options,
    pub(super) progress: &'a dyn Progress,
    pub(super) pace: Pace,
    pub(super) began: Instant,
    pub(super) refusals: Refusals,
}

impl Releaser<'_> {
    /// Releases the objects of a page that have a finalizer of ours.
    pub(super) async fn page(&mut self, page: Page, released: &mut Released) -> Result<(), RepairError> {
        let listed = page.len() as u64;
        released.objects += listed;
        let with_finalizer: Vec<Object> = page
            .objects
            .into_iter()
            .filter(|object| has_any_finalizer(&self.head(object)))
            .collect();
        released.with_finalizer += with_finalizer.len() as u64;
        let (in_use, free): (Vec<Object>, Vec<Object>) =
            with_finalizer.into_iter().partition(|object| self.is_in_use(object));
        released.in_use += in_use.len() as u64;
        let (free, untried): (Vec<Object>, Vec<Object>) = free.into_iter().partition(|object| self.may_try(object));
        released.untried += untried.len() as u64;
        let stored = self.store(free, released).await?;
        if self.options.dry_run {
            released.released += stored.len() as u64;
            return Ok(());
        }
        let (mut after, mut rest) = (Vec::new(), &stored[..]);
        while let Some((first, others)) = rest.split_first() {
            if !self.may_try(first) {
                released.untried += 1;
                rest = others;
                continue;
            }
            let (some, later) = rest.split_at(rest.len().min(RELEASES_MAX).min(self.refusals.room()));
            rest = later;
            sleep(self.pace.pass(some.len(), self.began.elapsed())).await;
            let outcomes = join_all(some.iter().map(|object| self.release(object))).await;
            for outcome in outcomes {
                after.extend(self.count(outcome?, released));
            }
        }
        self.progress.advance(listed);
        self.fill(after).await
    }

    /// Counts an outcome, and returns the object if it is still present.
    pub(super) fn count(&mut self, outcome: Outcome, released: &mut Released) -> Option<Object> {
        self.refusals.note(outcome.refusal());
        // What follows in another namespace does not undo that some were not tried.
        if let Some(alike) = self.refusals.alike() {
            released.refused_alike = Some(alike);
        }
        match &outcome {
            Outcome::Released(_) => released.released += 1,
            Outcome::Gone => {
                released.released += 1;
                released.gone += 1;
            }
            Outcome::Elsewhere => released.elsewhere += 1,
            Outcome::Unstored => released.unstored += 1,
            Outcome::Contended => released.contended += 1,
            Outcome::Refused(_) => released.refused += 1,
            Outcome::InUse => released.in_use += 1,
        }
        match outcome {
            Outcome::Released(object) => Some(object),
            Outcome::Gone
            | Outcome::Elsewhere
            | Outcome::Unstored
            | Outcome::Contended
            | Outcome::Refused(_)
            | Outcome::InUse => None,
        }
    }

    /// Whether the release of an object is to be tried, after what the cluster refused before.
    pub(super) fn may_try(&self, object: &Object) -> bool {
        self.refusals.may_try(&object.metadata.namespace)
    }

    pub(super) fn head(&self, object: &Object) -> Head {
        Head::of(object, self.kind, &self.platform)
    }

    /// Whether it keeps our finalizers, whatever SQL holds.
    pub(super) fn is_in_use(&self, object: &Object) -> bool {
        repair::release(&self.head(object), None) == ReleaseDecision::Never
    }

    /// Stores these objects, and returns those that SQL holds, or that have changed since, so that no release of the
    /// version at hand succeeds.
    pub(super) async fn store(
        &self,
        objects: Vec<Object>,
        released: &mut Released,
    ) -> Result<Vec<Object>, RepairError> {
        if self.filler.is_none() {
            return Ok(objects);
        }
        let rows = self.rows(&objects).await?;
        let lacking: Vec<Object> = objects
            .iter()
            .filter(|object| self.decide(object, &rows) != ReleaseDecision::Now)
            .cloned()
            .collect();
        released.stored += lacking.len() as u64;
        if self.options.dry_run || lacking.is_empty() {
            return Ok(objects);
        }
        for object in lacking
            .iter()
            .filter(|object| self.decide(object, &rows) == ReleaseDecision::AfterClosing)
        {
            self.write_one(object, Life::Deleted, Revive::Never).await?;
        }
        let live = lacking
            .iter()
            .filter(|object| self.decide(object, &rows) == ReleaseDecision::AfterStoring);
        let (archived, live): (Vec<Object>, Vec<Object>) =
            live.cloned().partition(|object| self.was_archived(object, &rows));
        let changed = self.reopen(&archived).await?;
        self.fill(live).await?;
        let rows = self.rows(&lacking).await?;
        let lacks = |object: &Object| {
            let uid = &object.metadata.uid;
            let lacked = lacking.iter().any(|lacking| lacking.metadata.uid == *uid);
            lacked && !changed.contains(uid) && self.decide(object, &rows) != ReleaseDecision::Now
        };
        let (unstored, stored): (Vec<Object>, Vec<Object>) = objects.into_iter().partition(lacks);
        released.unstored += unstored.len() as u64;
        released.stored -= unstored.len() as u64;
        Ok(stored)
    }

    fn decide(&self, object: &Object, rows: &BTreeMap<Uid, RowState>) -> ReleaseDecision {
        repair::release(&self.head(object), row_of(object, rows).as_ref())
    }

    /// Whether an object stays whose row was archived in this version.
    fn was_archived(&self, object: &Object, rows: &BTreeMap<Uid, RowState>) -> bool {
        let head = self.head(object);
        head.is_staying() && row_of(object, rows).is_some_and(|row| row.is_archived_in(head.version))
    }

    /// Makes rows live that were archived in the versions of these objects. A list may be older than the end of an
    /// object, so each is read again. Returns those that have changed since, and writes nothing for them.
    async fn reopen(&self, archived: &[Object]) -> Result<BTreeSet<Uid>, RepairError> {
        let mut changed = BTreeSet::new();
        for object in archived {
            let listed = &object.metadata;
            let now = self.get(&ObjectName::of(object)).await?.map(|now| now.metadata);
            let is_there =
                now.is_some_and(|now| now.uid == listed.uid && now.resource_version == listed.resource_version);
            match is_there {
                true => self.write_one(object, Life::Live, Revive::From(Life::Archived)).await?,
                false => {
                    changed.insert(listed.uid.clone());
                }
            }
        }
        Ok(changed)
    }

    pub(super) async fn rows(&self, objects: &[Object]) -> Result<BTreeMap<Uid, RowState>, RepairError> {
        let Some(filler) = &self.filler else {
            return Ok(BTreeMap::new());
        };
        let uids: Vec<Uid> = objects.iter().map(|object| object.metadata.uid.clone()).collect();
        let read = || filler.sides.storage.row_states(self.kind, &uids);
        let states = with_retries(self.options.retry_budget, read).await?;
        Ok(states.into_iter().map(|state| (state.uid.clone(), state)).collect())
    }

    pub(super) async fn fill(&self, objects: Vec<Object>) -> Result<(), RepairError> {
        let Some(filler) = self.filler.as_ref().filter(|_| !objects.is_empty()) else {
            return Ok(());
        };
        let page = Page {
            objects,
            ..Page::default()
        };
        filler.fill(page).await?;
        Ok(())
    }

    /// Stores one object. Whether the database rejected it shows when its row is read.
    async fn write_one(&self, object: &Object, life: Life, revive: Revive) -> Result<(), RepairError> {
        let Some(filler) = &self.filler else { return Ok(()) };
        let write = [RowWrite::Store {
            version: Version::project(self.kind, object.clone()),
            life,
            revive,
        }];
        let stored = || filler.sides.storage.write(self.kind, &write, Timestamp::now());
        match with_retries(self.options.retry_budget, stored).await {
            Ok(_) | Err(StoreError::Refused { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Releases one object. If it changed in between, it is read and stored again.
    pub(super) async fn release(&self, object: &Object) -> Result<Outcome, RepairError> {
        let mut object = object.clone();
        let mut maybe_ours = false;
        for _ in 0..CONFLICTS_MAX {
            let (answer, repeated) = self.set_finalizers(&object).await;
            maybe_ours |= repeated;
            match answer {
                Ok(after) if after.metadata.deletion_timestamp.is_some() => return Ok(Outcome::Gone),
                Ok(after) => return Ok(Outcome::Released(after)),
                // Its kind was served when it was listed.
                Err(error) if error.is_absence() => return Ok(Outcome::without(None, maybe_ours)),
                Err(ClusterError::Conflict(_)) => {}
                // A webhook that denies it may let all others pass.
                Err(ClusterError::Refused(why)) => {
                    let name = ObjectName::of(&object);
                    tracing::error!(kind = self.kind.name, object = %name, "Not released: {why}");
                    return Ok(Outcome::Refused(Refusal { name, why }));
                }
                Err(source) => return Err(RepairError::cluster(self.kind, source)),
            }
            let now = self.get(&ObjectName::of(&object)).await?;
            match now.filter(|now| now.metadata.uid == object.metadata.uid) {
                None => return Ok(Outcome::without(None, maybe_ours)),
                Some(now) if !has_any_finalizer(&self.head(&now)) => {
                    return Ok(Outcome::without(Some(now), maybe_ours));
                }
                Some(now) if self.is_in_use(&now) => return Ok(Outcome::InUse),
                Some(now) => {
                    let mut again = Released::default();
                    let Some(stored) = self.store(vec![now], &mut again).await?.pop() else {
                        return Ok(Outcome::Unstored);
                    };
                    object = stored;
                }
            }
        }
        Ok(Outcome::Contended)
    }

    pub(super) async fn get(&self, name: &ObjectName) -> Result<Option<Object>, RepairError> {
        let now = with_retries(self.options.retry_budget, || self.cluster.find(self.kind, name)).await;
        now.map_err(|source| RepairError::cluster(self.kind, source))
    }

    /// The answer, and whether the request was repeated, so that an earlier attempt may have been carried out.
    async fn set_finalizers(&self, object: &Object) -> (Result<Object, ClusterError>, bool) {
        let mut finalizers = object.metadata.finalizers.clone();
        finalizers.retain(|finalizer| !is_ours(finalizer, &self.platform));
        let target = Target::of(object);
        let mut attempts = 0;
        let release = || {
            attempts += 1;
            self.cluster.set_finalizers(self.kind, &target, &finalizers)
        };
        let answer = with_retries(self.options.retry_budget, release).await;
        (answer, attempts > 1)
    }
}

/// The row of an object among these.
fn row_of(object: &Object, rows: &BTreeMap<Uid, RowState>) -> Option<Row> {
    let row = rows.get(&object.metadata.uid)?;
    Some(Row::beside(row, Some(object)))
}

/// Whether an object has a finalizer that a release takes off.
pub(super) fn has_any_finalizer(head: &Head) -> bool {
    head.has_finalizer || head.has_deletion_finalizer
}

/// Whether a finalizer is one of those that a release takes off.
pub(super) fn is_ours(finalizer: &str, platform: &Platform) -> bool {
    finalizer == platform.finalizer || is_deletion_finalizer(finalizer, platform)
}

/// The result of one object.
pub(super) enum Outcome {
    /// It is present, without our finalizers.
    Released(Object),
    /// It had been deleted, and our finalizers no longer hold it.
    Gone,
    /// Another program released it, which also stores the new version, or it left.
    Elsewhere,
    /// It changed, and the database rejects the new version.
    Unstored,
    /// It kept changing.
    Contended,
    /// The cluster does not let it be written.
    Refused(Refusal),
    /// A reference was placed on it.
    InUse,
}

impl Outcome {
    fn refusal(&self) -> Option<&Refusal> {
        if let Self::Refused(refusal) = self {
            Some(refusal)
        } else {
            None
        }
    }

    /// The result of an object that already lacks our finalizers: released by us if an answer was lost, by another
    /// program otherwise. Only the releasing program stores the new version: two that did would take each other for an
    /// ingester.
    fn without(now: Option<Object>, maybe_ours: bool) -> Self {
        match (now, maybe_ours) {
            (_, false) => Self::Elsewhere,
            (Some(now), true) => Self::Released(now),
            (None, true) => Self::Gone,
        }
    }
}
