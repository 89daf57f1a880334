//! Writing one page of the list: its rows are read, what differs is projected and written
//! in one batch, and a batch that the database refuses is halved until the object that it
//! refuses is alone.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use kindex_decide::repair::{self, BackfillDecision};
use kindex_decide::row::Row;
use kindex_kube_client::{ObjectName, Page};
use kindex_model::head::Head;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, Uid};
use kindex_model::projection::Version;
use kindex_query::{Life, Revive};
use kindex_store::{IngesterStorage, RowState, RowWrite, StoreError, Written};
use serde::Serialize;

use crate::retries::{RetryBudget, with_retries};
use crate::sides::{RepairError, Sides};

/// Most objects that are read from the cluster at a time.
const QUESTIONS_MAX: usize = 16;

/// The result of a backfill of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Filled {
    /// The kind.
    pub kind: &'static str,
    /// Objects in the list.
    pub objects: u64,
    /// Rows that were missing.
    pub inserted: u64,
    /// Rows that differed.
    pub updated: u64,
    /// Rows that were up to date.
    pub unchanged: u64,
    /// Rows that held a newer version than the list.
    pub newer: u64,
    /// Objects that are being deleted, or whose rows are not live: left to the ingester.
    pub left: u64,
    /// Objects that the database refuses.
    pub quarantined: u64,
    /// Rows of objects that left while they were being stored.
    pub closed: u64,
    /// Items of the list that are not valid objects.
    pub unreadable: u64,
}

impl Filled {
    /// Adds the result of one more page.
    pub(super) fn add(&mut self, page: &Self) {
        self.objects += page.objects;
        self.inserted += page.inserted;
        self.updated += page.updated;
        self.unchanged += page.unchanged;
        self.newer += page.newer;
        self.left += page.left;
        self.quarantined += page.quarantined;
        self.closed += page.closed;
        self.unreadable += page.unreadable;
    }

    /// Resets everything but what was written, because the list is read again.
    pub(super) fn begin_anew(&mut self) {
        *self = Self {
            kind: self.kind,
            inserted: self.inserted,
            updated: self.updated,
            closed: self.closed,
            ..Self::default()
        };
    }

    fn count(&mut self, written: Written) {
        match written {
            Written::Inserted | Written::Replacing => self.inserted += 1,
            Written::Updated => self.updated += 1,
            Written::Unchanged => self.unchanged += 1,
            Written::Superseded => self.newer += 1,
        }
    }
}

/// What all pages of a kind have in common.
pub(crate) struct Filler {
    pub(crate) sides: Sides<dyn IngesterStorage>,
    pub(crate) kind: &'static Kind,
    pub(crate) retry_budget: RetryBudget,
    /// Whether an ingester may run: a row that it closes before we insert it would stay live forever.
    pub(crate) may_have_company: bool,
    /// Objects that are already in quarantine.
    pub(crate) refused: BTreeSet<Uid>,
}

impl Filler {
    pub(crate) async fn fill(&self, page: Page) -> Result<Filled, RepairError> {
        let mut filled = Filled {
            kind: self.kind.name,
            objects: page.len() as u64,
            unreadable: page.unreadable.len() as u64,
            ..Filled::default()
        };
        for item in &page.unreadable {
            tracing::error!(kind = self.kind.name, object = %item.name, "Not stored: {}", item.reason);
        }
        let uids: Vec<Uid> = page.objects.iter().map(|object| object.metadata.uid.clone()).collect();
        let states = with_retries(self.retry_budget, || self.sides.storage.row_states(self.kind, &uids)).await?;
        let rows: BTreeMap<Uid, RowState> = states.into_iter().map(|state| (state.uid.clone(), state)).collect();
        let mut differing = Vec::new();
        for object in page.objects {
            let head = Head::of(&object, self.kind, &self.sides.platform);
            let row = rows.get(&object.metadata.uid);
            let row = row.map(|row| Row::beside(row, Some(&object)));
            match repair::fill(&head, row.as_ref()) {
                BackfillDecision::Store => differing.push(object),
                BackfillDecision::Unchanged => filled.unchanged += 1,
                BackfillDecision::Newer => filled.newer += 1,
                BackfillDecision::Leave => filled.left += 1,
            }
        }
        if !differing.is_empty() {
            self.store(differing, &mut filled).await?;
        }
        Ok(filled)
    }

    async fn store(&self, objects: Vec<Object>, filled: &mut Filled) -> Result<(), RepairError> {
        let kind = self.kind;
        let projected = tokio::task::spawn_blocking(move || project(kind, objects)).await;
        let (versions, refused) = projected.expect("panics are caught inside");
        for (object, reason) in refused {
            self.quarantine(&object, &reason, filled).await?;
        }
        let writes: Vec<RowWrite> = versions.into_iter().map(live).collect();
        let mut inserted = Vec::new();
        let mut batches = vec![&writes[..]];
        while let Some(batch) = batches.pop() {
            let write = || self.sides.storage.write(kind, batch, Timestamp::now());
            match with_retries(self.retry_budget, write).await {
                Ok(written) => {
                    for (write, written) in batch.iter().zip(written) {
                        filled.count(written);
                        if matches!(written, Written::Inserted | Written::Replacing) {
                            let name = ObjectName::of(object_of(write));
                            inserted.push((write.uid().clone(), name));
                        }
                        self.release(object_of(write)).await?;
                    }
                }
                Err(StoreError::Refused { source, .. }) if batch.len() == 1 => {
                    let object = object_of(&batch[0]);
                    self.quarantine(object, &source.to_string(), filled).await?;
                }
                Err(StoreError::Refused { .. }) => {
                    let (first, second) = batch.split_at(batch.len() / 2);
                    batches.extend([second, first]);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if self.may_have_company {
            filled.closed += self.close_departed(inserted).await?;
        }
        Ok(())
    }

    async fn quarantine(&self, object: &Object, reason: &str, filled: &mut Filled) -> Result<(), RepairError> {
        let name = ObjectName::of(object);
        tracing::error!(kind = self.kind.name, object = %name, "quarantined: {reason}");
        let record = || {
            self.sides
                .storage
                .quarantine(self.kind, object, reason, Timestamp::now())
        };
        with_retries(self.retry_budget, record).await?;
        filled.quarantined += 1;
        Ok(())
    }

    async fn release(&self, stored: &Object) -> Result<(), RepairError> {
        let (uid, version) = (&stored.metadata.uid, stored.metadata.resource_version);
        if self.refused.contains(uid) {
            let release = || self.sides.storage.release_quarantine(self.kind, uid, version);
            with_retries(self.retry_budget, release).await?;
        }
        Ok(())
    }

    /// Closes the rows of objects that left between the list and the write: their delete events found no row.
    async fn close_departed(&self, inserted: Vec<(Uid, ObjectName)>) -> Result<u64, RepairError> {
        let departed: Vec<Option<RowWrite>> = stream::iter(inserted)
            .map(|(uid, name)| self.closing(uid, name))
            .buffered(QUESTIONS_MAX)
            .try_collect()
            .await?;
        let departed: Vec<RowWrite> = departed.into_iter().flatten().collect();
        if !departed.is_empty() {
            let close = || self.sides.storage.write(self.kind, &departed, Timestamp::now());
            with_retries(self.retry_budget, close).await?;
        }
        Ok(departed.len() as u64)
    }

    async fn closing(&self, uid: Uid, name: ObjectName) -> Result<Option<RowWrite>, RepairError> {
        let now = with_retries(self.retry_budget, || self.sides.cluster.get(self.kind, &name)).await;
        let now = now.map_err(|source| RepairError::cluster(self.kind, source))?;
        let there = now.is_some_and(|now| now.metadata.uid == uid);
        Ok((!there).then_some(RowWrite::SoftDelete { uid }))
    }
}

fn live(version: Arc<Version>) -> RowWrite {
    RowWrite::Store {
        version,
        life: Life::Live,
        revive: Revive::Never,
    }
}

fn object_of(write: &RowWrite) -> &Object {
    match write {
        RowWrite::Store { version, .. } => &version.object,
        RowWrite::Record { .. } | RowWrite::SoftDelete { .. } => unreachable!("a page is stored"),
    }
}

/// Projects a page. An object whose projection panics counts as rejected, like one that the database rejects.
fn project(kind: &Kind, objects: Vec<Object>) -> (Vec<Arc<Version>>, Vec<(Object, String)>) {
    let mut versions = Vec::with_capacity(objects.len());
    let mut refused = Vec::new();
    for object in objects {
        match catch_unwind(AssertUnwindSafe(|| Version::project(kind, object.clone()))) {
            Ok(version) => versions.push(version),
            Err(_) => refused.push((object, "its projection panicked; the log has the message".to_owned())),
        }
    }
    (versions, refused)
}
