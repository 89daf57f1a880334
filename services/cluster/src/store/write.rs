//! The one writer: takes mutations from a queue, commits as many as wait in one transaction, gives each its
//! resource version and publishes what was committed. Knows optimistic concurrency and guards; refuses to know why
//! an object changes.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use sqlx::{SqliteConnection, SqlitePool};
use tokio::sync::{mpsc, oneshot};

use super::hub::Hub;
use super::record::{Change, ObjectKey, Revision};
use super::{Store, compact, read};

/// Mutations that share a transaction at most.
const BATCH_MAX: usize = 256;
/// History may exceed its bound by this fraction before it is compacted, so that compaction is rare.
const SLACK_DIVISOR: u64 = 8;

/// Called for each committed revision in order.
pub(crate) type Observer = Box<dyn Fn(&Revision) + Send + Sync>;

/// What must hold in the transaction for a mutation to be made.
#[derive(Debug, Clone)]
pub(crate) enum Guard {
    /// The object exists.
    Live(ObjectKey),
    /// No object is in the namespace.
    NamespaceEmpty(String),
    /// No object of the resource is left.
    ResourceEmpty(Arc<str>),
}

/// What a mutation does.
#[derive(Debug, Clone)]
pub(crate) enum Intent {
    /// The object must not exist yet.
    Create,
    /// The object must still be at this revision.
    Replace(Arc<Revision>),
    /// The object must still be at this revision, and is gone afterwards.
    Remove(Arc<Revision>),
}

/// One change of one object.
#[derive(Debug)]
pub(crate) struct Mutation {
    pub(crate) key: ObjectKey,
    pub(crate) intent: Intent,
    /// The object after the change (its last state, for a removal); the writer sets its resource version.
    pub(crate) object: Value,
    pub(crate) guards: Vec<Guard>,
}

/// Why a mutation was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// An object of that key exists.
    #[error("the object exists")]
    Exists,
    /// The object is no longer at the revision that the caller saw, or is gone.
    #[error("the object has changed")]
    Changed,
    /// A guard does not hold.
    #[error("a condition of the write does not hold: {0:?}")]
    Guarded(Guard),
    /// The database failed; nothing of the transaction was kept.
    #[error("the cluster database failed: {0}")]
    Database(String),
    /// The writer has stopped.
    #[error("the cluster is shutting down")]
    Closed,
}

/// A mutation and where its outcome goes.
pub(super) struct Job {
    mutation: Mutation,
    reply: oneshot::Sender<Result<Arc<Revision>, WriteError>>,
}

impl Store {
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
    hub: Arc<Hub>,
    observer: Observer,
    history_max: u64,
}

impl Writer {
    pub(super) fn new(pool: SqlitePool, hub: Arc<Hub>, observer: Observer, history_max: u64) -> Self {
        Self {
            pool,
            hub,
            observer,
            history_max,
        }
    }

    /// Serves the queue until every store handle is dropped.
    pub(super) async fn run(self, mut jobs: mpsc::Receiver<Job>) {
        let mut waiting = Vec::with_capacity(BATCH_MAX);
        while jobs.recv_many(&mut waiting, BATCH_MAX).await > 0 {
            let (mutations, replies): (Vec<_>, Vec<_>) = waiting.drain(..).map(|job| (job.mutation, job.reply)).unzip();
            let outcomes = self.commit(mutations).await;
            for (reply, outcome) in replies.into_iter().zip(outcomes) {
                // The caller may have gone away; the mutation stands.
                let _abandoned = reply.send(outcome);
            }
        }
        self.pool.close().await;
    }

    async fn commit(&self, mutations: Vec<Mutation>) -> Vec<Result<Arc<Revision>, WriteError>> {
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

    async fn transact(&self, mutations: Vec<Mutation>) -> Result<Vec<Result<Arc<Revision>, WriteError>>, sqlx::Error> {
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let (floor, start) = read::bounds(&mut transaction).await?;
        let mut newest = start;
        let mut outcomes = Vec::with_capacity(mutations.len());
        for mutation in mutations {
            let outcome = apply(&mut transaction, mutation, newest + 1).await?;
            newest += u64::from(outcome.is_ok());
            outcomes.push(outcome);
        }
        if newest > start {
            sqlx::query("UPDATE position SET newest = ?1 WHERE id = 0")
                .bind(newest.cast_signed())
                .execute(&mut *transaction)
                .await?;
        }
        if newest - floor > self.history_max + self.history_max / SLACK_DIVISOR {
            compact::compact(&mut transaction, floor, newest, self.history_max).await?;
        }
        transaction.commit().await?;
        let committed: Vec<_> = outcomes
            .iter()
            .filter_map(|outcome| outcome.as_ref().ok().cloned())
            .collect();
        for revision in &committed {
            (self.observer)(revision);
        }
        self.hub.publish(&committed, newest);
        Ok(outcomes)
    }
}

/// Applies one mutation inside the transaction. A refusal (the inner error) has written nothing.
async fn apply(
    connection: &mut SqliteConnection,
    mutation: Mutation,
    rv: u64,
) -> Result<Result<Arc<Revision>, WriteError>, sqlx::Error> {
    let Mutation {
        key,
        intent,
        mut object,
        guards,
    } = mutation;
    for guard in guards {
        if !holds(connection, &guard).await? {
            return Ok(Err(WriteError::Guarded(guard)));
        }
    }
    object["metadata"]["resourceVersion"] = Value::String(rv.to_string());
    let (change, before) = match intent {
        Intent::Create => (Change::Added, None),
        Intent::Replace(before) => (Change::Modified, Some(before)),
        Intent::Remove(before) => (Change::Deleted, Some(before)),
    };
    let moved = match (change, &before) {
        (Change::Added, _) | (_, None) => insert_live(connection, &key, rv, uid(&object)).await?,
        (Change::Modified, Some(before)) => move_live(connection, &key, before.rv, rv).await?,
        (Change::Deleted, Some(before)) => remove_live(connection, &key, before.rv).await?,
    };
    if !moved {
        return Ok(Err(if change == Change::Added {
            WriteError::Exists
        } else {
            WriteError::Changed
        }));
    }
    let text = object.to_string();
    sqlx::query(
        "INSERT INTO revisions (rv, change, resource, namespace, name, previous, object) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )
    .bind(rv.cast_signed())
    .bind(change.code())
    .bind(&*key.resource)
    .bind(&key.namespace)
    .bind(&key.name)
    .bind(before.as_ref().map(|before| before.rv.cast_signed()))
    .bind(&text)
    .execute(&mut *connection)
    .await?;
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
        replace_owners(connection, &key, &owned_before, &owned).await?;
    }
    // A chain of every revision ever would never be freed: only the last step is kept.
    let before = before.map(|before| Arc::new(before.without_history()));
    Ok(Ok(Arc::new(Revision::new(rv, change, key, Bytes::from(text), before))))
}

async fn holds(connection: &mut SqliteConnection, guard: &Guard) -> Result<bool, sqlx::Error> {
    let found: bool = match guard {
        Guard::Live(key) => {
            sqlx::query_scalar(
                "SELECT EXISTS (SELECT 1 FROM live WHERE resource = ?1 AND namespace = ?2 AND name = ?3)",
            )
            .bind(&*key.resource)
            .bind(&key.namespace)
            .bind(&key.name)
            .fetch_one(connection)
            .await?
        }
        Guard::NamespaceEmpty(namespace) => {
            sqlx::query_scalar("SELECT NOT EXISTS (SELECT 1 FROM live WHERE namespace = ?1)")
                .bind(namespace)
                .fetch_one(connection)
                .await?
        }
        Guard::ResourceEmpty(resource) => {
            sqlx::query_scalar("SELECT NOT EXISTS (SELECT 1 FROM live WHERE resource = ?1)")
                .bind(&**resource)
                .fetch_one(connection)
                .await?
        }
    };
    Ok(found)
}

async fn insert_live(
    connection: &mut SqliteConnection,
    key: &ObjectKey,
    rv: u64,
    uid: &str,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "INSERT INTO live (resource, namespace, name, rv, uid) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
    )
    .bind(&*key.resource)
    .bind(&key.namespace)
    .bind(&key.name)
    .bind(rv.cast_signed())
    .bind(uid)
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}

async fn move_live(
    connection: &mut SqliteConnection,
    key: &ObjectKey,
    from: u64,
    to: u64,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query("UPDATE live SET rv = ?5 WHERE resource = ?1 AND namespace = ?2 AND name = ?3 AND rv = ?4")
        .bind(&*key.resource)
        .bind(&key.namespace)
        .bind(&key.name)
        .bind(from.cast_signed())
        .bind(to.cast_signed())
        .execute(connection)
        .await?;
    Ok(done.rows_affected() == 1)
}

async fn remove_live(connection: &mut SqliteConnection, key: &ObjectKey, from: u64) -> Result<bool, sqlx::Error> {
    let done = sqlx::query("DELETE FROM live WHERE resource = ?1 AND namespace = ?2 AND name = ?3 AND rv = ?4")
        .bind(&*key.resource)
        .bind(&key.namespace)
        .bind(&key.name)
        .bind(from.cast_signed())
        .execute(connection)
        .await?;
    Ok(done.rows_affected() == 1)
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

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

fn owner_uids(object: &Value) -> Vec<&str> {
    let references = object["metadata"]["ownerReferences"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    references
        .iter()
        .filter_map(|reference| reference["uid"].as_str())
        .collect()
}
