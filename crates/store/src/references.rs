//! References on archived objects: which other objects use them. An object in the cluster has its references as
//! finalizers; an archived one has them in rows. Knows no dialect.

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_model::reference_name::ReferenceName;
use kindex_query::Life;

use crate::connections::{InTransaction, failure};
use crate::driver::{Cells, Driver, Limits, Param, Raw};
use crate::error::{DirectError, StoreError};
use crate::sql_store::{BOOKKEEPING, SqlStore};
use crate::statements::{KindSql, LIST_MAX, padded_list, references as sql};
use crate::write::{Batch, DeletionMode, NewReference, Work};

/// One reference on an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Name of the kind of the object that is used.
    pub kind: String,
    /// Its uid.
    pub uid: Uid,
    /// Its holder, the object that uses it, as a text: `<kind>.<group>/<uid>`.
    pub name: String,
    /// When it was placed, or came to SQL with its object.
    pub placed: Timestamp,
    /// By whom; `None` where it came with its object.
    pub placed_by: Option<String>,
}

/// What became of a reference that was to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// It is new.
    New,
    /// It was there already, and is as it was.
    Already,
}

/// What became of a reference that was to be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// It was not there.
    Absent,
    /// It is gone, and the object stays.
    Released,
    /// It was the last one on an object that was to be deleted: the object went with it.
    Deleted,
}

/// An archived object that was deleted while references hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// Its uid.
    pub uid: Uid,
    /// When its deletion was requested first.
    pub requested: Timestamp,
}

/// References on archived objects.
///
/// # Guarantees
/// Each change is one transaction under the lock of the object's row, which a deletion takes too: either the
/// reference is there before the deletion, which then waits for its release, or the deletion is there first, and the
/// reference is refused. That holds on all nodes of a Galera cluster. Both operations are idempotent.
#[async_trait]
pub trait References: Send + Sync {
    /// Places a reference on an archived object. One that is there already is left as it is, also on an object that
    /// is being deleted.
    ///
    /// # Errors
    /// [`StoreError::Direct`]: [`DirectError::Missing`] and [`DirectError::Deleted`] where there is no object to use,
    /// [`DirectError::Live`] where the cluster has it and so its references, [`DirectError::Deleting`] where no new
    /// ones are taken.
    async fn place_reference(
        &self,
        kind: &Kind,
        uid: &Uid,
        name: &ReferenceName,
        placed_by: &str,
        now: Timestamp,
    ) -> Result<Placed, StoreError>;

    /// Removes a reference from an object, whatever state its row is in, or where there is none. An object that waits
    /// for the release of its last reference is marked deleted in the same transaction.
    async fn release_reference(
        &self,
        kind: &Kind,
        uid: &Uid,
        name: &ReferenceName,
        now: Timestamp,
    ) -> Result<Released, StoreError>;

    /// The references on these objects, in order of uid and name.
    async fn references(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<Reference>, StoreError>;

    /// The first references on an object, as [`references`](Self::references) has them. No more rows are read.
    async fn first_references(&self, kind: &Kind, uid: &Uid, limit: u32) -> Result<Vec<Reference>, StoreError>;

    /// A page of the references on all objects of a kind, in order of uid and name.
    async fn reference_page(
        &self,
        kind: &Kind,
        after: Option<&Reference>,
        limit: u32,
    ) -> Result<Vec<Reference>, StoreError>;

    /// How many references an object has.
    async fn count_references(&self, kind: &Kind, uid: &Uid) -> Result<u64, StoreError>;

    /// The references that an object has on others, of all kinds.
    async fn references_of_holder(&self, holder: &Uid) -> Result<Vec<Reference>, StoreError>;

    /// Those of these objects that wait for the release of their references, in any order.
    async fn tombstones(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<Tombstone>, StoreError>;

    /// A page of all that wait so, in order of uid.
    async fn tombstone_page(&self, kind: &Kind, after: Option<&Uid>, limit: u32) -> Result<Vec<Tombstone>, StoreError>;
}

/// What is done to one reference.
#[derive(Clone, Copy)]
struct Change<'a> {
    work: &'a Work<'a>,
    uid: &'a Uid,
    name: &'a ReferenceName,
}

struct PlaceReference<'a> {
    change: Change<'a>,
    placed_by: &'a str,
}

struct Release<'a>(Change<'a>);

impl<D: Driver> InTransaction<D> for PlaceReference<'_> {
    type Done = Result<Placed, DirectError>;

    fn kind(&self) -> &'static str {
        self.change.work.kind.name
    }

    async fn run(&self, connection: &mut Raw<D>, limits: Limits) -> Result<Self::Done, sqlx::Error> {
        let Change { work, uid, name } = self.change;
        let mut batch = Batch::<D> {
            connection,
            limits,
            work,
        };
        let Some(row) = batch.lock_rows(&[&uid.0]).await?.remove(uid) else {
            return Ok(Err(DirectError::Missing));
        };
        match (row.delete_time, row.life()) {
            (Some(time), _) => return Ok(Err(DirectError::Deleted(time))),
            (None, Life::Live) => return Ok(Err(DirectError::Live)),
            (None, Life::Archived | Life::Deleted) => {}
        }
        if batch.has_reference(uid, &name.to_string()).await? {
            return Ok(Ok(Placed::Already));
        }
        if let Some(since) = batch.tombstone_of(uid).await? {
            return Ok(Err(DirectError::Deleting(since)));
        }
        let new = NewReference {
            uid: &uid.0,
            name: name.clone(),
            placed_by: Some(self.placed_by),
        };
        batch.place_references(&[new]).await?;
        batch.touch(&[&uid.0]).await?;
        Ok(Ok(Placed::New))
    }
}

impl<D: Driver> InTransaction<D> for Release<'_> {
    type Done = Released;

    fn kind(&self) -> &'static str {
        self.0.work.kind.name
    }

    async fn run(&self, connection: &mut Raw<D>, limits: Limits) -> Result<Released, sqlx::Error> {
        let Change { work, uid, name } = self.0;
        let mut batch = Batch::<D> {
            connection,
            limits,
            work,
        };
        let row = batch.lock_rows(&[&uid.0]).await?.remove(uid);
        if !batch.release_reference(uid, &name.to_string()).await? {
            return Ok(Released::Absent);
        }
        batch.touch(&[&uid.0]).await?;
        let Some(row) = row.filter(|row| row.life() == Life::Archived) else {
            return Ok(Released::Released);
        };
        if batch.tombstone_of(uid).await?.is_none() {
            return Ok(Released::Released);
        }
        let deletions = batch.delete_archived(&[&row], DeletionMode::Unheld).await?;
        Ok(match deletions.held.is_empty() {
            true => Released::Deleted,
            false => Released::Released,
        })
    }
}

impl<D: Driver> SqlStore<D> {
    pub(crate) fn reference_work<'a>(&self, kind: &'a Kind, sql: &'a KindSql, now: Timestamp) -> Work<'a> {
        Work {
            sql,
            kind,
            now,
            platform: self.registry.platform,
            draw: self.draw,
            history: None,
        }
    }
}

#[async_trait]
impl<D: Driver> References for SqlStore<D> {
    async fn place_reference(
        &self,
        kind: &Kind,
        uid: &Uid,
        name: &ReferenceName,
        placed_by: &str,
        now: Timestamp,
    ) -> Result<Placed, StoreError> {
        let texts = self.texts(kind);
        let work = self.reference_work(kind, &texts, now);
        let change = Change { work: &work, uid, name };
        let placed = self.connections.transact(&PlaceReference { change, placed_by }).await;
        let placed = placed.map_err(|error| failure::<D>(kind.name, error))?;
        placed.map_err(|source| StoreError::Direct {
            kind: kind.name.to_owned(),
            uid: uid.to_string(),
            source,
        })
    }

    async fn release_reference(
        &self,
        kind: &Kind,
        uid: &Uid,
        name: &ReferenceName,
        now: Timestamp,
    ) -> Result<Released, StoreError> {
        let texts = self.texts(kind);
        let work = self.reference_work(kind, &texts, now);
        let change = Change { work: &work, uid, name };
        let released = self.connections.transact(&Release(change)).await;
        released.map_err(|error| failure::<D>(kind.name, error))
    }

    async fn references(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<Reference>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let mut found = Vec::new();
        let mut names: Vec<&str> = uids.iter().map(|uid| &*uid.0).collect();
        names.sort_unstable();
        for chunk in names.chunks(LIST_MAX) {
            let params = of_kind(kind, chunk);
            let statement = sql::of_objects(self.connections.driver.spelling(), params.len() - 1);
            let rows = self.connections.query(statement, &params).await.map_err(failed)?;
            for row in &rows {
                found.push(reference(row).map_err(failed)?);
            }
        }
        Ok(found)
    }

    async fn first_references(&self, kind: &Kind, uid: &Uid, limit: u32) -> Result<Vec<Reference>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let params = [Param::Text(kind.name), Param::Text(&uid.0), Param::Int(limit.into())];
        let statement = sql::first_of_object(self.connections.driver.spelling());
        let rows = self.connections.query(statement, &params).await.map_err(failed)?;
        rows.iter().map(reference).collect::<Result<_, _>>().map_err(failed)
    }

    async fn reference_page(
        &self,
        kind: &Kind,
        after: Option<&Reference>,
        limit: u32,
    ) -> Result<Vec<Reference>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let (uid, name) = after.map_or(("", ""), |after| (&after.uid.0, &after.name));
        let params = [
            Param::Text(kind.name),
            Param::Text(uid),
            Param::Text(uid),
            Param::Text(name),
            Param::Int(limit.into()),
        ];
        let statement = sql::page(self.connections.driver.spelling());
        let rows = self.connections.query(statement, &params).await.map_err(failed)?;
        rows.iter().map(reference).collect::<Result<_, _>>().map_err(failed)
    }

    async fn count_references(&self, kind: &Kind, uid: &Uid) -> Result<u64, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let params = of_kind(kind, &[&uid.0]);
        let statement = sql::counts(self.connections.driver.spelling(), params.len() - 1);
        let rows = self.connections.query(statement, &params).await;
        let rows = rows.map_err(failed)?;
        let count = rows.first().map_or(Ok(0), |row| row.int(1)).map_err(failed)?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    async fn references_of_holder(&self, holder: &Uid) -> Result<Vec<Reference>, StoreError> {
        let failed = |error| failure::<D>(BOOKKEEPING, error);
        let statement = sql::of_holder(self.connections.driver.spelling());
        let rows = self.connections.query(statement, &[Param::Text(&holder.0)]).await;
        let rows = rows.map_err(failed)?;
        rows.iter().map(reference).collect::<Result<_, _>>().map_err(failed)
    }

    async fn tombstones(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<Tombstone>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let names: Vec<&str> = uids.iter().map(|uid| &*uid.0).collect();
        let mut found = Vec::new();
        for chunk in names.chunks(LIST_MAX) {
            let params = of_kind(kind, chunk);
            let statement = sql::tombstones(self.connections.driver.spelling(), params.len() - 1);
            let rows = self.connections.query(statement, &params).await.map_err(failed)?;
            for row in &rows {
                found.push(tombstone(row).map_err(failed)?);
            }
        }
        Ok(found)
    }

    async fn tombstone_page(&self, kind: &Kind, after: Option<&Uid>, limit: u32) -> Result<Vec<Tombstone>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let after = after.map_or("", |uid| &uid.0);
        let params = [Param::Text(kind.name), Param::Text(after), Param::Int(limit.into())];
        let statement = sql::tombstone_page(self.connections.driver.spelling());
        let rows = self.connections.query(statement, &params).await.map_err(failed)?;
        rows.iter().map(tombstone).collect::<Result<_, _>>().map_err(failed)
    }
}

fn of_kind<'a>(kind: &Kind, uids: &[&'a str]) -> Vec<Param<'a>> {
    let mut params = vec![Param::Text(kind.name)];
    params.extend(padded_list(uids));
    params
}

fn reference(row: &impl Cells) -> Result<Reference, sqlx::Error> {
    Ok(Reference {
        kind: row.text(0)?,
        uid: Uid::from(row.text(1)?.as_str()),
        name: row.text(2)?,
        placed: row.time(3)?.ok_or_else(timeless)?,
        placed_by: row.text_or_null(4)?,
    })
}

fn tombstone(row: &impl Cells) -> Result<Tombstone, sqlx::Error> {
    Ok(Tombstone {
        uid: Uid::from(row.text(0)?.as_str()),
        requested: row.time(1)?.ok_or_else(timeless)?,
    })
}

fn timeless() -> sqlx::Error {
    sqlx::Error::Decode("a row without a time".into())
}
