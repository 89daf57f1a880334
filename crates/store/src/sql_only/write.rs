//! One write of an object of a SQL-only kind, in its transaction: the kind's writers are lined up before anything is
//! read, so that what is found stays as it is.

use jiff::Timestamp;
use kindex_model::kind::{Kind, Platform};
use kindex_model::object::{Object, ResourceVersion};
use kindex_model::projection::Version;
use kindex_model::row_version::RowVersion;
use kindex_query::{Life, Revive};

use crate::cells::{FoundRow, stored};
use crate::connections::InTransaction;
use crate::driver::{Driver, Limits, Param, Raw};
use crate::error::StoreError;
use crate::row::RowWrite;
use crate::sql_only::{SqlOnlyWrite, SqlOnlyWritten, sql_only_version};
use crate::statements::history::HistorySql;
use crate::statements::{KindSql, padded_pairs};
use crate::write::{Batch, Event, FeedEntry, HistoryBatch, NewRow, Work, replacement};

/// A write and what it is made with.
pub(super) struct WriteTransaction<'a> {
    pub(super) sql: &'a KindSql,
    pub(super) kind: &'a Kind,
    pub(super) now: Timestamp,
    pub(super) platform: Platform,
    /// Draws the stamp of a transaction in the outbox.
    pub(super) draw: fn() -> u64,
    pub(super) history: Option<HistorySql>,
    pub(super) object: &'a Object,
    pub(super) write: SqlOnlyWrite,
}

/// What is there before a write.
enum PreviousState {
    /// Nothing of the name.
    Nothing,
    /// This row, with this text.
    Row(Box<FoundRow>, Object),
}

impl<D: Driver> InTransaction<D> for WriteTransaction<'_> {
    type Done = Result<SqlOnlyWritten, StoreError>;

    fn kind(&self) -> &'static str {
        self.kind.name
    }

    async fn run(&self, connection: &mut Raw<D>, limits: Limits) -> Result<Self::Done, sqlx::Error> {
        let work = self.work(None);
        let mut batch = Batch::<D> {
            connection,
            limits,
            work: &work,
        };
        // Takes no number, and keeps others from taking one.
        batch.advance_feed(0).await?;
        let before = match self.write {
            SqlOnlyWrite::Create => self
                .name_is_free(&mut batch)
                .await?
                .then_some(Ok(PreviousState::Nothing)),
            SqlOnlyWrite::Replace { read } | SqlOnlyWrite::Remove { read } => self.found(&mut batch, read).await?,
        };
        let before = match (before, self.write) {
            (Some(Ok(before)), _) => before,
            (Some(Err(error)), _) => return Ok(Err(error)),
            (None, SqlOnlyWrite::Create) => return Ok(Ok(SqlOnlyWritten::Exists)),
            (None, SqlOnlyWrite::Replace { .. } | SqlOnlyWrite::Remove { .. }) => {
                return Ok(Ok(SqlOnlyWritten::Changed));
            }
        };
        let last = batch.advance_feed(1).await?;
        let version = Version::project(self.kind, self.object.with_version(sql_only_version(last)));
        let work = self.work(Some(&version));
        let mut batch = Batch::<D> {
            connection: batch.connection,
            limits: batch.limits,
            work: &work,
        };
        let uid = &*version.object.metadata.uid.0;
        let text = match &before {
            PreviousState::Nothing => {
                batch.insert(self.new_row(&version)).await?;
                None
            }
            PreviousState::Row(row, held) => {
                let removed = matches!(self.write, SqlOnlyWrite::Remove { .. });
                let changed = NewRow {
                    delete_time: removed.then_some(self.now),
                    ..replacement(&version, row)
                };
                batch.replace(changed).await?;
                Some(held.text())
            }
        };
        batch.write_to_feed(last, &[FeedEntry::of_object(uid, text)]).await?;
        if self.kind.events {
            batch.append_to_outbox(&[self.event(&version)]).await?;
        }
        Ok(Ok(SqlOnlyWritten::Done(version.object.clone())))
    }
}

impl WriteTransaction<'_> {
    fn work(&self, version: Option<&std::sync::Arc<Version>>) -> Work<'_> {
        let stored = version.map(|version| RowWrite::Store {
            version: version.clone(),
            life: Life::Live,
            revive: Revive::Never,
        });
        let stored: Vec<RowWrite> = stored.into_iter().collect();
        let history = self.history.filter(|_| !stored.is_empty());
        Work {
            sql: self.sql,
            kind: self.kind,
            now: self.now,
            platform: self.platform,
            draw: self.draw,
            history: history.map(|sql| HistoryBatch::new(sql, &stored, self.now)),
        }
    }

    fn event<'v>(&self, version: &'v Version) -> Event<'v> {
        let event = Event::of_version(version, version.object.metadata.deletion_timestamp);
        match self.write {
            SqlOnlyWrite::Remove { .. } => event.erased(self.now),
            SqlOnlyWrite::Create | SqlOnlyWrite::Replace { .. } => event,
        }
    }

    fn new_row<'v>(&self, version: &'v Version) -> NewRow<'v> {
        NewRow {
            version,
            arrival: None,
            delete_time: None,
            evicted_time: None,
            labels: true,
            annotations: true,
            revived: false,
            begins_anew: false,
        }
    }

    async fn name_is_free<D: Driver>(&self, batch: &mut Batch<'_, D>) -> Result<bool, sqlx::Error> {
        let metadata = &self.object.metadata;
        let params = padded_pairs(&[(metadata.namespace.as_str(), metadata.name.as_str())]);
        let rows = D::query(batch.connection, self.sql.namesakes(params.len() / 2), &params).await?;
        Ok(rows.is_empty())
    }

    /// The row, if it is there and has the version that was read.
    async fn found<D: Driver>(
        &self,
        batch: &mut Batch<'_, D>,
        read: ResourceVersion,
    ) -> Result<Option<Result<PreviousState, StoreError>>, sqlx::Error> {
        let uid = &self.object.metadata.uid;
        let Some(row) = batch.lock_rows(&[&uid.0]).await?.remove(uid) else {
            return Ok(None);
        };
        if row.life() == Life::Deleted || row.res_version != RowVersion::Cluster(read) {
            return Ok(None);
        }
        let rows = D::query(batch.connection, self.sql.by_id(), &[Param::Text(&uid.0)]).await?;
        let held = rows.first().map(|found| stored(self.kind, found));
        Ok(held.map(|held| held.map(|held| PreviousState::Row(Box::new(row), held.object))))
    }
}
