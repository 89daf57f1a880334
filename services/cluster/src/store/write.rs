//! The one writer: takes mutations from a queue, commits as many as wait in one transaction, gives each its
//! resource version and publishes what was committed. Knows optimistic concurrency and preconditions, but not why an
//! object changes.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use kindex_kube_api::meta;
use serde_json::Value;
use sqlx::pool::PoolConnection;
use sqlx::{Connection, Sqlite, SqliteConnection, SqlitePool};
use tokio::sync::{mpsc, oneshot};

use super::cache::RevisionCache;
use super::hub::Hub;
use super::record::{Change, ObjectKey, Revision};
use super::{FileStore, compact, read};

/// Mutations that share a transaction at most.
const BATCH_MAX: usize = 256;
/// History may exceed its bound by this fraction before it is compacted, so that compaction is rare.
const SLACK_DIVISOR: u64 = 8;

/// Called for each committed revision in order.
pub(crate) type Observer = Box<dyn Fn(&Revision) + Send + Sync>;

/// What must hold in the transaction for a mutation to be made.
#[derive(Debug, Clone)]
pub enum Precondition {
    /// The object exists.
    Live(ObjectKey),
    /// No object is in the namespace.
    NamespaceEmpty(String),
    /// No object of the resource is left.
    ResourceEmpty(Arc<str>),
}

/// What a mutation does.
#[derive(Debug, Clone)]
pub enum Intent {
    /// The object must not exist yet.
    Create,
    /// The object must still be at this revision.
    Replace(Arc<Revision>),
    /// The object must still be at this revision, and is gone afterwards.
    Remove(Arc<Revision>),
}

/// One change of one object.
#[derive(Debug)]
pub struct Mutation {
    /// The object that changes.
    pub key: ObjectKey,
    /// What it does.
    pub intent: Intent,
    /// The object after the change (its last state, for a removal); the writer sets its resource version.
    pub object: Value,
    /// What else must hold.
    pub preconditions: Vec<Precondition>,
}

/// Why a mutation was not made.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// An object of that key exists.
    #[error("the object exists")]
    Exists,
    /// The object is no longer at the revision that the caller saw, or is gone.
    #[error("the object has changed")]
    Changed,
    /// A precondition does not hold.
    #[error("a precondition of the write does not hold: {0:?}")]
    Unmet(Precondition),
    /// The database failed; nothing of the transaction was kept.
    #[error("the cluster database failed: {0}")]
    Database(String),
    /// What keeps the objects elsewhere does not answer; the outcome may be unknown.
    #[error("{0}")]
    Elsewhere(String),
    /// The writer has stopped.
    #[error("the cluster is shutting down")]
    Closed,
}

/// A mutation and where its outcome goes.
pub(super) struct Job {
    mutation: Mutation,
    reply: oneshot::Sender<Result<Arc<Revision>, WriteError>>,
}

impl FileStore {
    /// Makes one mutation. Its revision is durable against a crash, observed and published when this returns.
    ///
    /// Dropping the future does not undo a mutation that is queued.
    pub(crate) async fn write(&self, mutation: Mutation) -> Result<Arc<Revision>, WriteError> {
        let (reply, outcome) = oneshot::channel();
        self.writer
            .send(Job { mutation, reply })
            .await
            .map_err(|_| WriteError::Closed)?;
        outcome.await.map_err(|_| WriteError::Closed)?
    }
}

/// The state of the writing task.
pub(super) struct Writer {
    pool: SqlitePool,
    /// Kept from one transaction to the next: a pool looks after a connection whenever it is given back, which costs
    /// a turn of SQLite's thread. Given back where a transaction fails.
    connection: Option<PoolConnection<Sqlite>>,
    live_objects: LiveObjects,
    /// Floor and newest version of the log, as the last transaction left them. Unknown at first and after a failure.
    position: Option<(u64, u64)>,
    hub: Arc<Hub>,
    cache: Arc<RevisionCache>,
    has_owners: Arc<AtomicBool>,
    observer: Observer,
    history_max: u64,
}

/// What a mutation leads to.
struct Applied {
    /// For the answer and for reads.
    revision: Arc<Revision>,
    /// For watches: with what came before it, and without the parsed object, which takes several times as much memory
    /// as the text and which few watches need.
    event: Arc<Revision>,
}

impl Writer {
    pub(super) fn new(pool: SqlitePool, store: &FileStore, observer: Observer, history_max: u64) -> Self {
        Self {
            pool,
            connection: None,
            live_objects: LiveObjects::default(),
            position: None,
            hub: Arc::clone(&store.hub),
            cache: Arc::clone(&store.cache),
            has_owners: Arc::clone(&store.has_owners),
            observer,
            history_max,
        }
    }

    /// Serves the queue until every store handle is dropped.
    pub(super) async fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut waiting = Vec::with_capacity(BATCH_MAX);
        while jobs.recv_many(&mut waiting, BATCH_MAX).await > 0 {
            let (mutations, replies): (Vec<_>, Vec<_>) = waiting.drain(..).map(|job| (job.mutation, job.reply)).unzip();
            let outcomes = self.commit(mutations).await;
            for (reply, outcome) in replies.into_iter().zip(outcomes) {
                // The caller may have gone away; the mutation stands.
                let _abandoned = reply.send(outcome);
            }
        }
        drop(self.connection.take());
        self.pool.close().await;
    }

    async fn commit(&mut self, mutations: Vec<Mutation>) -> Vec<Result<Arc<Revision>, WriteError>> {
        let count = mutations.len();
        match self.transact(mutations).await {
            Ok(outcomes) => outcomes,
            Err(error) => {
                tracing::error!(%error, mutations = count, "the cluster database refused a transaction");
                (0..count)
                    .map(|_| Err(WriteError::Database(error.to_string())))
                    .collect()
            }
        }
    }

    async fn transact(
        &mut self,
        mutations: Vec<Mutation>,
    ) -> Result<Vec<Result<Arc<Revision>, WriteError>>, sqlx::Error> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.pool.acquire().await?,
        };
        let (outcomes, newest) = match self.transact_on(&mut connection, mutations).await {
            Ok(done) => done,
            Err(error) => {
                // What the transaction saw may have been its own work, which is undone.
                self.live_objects = LiveObjects::default();
                self.position = None;
                return Err(error);
            }
        };
        self.connection = Some(connection);
        let mut events = Vec::with_capacity(outcomes.len());
        for applied in outcomes.iter().flatten() {
            (self.observer)(&applied.revision);
            self.cache.keep(&applied.revision);
            events.push(Arc::clone(&applied.event));
        }
        self.hub.publish(&events, newest);
        let answer = |outcome: Result<Applied, _>| outcome.map(|applied| applied.revision);
        Ok(outcomes.into_iter().map(answer).collect())
    }

    /// The outcomes, and the last resource version given out.
    async fn transact_on(
        &mut self,
        connection: &mut SqliteConnection,
        mutations: Vec<Mutation>,
    ) -> Result<(Vec<Result<Applied, WriteError>>, u64), sqlx::Error> {
        self.cache.forget(mutations.iter().map(|mutation| &mutation.key));
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        let (mut floor, start) = match self.position {
            Some(position) => position,
            None => read::bounds(&mut transaction).await?,
        };
        let mut newest = start;
        let count = mutations.len();
        let mut outcomes = Vec::with_capacity(count);
        for (at, mutation) in mutations.into_iter().enumerate() {
            let (live_objects, has_owners) = (&mut self.live_objects, &self.has_owners);
            let version = NewVersion {
                rv: newest + 1,
                is_last: at + 1 == count,
            };
            let outcome = apply(&mut transaction, live_objects, has_owners, mutation, version).await?;
            newest += u64::from(outcome.is_ok());
            outcomes.push(outcome);
        }
        // The last mutation has moved the position, unless it was refused.
        if newest > start && outcomes.last().is_some_and(Result::is_err) {
            sqlx::query("UPDATE position SET newest = ?1 WHERE id = 0")
                .bind(newest.cast_signed())
                .execute(&mut *transaction)
                .await?;
        }
        if newest - floor > self.history_max + self.history_max / SLACK_DIVISOR {
            floor = compact::compact(&mut transaction, floor, newest, self.history_max).await?;
        }
        transaction.commit().await?;
        self.position = Some((floor, newest));
        Ok((outcomes, newest))
    }
}

/// Objects that preconditions found alive: namespaces and definitions, which most creations ask for again.
///
/// # Guarantees
/// What is in it is alive in the transaction under way: whoever removes an object takes it out first, and a
/// transaction that fails takes out all.
///
/// # Assumptions
/// Nobody but the one writer writes.
#[derive(Default)]
struct LiveObjects(HashSet<ObjectKey>);

impl LiveObjects {
    async fn holds(&mut self, connection: &mut SqliteConnection, wanted: &Precondition) -> Result<bool, sqlx::Error> {
        let Precondition::Live(key) = wanted else {
            return holds(connection, wanted).await;
        };
        if self.0.contains(key) {
            return Ok(true);
        }
        let found = holds(connection, wanted).await?;
        if found {
            self.0.insert(key.clone());
        }
        Ok(found)
    }
}

/// What a mutation gets where it is made.
#[derive(Clone, Copy)]
struct NewVersion {
    rv: u64,
    /// No mutation of the transaction comes after it.
    is_last: bool,
}

/// Applies one mutation inside the transaction. A refusal (the inner error) has written nothing.
async fn apply(
    connection: &mut SqliteConnection,
    live_objects: &mut LiveObjects,
    has_owners: &AtomicBool,
    mutation: Mutation,
    version: NewVersion,
) -> Result<Result<Applied, WriteError>, sqlx::Error> {
    let Mutation {
        key,
        intent,
        mut object,
        preconditions,
    } = mutation;
    for precondition in preconditions {
        if !live_objects.holds(connection, &precondition).await? {
            return Ok(Err(WriteError::Unmet(precondition)));
        }
    }
    let rv = version.rv;
    object["metadata"]["resourceVersion"] = Value::String(rv.to_string());
    let (change, before) = match intent {
        Intent::Create => (Change::Added, None),
        Intent::Replace(before) => (Change::Modified, Some(before)),
        Intent::Remove(before) => (Change::Deleted, Some(before)),
    };
    if change == Change::Deleted {
        live_objects.0.remove(&key);
    }
    let text = serde_json::to_string(&object).expect("a JSON value is JSON text");
    let uid = meta::uid(&object);
    if !record(connection, &key, version, change, before.as_deref(), uid, &text).await? {
        return Ok(Err(match change {
            Change::Added => WriteError::Exists,
            Change::Modified | Change::Deleted => WriteError::Changed,
        }));
    }
    let owned_before = before
        .as_ref()
        .and_then(|before| before.object().ok())
        .map(owner_uids)
        .unwrap_or_default();
    let owned = if change == Change::Deleted {
        Vec::new()
    } else {
        owner_uids(&object)
    };
    if owned != owned_before {
        // Before the commit: nobody sees the object while this says that there is none.
        has_owners.store(true, Ordering::Release);
        replace_owners(connection, &key, &owned_before, &owned).await?;
    }
    // A chain of every revision ever would never be freed: only the last step is kept.
    let before = before.map(|before| Arc::new(before.without_history()));
    let text = Bytes::from(text);
    let event = Revision::new(rv, change, key.clone(), text.clone(), before);
    let revision = Revision::with_object(rv, change, key, text, object);
    Ok(Ok(Applied {
        revision: Arc::new(revision),
        event: Arc::new(event),
    }))
}

async fn holds(connection: &mut SqliteConnection, wanted: &Precondition) -> Result<bool, sqlx::Error> {
    let found: bool = match wanted {
        Precondition::Live(key) => {
            sqlx::query_scalar(
                "SELECT EXISTS (SELECT 1 FROM live WHERE resource = ?1 AND namespace = ?2 AND name = ?3)",
            )
            .bind(&*key.resource)
            .bind(&key.namespace)
            .bind(&key.name)
            .fetch_one(connection)
            .await?
        }
        Precondition::NamespaceEmpty(namespace) => {
            sqlx::query_scalar("SELECT NOT EXISTS (SELECT 1 FROM live WHERE namespace = ?1)")
                .bind(namespace)
                .fetch_one(connection)
                .await?
        }
        Precondition::ResourceEmpty(resource) => {
            sqlx::query_scalar("SELECT NOT EXISTS (SELECT 1 FROM live WHERE resource = ?1)")
                .bind(&**resource)
                .fetch_one(connection)
                .await?
        }
    };
    Ok(found)
}

/// What becomes of the live row; then the revision, where that happened; then the position, if it is the last one.
/// Three statements in one text, since each text is a turn of SQLite's thread: most of what a write costs. To sqlx, a
/// number that a statement leaves out uses up a value, and after the last it binds nothing: the third leaves out none.
const ADD: &str = "INSERT INTO live (resource, namespace, name, rv, uid) VALUES (?3, ?4, ?5, ?1, ?9) \
     ON CONFLICT DO NOTHING; \
     INSERT INTO revisions (rv, change, resource, namespace, name, previous, object) \
     SELECT ?1, ?6, ?3, ?4, ?5, ?7, ?8 WHERE changes() = 1; \
     UPDATE position SET newest = ?1 WHERE id = 0 AND ?2 AND changes() = 1";
const MODIFY: &str = "UPDATE live SET rv = ?1 WHERE resource = ?3 AND namespace = ?4 AND name = ?5 AND rv = ?7; \
     INSERT INTO revisions (rv, change, resource, namespace, name, previous, object) \
     SELECT ?1, ?6, ?3, ?4, ?5, ?7, ?8 WHERE changes() = 1; \
     UPDATE position SET newest = ?1 WHERE id = 0 AND ?2 AND changes() = 1";
const DELETE: &str = "DELETE FROM live WHERE resource = ?3 AND namespace = ?4 AND name = ?5 AND rv = ?7; \
     INSERT INTO revisions (rv, change, resource, namespace, name, previous, object) \
     SELECT ?1, ?6, ?3, ?4, ?5, ?7, ?8 WHERE changes() = 1; \
     UPDATE position SET newest = ?1 WHERE id = 0 AND ?2 AND changes() = 1";

/// Writes a revision and what is live after it; nothing, and false, where the object is not as it was before.
async fn record(
    connection: &mut SqliteConnection,
    key: &ObjectKey,
    version: NewVersion,
    change: Change,
    before: Option<&Revision>,
    uid: &str,
    text: &str,
) -> Result<bool, sqlx::Error> {
    let statement = match change {
        Change::Added => ADD,
        Change::Modified => MODIFY,
        Change::Deleted => DELETE,
    };
    let done = sqlx::query(statement)
        .bind(version.rv.cast_signed())
        .bind(version.is_last)
        .bind(&*key.resource)
        .bind(&key.namespace)
        .bind(&key.name)
        .bind(change.code())
        .bind(before.map(|before| before.rv.cast_signed()))
        .bind(text)
        .bind(uid)
        .execute(connection)
        .await?;
    // One row that is live, or no longer, one revision, and the position with the last.
    Ok(done.rows_affected() == 2 + u64::from(version.is_last))
}

async fn replace_owners(
    connection: &mut SqliteConnection,
    key: &ObjectKey,
    before: &[&str],
    after: &[&str],
) -> Result<(), sqlx::Error> {
    for owner in before {
        sqlx::query("DELETE FROM owners WHERE owner_uid = ?1 AND resource = ?2 AND namespace = ?3 AND name = ?4")
            .bind(owner)
            .bind(&*key.resource)
            .bind(&key.namespace)
            .bind(&key.name)
            .execute(&mut *connection)
            .await?;
    }
    for owner in after {
        sqlx::query("INSERT OR IGNORE INTO owners (owner_uid, resource, namespace, name) VALUES (?1, ?2, ?3, ?4)")
            .bind(owner)
            .bind(&*key.resource)
            .bind(&key.namespace)
            .bind(&key.name)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

fn owner_uids(object: &Value) -> Vec<&str> {
    let references = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    references.filter_map(|reference| reference["uid"].as_str()).collect()
}
