//! The objects that the database refuses, each with the reason.

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion, Uid};

use crate::cells::res_version;
use crate::connections::failure;
use crate::driver::{Cells, Driver, Param};
use crate::error::StoreError;
use crate::sql_store::SqlStore;
use crate::statements::{bookkeeping, fixed};
use crate::write::record::Record;

/// An object that the database refused, as far as an ingester has to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineRecord {
    /// The object.
    pub uid: Uid,
    /// The version that was refused.
    pub version: ResourceVersion,
    /// Why.
    pub reason: String,
}

/// What is recorded of an object that the database refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// The object's uid.
    pub uid: Uid,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The version that was refused last.
    pub res_version: ResourceVersion,
    /// As the database says it.
    pub reason: String,
    /// How often it was refused.
    pub attempts: u64,
    /// When it was refused first.
    pub first_time: Timestamp,
    /// When it was refused last.
    pub last_time: Timestamp,
}

/// Recording that an object is refused, and that it is no longer.
#[async_trait]
pub trait Quarantine: Send + Sync {
    /// Records an object that the database refuses, with the reason. An earlier record of the uid is
    /// replaced; it keeps its first time, and the attempts are counted.
    async fn quarantine(&self, kind: &Kind, object: &Object, reason: &str, now: Timestamp) -> Result<(), StoreError>;

    /// The objects of a kind that are recorded so, in order of uid.
    async fn quarantined(&self, kind: &Kind) -> Result<Vec<QuarantineRecord>, StoreError>;

    /// Removes the record, after the object was stored in this version. A record of a newer
    /// version stays: it may overtake the call.
    async fn release_quarantine(&self, kind: &Kind, uid: &Uid, stored: ResourceVersion) -> Result<(), StoreError>;
}

/// Reading what is recorded, for people and for another attempt.
#[async_trait]
pub trait QuarantineRecords: Send + Sync {
    /// A page of what is recorded of refused objects, without their texts, in order of uid.
    async fn quarantine_page(
        &self,
        kind: &Kind,
        after: Option<&Uid>,
        limit: u32,
    ) -> Result<Vec<Quarantined>, StoreError>;

    /// The text of a refused object.
    async fn quarantined_text(&self, kind: &Kind, uid: &Uid) -> Result<Option<String>, StoreError>;
}

#[async_trait]
impl<D: Driver> Quarantine for SqlStore<D> {
    async fn quarantine(&self, kind: &Kind, object: &Object, reason: &str, now: Timestamp) -> Result<(), StoreError> {
        let whole = Record::of(object, reason);
        match self.record(kind, &whole, now).await {
            Err(StoreError::Refused { source, .. }) => {
                self.record(kind, &whole.cut(&source.to_string()), now).await?;
                tracing::warn!(
                    kind = kind.name,
                    ?object,
                    "The record is cut, because it was refused whole: {source}"
                );
                Ok(())
            }
            recorded => recorded,
        }
    }

    async fn quarantined(&self, kind: &Kind) -> Result<Vec<QuarantineRecord>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let params = [Param::Text(kind.name)];
        let rows = self
            .connections
            .query(bookkeeping::quarantined(), &params)
            .await
            .map_err(failed)?;
        let record = |row: &D::Row| {
            Ok(QuarantineRecord {
                uid: Uid::from(row.text(0)?.as_str()),
                version: res_version(row, 1)?,
                reason: row.text(2)?,
            })
        };
        rows.iter().map(record).collect::<Result<_, _>>().map_err(failed)
    }

    async fn release_quarantine(&self, kind: &Kind, uid: &Uid, stored: ResourceVersion) -> Result<(), StoreError> {
        let params = [
            Param::Text(kind.name),
            Param::Text(&uid.0),
            Param::Int(stored.0.cast_signed()),
        ];
        self.change(kind, bookkeeping::release_quarantine(), &params).await
    }
}

#[async_trait]
impl<D: Driver> QuarantineRecords for SqlStore<D> {
    async fn quarantine_page(
        &self,
        kind: &Kind,
        after: Option<&Uid>,
        limit: u32,
    ) -> Result<Vec<Quarantined>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let after_uid = after.map_or("", |uid| &uid.0);
        let params = [Param::Text(kind.name), Param::Text(after_uid), Param::Int(limit.into())];
        let statement = bookkeeping::quarantine_page(self.connections.driver.spelling());
        let rows = self.connections.query(statement, &params).await.map_err(failed)?;
        let record = |row: &D::Row| {
            let missing = || sqlx::Error::Decode("a record without a time".into());
            Ok(Quarantined {
                uid: Uid::from(row.text(0)?.as_str()),
                namespace: row.text(1)?,
                name: row.text(2)?,
                res_version: res_version(row, 3)?,
                reason: row.text(4)?,
                attempts: row.int(5)?.unsigned_abs(),
                first_time: row.time(6)?.ok_or_else(missing)?,
                last_time: row.time(7)?.ok_or_else(missing)?,
            })
        };
        rows.iter().map(record).collect::<Result<_, _>>().map_err(failed)
    }

    async fn quarantined_text(&self, kind: &Kind, uid: &Uid) -> Result<Option<String>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let statement = fixed("SELECT [json] FROM [kindex_quarantine] WHERE [kind] = ? AND [uid] = ?");
        let params = [Param::Text(kind.name), Param::Text(&uid.0)];
        let rows = self.connections.query(statement, &params).await.map_err(failed)?;
        rows.first().map(|row| row.text(0)).transpose().map_err(failed)
    }
}

impl<D: Driver> SqlStore<D> {
    async fn record(&self, kind: &Kind, record: &Record, now: Timestamp) -> Result<(), StoreError> {
        let params = [
            Param::Text(kind.name),
            Param::Text(&record.uid),
            Param::Text(&record.namespace),
            Param::Text(&record.name),
            Param::Int(record.version.0.cast_signed()),
            Param::Text(&record.reason),
            Param::Text(&record.text),
            Param::Time(now),
            Param::Time(now),
        ];
        let statement = bookkeeping::quarantine(self.connections.driver.spelling());
        // A server closes the connection on a packet that is too long: it would pass for one that went away.
        let fits = self.connections.check_packet(&params).await;
        fits.map_err(|error| failure::<D>(kind.name, error))?;
        self.change(kind, statement, &params).await
    }
}
