//! The simulated database in the roles that an ingester needs, and how a call may fail.
//! Where there is a real store beside the model, both carry out every
//! call, and whatever differs is kept for the checks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::checkpoint::Checkpoint;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_query::Stored;
use kindex_store::{
    Arrival, Cause, CheckpointOutcome, Checkpoints, MetadataStorage, Owners, Prepare, Quarantine, QuarantineRecord,
    Rewind, RowState, RowWrite, Rows, RowsOfName, StoreError, Written,
};

use super::database::SimDatabase;
use super::sqlite::RealStore;

/// How the next call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFailure {
    /// With this cause, before it is carried out.
    Before(Cause),
    /// With this cause, after it was carried out.
    After(Cause),
}

/// A simulated database whose calls can fail.
#[derive(Default)]
pub struct SimStorage {
    model: Mutex<SimDatabase>,
    failing: Mutex<Option<CallFailure>>,
    down: AtomicBool,
    real: Option<Arc<RealStore>>,
    difference: Mutex<Option<String>>,
}

impl SimStorage {
    /// With a real store beside the model, or without.
    pub fn new(real: Option<Arc<RealStore>>) -> Self {
        Self {
            real,
            ..Self::default()
        }
    }

    /// What the database holds.
    pub fn database(&self) -> MutexGuard<'_, SimDatabase> {
        locked(&self.model)
    }

    /// Sets how the next call fails.
    pub fn set_failure(&self, failing: Option<CallFailure>) {
        *locked(&self.failing) = failing;
    }

    pub(crate) fn is_in_trouble(&self) -> bool {
        locked(&self.failing).is_some()
    }

    /// Makes every call fail from now on, or none.
    pub fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::Relaxed);
    }

    /// The first difference between the real store and the model.
    pub fn take_difference(&self) -> Option<String> {
        locked(&self.difference).take()
    }

    /// Begins a call. Returns the error with which it fails after it was carried out.
    fn begin(&self, kind: &str) -> Result<Option<StoreError>, StoreError> {
        if self.down.load(Ordering::Relaxed) {
            return Err(failure(kind, Cause::Connection));
        }
        match locked(&self.failing).take() {
            None => Ok(None),
            Some(CallFailure::Before(cause)) => Err(failure(kind, cause)),
            Some(CallFailure::After(cause)) => Ok(Some(failure(kind, cause))),
        }
    }

    fn compare<T: std::fmt::Debug + PartialEq>(&self, what: &str, found: &T, expected: &T) {
        if found != expected {
            self.differ(format!(
                "{what}: the real store returns {found:?} instead of {expected:?}"
            ));
        }
    }

    fn differ(&self, difference: String) {
        locked(&self.difference).get_or_insert(difference);
    }

    async fn compare_rows(&self) {
        if let Some(real) = &self.real {
            // A copy, because nothing may be locked across a call.
            let model = self.database().clone();
            if let Some(difference) = real.difference(&model).await {
                self.differ(format!("SQL differs from the model\n{difference}"));
            }
        }
    }

    /// A subscriber of events knows what exists.
    async fn compare_events(&self, kind: &Kind) {
        if let Some(real) = &self.real {
            let model = self.database().clone();
            if let Some(difference) = real.misunderstanding(kind, &model).await {
                self.differ(difference);
            }
        }
    }

    /// Compares the histories of these objects, byte for byte and in order.
    async fn compare_history(&self, kind: &Kind, uids: &[Uid]) {
        let (Some(real), true) = (&self.real, kind.history) else {
            return;
        };
        for uid in uids {
            let found = real.store.history(kind, uid, None, u32::MAX).await;
            let found = found.expect("a history can be read");
            let found: Vec<&str> = found.iter().map(|past| past.object.text()).collect();
            let model = self.database();
            let expected: Vec<&str> = model
                .history
                .iter()
                .flat_map(|history| history.versions(uid))
                .map(Object::text)
                .collect();
            self.compare("history", &found, &expected);
        }
    }

    async fn change<R: Future<Output = Result<(), StoreError>>>(
        &self,
        kind: &Kind,
        real: impl FnOnce(Arc<dyn MetadataStorage>) -> R,
        model: impl FnOnce(&mut SimDatabase),
    ) -> Result<(), StoreError> {
        let failure = self.begin(kind.name)?;
        if let Some(store) = &self.real {
            real(store.store.clone()).await?;
        }
        model(&mut self.database());
        self.compare_rows().await;
        failure.map_or(Ok(()), Err)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failure(kind: &str, cause: Cause) -> StoreError {
    StoreError::Retryable {
        kind: kind.to_owned(),
        cause,
        source: sqlx::Error::PoolTimedOut,
    }
}

fn refusal(kind: &Kind) -> StoreError {
    StoreError::Refused {
        kind: kind.name.to_owned(),
        source: sqlx::Error::Protocol("simulated refusal".to_owned()),
    }
}

#[async_trait]
impl Prepare for SimStorage {
    async fn prepare(&self) -> Result<(), StoreError> {
        self.begin("").map(drop)
    }
}

#[async_trait]
impl Rows for SimStorage {
    async fn row_states(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<RowState>, StoreError> {
        let failure = self.begin(kind.name)?;
        let mut states = self.database().row_states(uids);
        if let Some(real) = &self.real {
            let mut found = real.store.row_states(kind, uids).await?;
            found.sort_by(|a, b| a.uid.cmp(&b.uid));
            states.sort_by(|a, b| a.uid.cmp(&b.uid));
            self.compare("row states", &found, &states);
            states = found;
        }
        failure.map_or(Ok(states), Err)
    }

    async fn scan(&self, kind: &Kind, after: Option<Arrival>, limit: u32) -> Result<Vec<RowState>, StoreError> {
        let failure = self.begin(kind.name)?;
        let mut states = self.database().scan(after, limit as usize);
        if let Some(real) = &self.real {
            let found = real.store.scan(kind, after, limit).await?;
            self.compare("scan", &found, &states);
            states = found;
        }
        failure.map_or(Ok(states), Err)
    }

    async fn write(&self, kind: &Kind, batch: &[RowWrite], now: Timestamp) -> Result<Vec<Written>, StoreError> {
        let failure = self.begin(kind.name)?;
        let expected = self.database().write(batch, now);
        let answer = match &self.real {
            None => expected.map_err(|_| refusal(kind)),
            Some(real) => {
                let found = real.store.write(kind, batch, now).await;
                match (&found, &expected) {
                    (Ok(found), Ok(expected)) => self.compare("written", found, expected),
                    (Err(StoreError::Refused { .. }), Err(_)) => {}
                    (found, expected) => {
                        self.differ(format!("the real store returns {found:?} instead of {expected:?}"));
                    }
                }
                self.compare_rows().await;
                self.compare_events(kind).await;
                let uids: Vec<Uid> = batch.iter().map(|write| write.uid().clone()).collect();
                self.compare_history(kind, &uids).await;
                found
            }
        };
        match failure {
            Some(failure) => Err(failure),
            None => answer,
        }
    }
}

#[async_trait]
impl Rewind for SimStorage {
    async fn rewind(&self, kind: &Kind, uids: &[Uid], now: Timestamp) -> Result<(), StoreError> {
        let rewind = |store: Arc<dyn MetadataStorage>| async move { store.rewind(kind, uids, now).await };
        let model = |model: &mut SimDatabase| uids.iter().for_each(|uid| model.rewind(uid, now));
        self.change(kind, rewind, model).await?;
        self.compare_history(kind, uids).await;
        Ok(())
    }

    async fn branch_off_beyond(&self, kind: &Kind, beyond: ResourceVersion, now: Timestamp) -> Result<(), StoreError> {
        let branch_off_beyond =
            |store: Arc<dyn MetadataStorage>| async move { store.branch_off_beyond(kind, beyond, now).await };
        let model = |model: &mut SimDatabase| {
            model
                .history
                .iter_mut()
                .for_each(|history| history.branch_off_beyond(beyond, now));
        };
        self.change(kind, branch_off_beyond, model).await
    }
}

#[async_trait]
impl Checkpoints for SimStorage {
    async fn checkpoint(&self, kind: &Kind) -> Result<Option<Checkpoint>, StoreError> {
        let failure = self.begin(kind.name)?;
        let expected = self.database().checkpoint;
        if let Some(real) = &self.real {
            self.compare("checkpoint", &real.store.checkpoint(kind).await?, &expected);
        }
        failure.map_or(Ok(expected), Err)
    }

    async fn save_checkpoint(
        &self,
        kind: &Kind,
        checkpoint: Checkpoint,
        known_mark: Option<ResourceVersion>,
        now: Timestamp,
    ) -> Result<CheckpointOutcome, StoreError> {
        let failure = self.begin(kind.name)?;
        let mut saving = self.database().save_checkpoint(checkpoint, known_mark);
        if let Some(real) = &self.real {
            let found = real.store.save_checkpoint(kind, checkpoint, known_mark, now).await?;
            self.compare("saving", &found, &saving);
            saving = found;
        }
        self.compare_rows().await;
        failure.map_or(Ok(saving), Err)
    }
}

#[async_trait]
impl Quarantine for SimStorage {
    async fn quarantine(&self, kind: &Kind, object: &Object, reason: &str, now: Timestamp) -> Result<(), StoreError> {
        let record = |store: Arc<dyn MetadataStorage>| async move { store.quarantine(kind, object, reason, now).await };
        let model = |model: &mut SimDatabase| {
            let uid = object.metadata.uid.clone();
            model.quarantine.insert(uid, (object.clone(), reason.to_owned()));
        };
        self.change(kind, record, model).await
    }

    async fn quarantined(&self, kind: &Kind) -> Result<Vec<QuarantineRecord>, StoreError> {
        let failure = self.begin(kind.name)?;
        let quarantine = self.database().quarantine.clone();
        let record = |(uid, (object, reason)): (Uid, (Object, String))| QuarantineRecord {
            uid,
            version: object.metadata.resource_version,
            reason,
        };
        let expected: Vec<_> = quarantine.into_iter().map(record).collect();
        if let Some(real) = &self.real {
            self.compare("quarantined", &real.store.quarantined(kind).await?, &expected);
        }
        failure.map_or(Ok(expected), Err)
    }

    async fn release_quarantine(&self, kind: &Kind, uid: &Uid, stored: ResourceVersion) -> Result<(), StoreError> {
        let release =
            |store: Arc<dyn MetadataStorage>| async move { store.release_quarantine(kind, uid, stored).await };
        let model = |model: &mut SimDatabase| {
            let newer = |object: &Object| object.metadata.resource_version > stored;
            model
                .quarantine
                .retain(|known, (object, _)| known != uid || newer(object));
        };
        self.change(kind, release, model).await
    }
}

#[async_trait]
impl Owners for SimStorage {
    async fn owns_live_rows(&self, kind: &Kind, _: &str, _: &str, uid: &Uid) -> Result<bool, StoreError> {
        // The real store has no rows of the other kind.
        let failure = self.begin(kind.name)?;
        let answer = self.database().owned.ask(uid);
        failure.map_or(Ok(answer), Err)
    }
}

#[async_trait]
impl RowsOfName for SimStorage {
    async fn rows_of_name(&self, _: &Kind, namespace: &str, name: &str) -> Result<Vec<Stored>, StoreError> {
        // Only an event names the objects that another one replaced, and the simulation sends none.
        Ok(self.database().rows_of_name(namespace, name))
    }
}
