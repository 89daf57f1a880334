//! Changes to archived objects, where no API server checks them: a row is changed only
//! while it still has the version that the caller read, and gets one that no cluster gives. What may be
//! changed is decided by pure functions, under the row's lock. Knows no dialect.

mod collection;

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_model::projection::Version;
use kindex_model::row_version::RowVersion;
use kindex_query::{Life, Revive};
use serde::Deserialize;

use crate::cells::{FoundRow, stored};
use crate::connections::{InTransaction, failure};
use crate::driver::{Driver, Limits, Param, Raw};
use crate::error::{DirectError, StoreError};
use crate::row::RowWrite;
use crate::sql_store::SqlStore;
use crate::write::{Batch, DeletionMode, Event, FeedEntry, HistoryBatch, Work, replacement};

pub use collection::{BatchOutcome, DeleteCollection, Found};

/// What became of an archived object that was to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It is deleted.
    Done,
    /// It has a tombstone, and is deleted later: once the last reference is released that holds it, or by whoever ends
    /// the deletions of tombstones.
    Held,
}

/// The SQL store as the place of archived objects.
///
/// # Guarantees
/// Each change is one transaction, decided under the row's lock: of two callers that read the same
/// version one wins, and the other gets [`DirectError::Conflict`]. A row whose object lives in the
/// cluster is never changed.
#[async_trait]
pub trait Direct: Send + Sync {
    /// Stores an object as the caller wants it to be, where its row has the version that the caller
    /// read: that of the object's `metadata.resourceVersion`. Columns, labels, annotations and history
    /// follow. Gives back the object with its new version, or as it is where nothing changes.
    /// Michelangelo's interface calls this an upsert with `direct = true`.
    ///
    /// # Errors
    /// [`StoreError::Direct`]; the versions are those of [`RowVersion::next_direct`].
    async fn update_direct(&self, kind: &Kind, object: &Object, now: Timestamp) -> Result<Object, StoreError>;

    /// Marks an object deleted, where its row has the version that the caller read, if one is given. An object with
    /// references gets a tombstone instead: its row is marked deleted with the release of the last one. To delete it
    /// again changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Direct`].
    async fn delete_direct(
        &self,
        kind: &Kind,
        uid: &Uid,
        read: Option<ResourceVersion>,
        now: Timestamp,
    ) -> Result<Deletion, StoreError>;

    /// Gives an object a tombstone, whether references hold it or not, where its row has the version that the caller
    /// read, if one is given. Whoever ends the deletions of tombstones marks its row deleted. To do so again changes
    /// nothing.
    ///
    /// # Errors
    /// [`StoreError::Direct`].
    async fn make_tombstone(
        &self,
        kind: &Kind,
        uid: &Uid,
        read: Option<ResourceVersion>,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Marks the objects deleted that a query finds, as far as they are archived: one batch of them.
    /// Those that the cluster has are named and left alone: who deletes them there sees them deleted here.
    ///
    /// # Errors
    /// [`StoreError::UnlimitedDelete`] for a query that asks for nothing, unless that is wanted;
    /// [`StoreError::Continue`] for a token of another query.
    async fn delete_collection(
        &self,
        request: &DeleteCollection,
        continue_token: Option<&str>,
        now: Timestamp,
    ) -> Result<BatchOutcome, StoreError>;
}

#[async_trait]
impl<D: Driver> Direct for SqlStore<D> {
    async fn update_direct(&self, kind: &Kind, object: &Object, now: Timestamp) -> Result<Object, StoreError> {
        let metadata = &object.metadata;
        let Some(next) = RowVersion::unpack(metadata.resource_version).next_direct() else {
            let exhausted = DirectError::Exhausted(metadata.resource_version);
            return Err(refused(kind, &metadata.uid, exhausted));
        };
        // Projected and packed before any row is locked.
        let version = Version::project(kind, object.with_version(next.pack()));
        let write = RowWrite::Store {
            version: version.clone(),
            life: Life::Archived,
            revive: Revive::Never,
        };
        let work = Work {
            sql: &self.texts(kind),
            kind,
            now,
            platform: self.registry.platform,
            draw: self.draw,
            history: kind
                .history
                .then(|| HistoryBatch::new(self.history_sql(kind), &[write], now)),
        };
        let change = Change::Update {
            wanted: object,
            version: &version,
        };
        let changed = self.change_row(&work, &change).await?;
        Ok(if changed {
            version.object.clone()
        } else {
            object.clone()
        })
    }

    async fn delete_direct(
        &self,
        kind: &Kind,
        uid: &Uid,
        read: Option<ResourceVersion>,
        now: Timestamp,
    ) -> Result<Deletion, StoreError> {
        let texts = self.texts(kind);
        let work = self.reference_work(kind, &texts, now);
        let mode = DeletionMode::Unheld;
        let is_gone = self.change_row(&work, &Change::Delete { uid, read, mode }).await?;
        Ok(if is_gone { Deletion::Done } else { Deletion::Held })
    }

    async fn make_tombstone(
        &self,
        kind: &Kind,
        uid: &Uid,
        read: Option<ResourceVersion>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let texts = self.texts(kind);
        let work = self.reference_work(kind, &texts, now);
        let mode = DeletionMode::Tombstone;
        let deleted = self.change_row(&work, &Change::Delete { uid, read, mode }).await;
        deleted.map(drop)
    }

    async fn delete_collection(
        &self,
        request: &DeleteCollection,
        continue_token: Option<&str>,
        now: Timestamp,
    ) -> Result<BatchOutcome, StoreError> {
        collection::delete(self, request, continue_token, now).await
    }
}

/// What is to become of one row.
enum Change<'a> {
    Update {
        wanted: &'a Object,
        version: &'a Version,
    },
    Delete {
        uid: &'a Uid,
        read: Option<ResourceVersion>,
        mode: DeletionMode,
    },
}

impl Change<'_> {
    fn uid(&self) -> &Uid {
        match self {
            Self::Update { wanted, .. } => &wanted.metadata.uid,
            Self::Delete { uid, .. } => uid,
        }
    }

    fn read(&self) -> Option<ResourceVersion> {
        match self {
            Self::Update { wanted, .. } => Some(wanted.metadata.resource_version),
            Self::Delete { read, .. } => *read,
        }
    }
}

impl<D: Driver> SqlStore<D> {
    /// Says whether the row was changed.
    async fn change_row(&self, work: &Work<'_>, change: &Change<'_>) -> Result<bool, StoreError> {
        let changed = self.connections.transact(&ChangeRow { work, change }).await;
        changed.map_err(|error| failure::<D>(work.kind.name, error))?
    }
}

struct ChangeRow<'a> {
    work: &'a Work<'a>,
    change: &'a Change<'a>,
}

impl<D: Driver> InTransaction<D> for ChangeRow<'_> {
    /// What is refused has written nothing.
    type Done = Result<bool, StoreError>;

    fn kind(&self) -> &'static str {
        self.work.kind.name
    }

    async fn run(&self, connection: &mut Raw<D>, limits: Limits) -> Result<Self::Done, sqlx::Error> {
        let mut batch = Batch::<D> {
            connection,
            limits,
            work: self.work,
        };
        batch.change(self.change).await
    }
}

impl<D: Driver> Batch<'_, D> {
    async fn change(&mut self, change: &Change<'_>) -> Result<Result<bool, StoreError>, sqlx::Error> {
        let (kind, uid) = (self.work.kind, change.uid());
        let refused = |error| Ok(Err(refused(kind, uid, error)));
        let Some(row) = self.lock_rows(&[&uid.0]).await?.remove(uid) else {
            return refused(DirectError::Missing);
        };
        // The row is locked: this reads what was committed last, and nobody changes it before we do.
        let text = D::query(self.connection, self.work.sql.by_id(), &[Param::Text(&uid.0)]).await?;
        let held = match text.first().map(|row| stored(kind, row)) {
            Some(Ok(held)) => held.object,
            Some(Err(error)) => return Ok(Err(error)),
            None => return refused(DirectError::Missing),
        };
        if let Err(error) = check_version(&row, &held, change.read()) {
            return refused(error);
        }
        let entry = match change {
            Change::Delete { mode, .. } => {
                let deletions = self.delete_archived(&[&row], *mode).await?;
                return Ok(Ok(deletions.held.is_empty()));
            }
            Change::Update { wanted, .. } if wanted.text() == held.text() => return Ok(Ok(false)),
            Change::Update { wanted, version } => {
                let deletion = |object: &Object| object.metadata.deletion_timestamp;
                let requested = match deletion(wanted) == deletion(&held) {
                    true => None,
                    false => self.tombstone_of(uid).await?,
                };
                if let Err(error) = keeps_identity(kind, &held, wanted, requested) {
                    return refused(error);
                }
                self.replace(replacement(version, &row)).await?;
                FeedEntry::update(&uid.0, &held.metadata.labels)
            }
        };
        self.append_to_feed(&[entry]).await?;
        if kind.events {
            let requested = self.tombstone_of(uid).await?;
            self.append_to_outbox(&[Event::of_row(&row, requested)]).await?;
        }
        Ok(Ok(true))
    }
}

fn refused(kind: &Kind, uid: &Uid, source: DirectError) -> StoreError {
    StoreError::Direct {
        kind: kind.name.to_owned(),
        uid: uid.to_string(),
        source,
    }
}

/// Whether a row may be changed by somebody who read this version of it.
fn check_version(row: &FoundRow, held: &Object, read: Option<ResourceVersion>) -> Result<(), DirectError> {
    match (row.delete_time, row.evicted_time) {
        (Some(time), _) => return Err(DirectError::Deleted(time)),
        (None, None) => return Err(DirectError::Live),
        (None, Some(_)) => {}
    }
    // A row that was rewound, because the cluster came back from a backup, has the version of its text.
    let stored = match row.res_version {
        RowVersion::Cluster(ResourceVersion(0)) => held.metadata.resource_version,
        version => version.pack(),
    };
    match read {
        Some(given) if given != stored => Err(DirectError::Conflict { given, stored }),
        Some(_) | None => Ok(()),
    }
}

/// Whether nothing changes that an API server would not let change. The deletionTimestamp may become the time at which
/// the deletion of an archived object was requested.
fn keeps_identity(
    kind: &Kind,
    held: &Object,
    wanted: &Object,
    requested: Option<Timestamp>,
) -> Result<(), DirectError> {
    let (old, new) = (&held.metadata, &wanted.metadata);
    let is_requested = |time: &Timestamp| requested.map(Timestamp::as_second) == Some(time.as_second());
    let deletion = new.deletion_timestamp.filter(|time| !is_requested(time));
    let time = |time: Option<Timestamp>| time.map_or_else(|| "absent".to_owned(), |time| time.to_string());
    let given = |given: &str, own: String| if given.is_empty() { own } else { given.to_owned() };
    let own = kind.api_version();
    let fields = [
        ("apiVersion", own.clone(), given(&new.api_version, own)),
        (
            "kind",
            kind.name.to_owned(),
            given(&named_kind(wanted), kind.name.to_owned()),
        ),
        ("metadata.namespace", old.namespace.clone(), new.namespace.clone()),
        ("metadata.name", old.name.clone(), new.name.clone()),
        (
            "metadata.creationTimestamp",
            time(old.creation_timestamp),
            time(new.creation_timestamp),
        ),
        (
            "metadata.deletionTimestamp",
            time(old.deletion_timestamp),
            // An object may have left the cluster by a deletion, which is over and need not be said again.
            time(deletion.or(old.deletion_timestamp)),
        ),
    ];
    match fields.into_iter().find(|(_, stored, given)| stored != given) {
        Some((field, stored, given)) => Err(DirectError::Unchangeable { field, stored, given }),
        None => Ok(()),
    }
}

/// What the text says it is one of; empty where it says nothing, as in a list, and what is wrong with it where that is
/// no text.
fn named_kind(object: &Object) -> String {
    #[derive(Deserialize)]
    struct TypeMeta {
        kind: Option<String>,
    }
    match serde_json::from_str::<TypeMeta>(object.text()) {
        Ok(given) => given.kind.unwrap_or_default(),
        Err(error) => error.to_string(),
    }
}
