//! The store over any driver: connections, transactions, retries and errors around
//! the statements of `sql`. Knows no dialect.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::kind::{Kind, Registry};
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_query::Stored;

use super::connections::{Connections, failure};
use super::driver::{Cells, Driver, Fault, Param, Statement};
use super::history::sql::{self as history_sql, HistorySql};
use super::history::{Keeping, lost_branch};
use super::migration::{MigrationStanding, Migrations as _};
use super::record::Record;
use super::rows::{found_row, res_version, stored};
use super::sql::{self, KindSql, LIST_MAX, ListFilter};
use super::write::{Work, padded_list};
use super::{
    Arrival, Calls, Counts, Dialect, ListQuery, MARKS_FROM, MetadataStorage, Outage, PoolUse, QuarantineRecord,
    RowState, RowWrite, Saving, StoreError, Written, bookkeeping, schema,
};

/// Rows a page of a list where the caller does not say.
const PAGE_ROWS: u32 = 500;
/// What errors of the bookkeeping tables name as their kind.
pub(super) const BOOKKEEPING: &str = "kindex";

pub(super) struct SqlStore<D> {
    pub(super) connections: Connections<D>,
    pub(super) registry: Registry,
    schema: &'static str,
    /// Texts by main table.
    texts: Mutex<HashMap<&'static str, Arc<KindSql>>>,
}

impl<D: Driver> SqlStore<D> {
    pub(super) fn new(driver: D, registry: Registry, schema: &'static str) -> Self {
        Self {
            connections: Connections::new(driver),
            registry,
            schema,
            texts: Mutex::default(),
        }
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(super) fn texts(&self, kind: &Kind) -> Arc<KindSql> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let found = texts
            .entry(kind.table)
            .or_insert_with(|| Arc::new(KindSql::new(self.connections.driver.dialect(), kind)));
        found.clone()
    }

    async fn create_tables(&self) -> Result<(), StoreError> {
        let bookkeeping = |error| failure::<D>(BOOKKEEPING, error);
        for text in schema::statements(self.schema) {
            let done = self.connections.execute(bookkeeping::schema_statement(text), &[]).await;
            done.map_err(bookkeeping)?;
        }
        Ok(())
    }

    /// Whether all tables have the columns that this program writes.
    pub(super) async fn probe_tables(&self) -> Result<(), StoreError> {
        for kind in self.registry.kinds {
            let history = kind.history.then(|| history_sql::table_and_columns(kind));
            for (table, columns) in sql::tables(kind).into_iter().chain(history) {
                let probed = self.connections.query(bookkeeping::probe(&table, &columns), &[]).await;
                probed.map_err(|error| match D::classify(&error) {
                    Fault::Schema => StoreError::Schema(format!(
                        "table `{table}` is not the one that kind {} is written to ({error}): \
                         write a migration with `kindex plan`, build, and run `kindex migrate`; \
                         or use an empty database",
                        kind.name
                    )),
                    _ => failure::<D>(kind.name, error),
                })?;
            }
        }
        Ok(())
    }

    /// Remembers that the tables are those of this program.
    pub(super) async fn record_schema(&self) -> Result<(), StoreError> {
        let checksum = schema::checksum(self.schema);
        let params = [
            Param::Int(schema::VERSION),
            Param::Text(&checksum),
            Param::Time(Timestamp::now()),
        ];
        let statement = bookkeeping::record_schema(self.connections.driver.dialect());
        let recorded = self.connections.execute(statement, &params).await;
        recorded.map(drop).map_err(|error| failure::<D>(BOOKKEEPING, error))
    }

    /// The recorded version and checksum; `None` in an empty database.
    async fn recorded_schema(&self) -> Result<Option<(i64, String)>, StoreError> {
        match self.connections.query(bookkeeping::schema_version(), &[]).await {
            Ok(rows) => rows
                .first()
                .map(|row| Ok((row.int(0)?, row.text(1)?)))
                .transpose()
                .map_err(|error| failure::<D>(BOOKKEEPING, error)),
            Err(error) if D::classify(&error) == Fault::Schema => Ok(None),
            Err(error) => Err(failure::<D>(BOOKKEEPING, error)),
        }
    }
}

#[async_trait]
impl<D: Driver> MetadataStorage for SqlStore<D> {
    async fn prepare(&self) -> Result<(), StoreError> {
        let bookkeeping = |error| failure::<D>(BOOKKEEPING, error);
        let created = self.connections.driver.create_database().await;
        created
            .inspect_err(|error| self.connections.note(error))
            .map_err(bookkeeping)?;
        let recorded = self.recorded_schema().await?;
        let standing = self.standing().await?;
        let refusal = recorded.as_ref().and_then(|(version, _)| schema::refusal(*version));
        let refusal = refusal.or_else(|| standing.refusal(self.registry.migrations));
        if let Some(refusal) = refusal {
            return Err(StoreError::Schema(refusal));
        }
        let checksum = schema::checksum(self.schema);
        let notice = recorded.as_ref().map(|(_, known)| schema::notice(known, &checksum));
        let known = notice == Some(None);
        // An account that may only read and write is enough for a database that is ready, or that a newer program
        // has migrated, which allows this one to write.
        let is_ready =
            known && standing == MigrationStanding::Current || matches!(standing, MigrationStanding::Ahead { .. });
        if is_ready && self.probe_tables().await.is_ok() {
            return Ok(());
        }
        if standing == MigrationStanding::Untracked {
            self.refuse_foreign().await?;
        }
        if let Some(notice) = notice.flatten() {
            tracing::warn!("{notice}");
        }
        self.create_tables().await?;
        self.probe_tables().await?;
        if standing == MigrationStanding::Untracked {
            self.record_all_migrations().await?;
        }
        self.record_schema().await
    }

    async fn row_states(&self, kind: &Kind, uids: &[Uid]) -> Result<Vec<RowState>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let texts = self.texts(kind);
        let names: Vec<&str> = uids.iter().map(|uid| &*uid.0).collect();
        let mut states = Vec::with_capacity(uids.len());
        for chunk in names.chunks(LIST_MAX) {
            let params = padded_list(chunk);
            let statement = texts.states(params.len(), false);
            for row in self.connections.query(statement, &params).await.map_err(failed)? {
                states.push(found_row(&row).map_err(failed)?.into());
            }
        }
        Ok(states)
    }

    async fn write(&self, kind: &Kind, batch: &[RowWrite], now: Timestamp) -> Result<Vec<Written>, StoreError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let work = Work {
            sql: &self.texts(kind),
            kind,
            now,
            restored_from: self.restored_from(),
            keeping: kind.history.then(|| Keeping::new(self.history_sql(kind), batch, now)),
        };
        let written = self.connections.write(&work, batch).await;
        written.map_err(|error| failure::<D>(kind.name, error))
    }

    async fn rewind(&self, kind: &Kind, uids: &[Uid], now: Timestamp) -> Result<(), StoreError> {
        let mut names: Vec<&str> = uids.iter().map(|uid| &*uid.0).collect();
        names.sort_unstable();
        for chunk in names.chunks(LIST_MAX) {
            let params = padded_list(chunk);
            if kind.history {
                // First: a row whose history was not taken back would hide what follows.
                let branch = [Param::Int(lost_branch(now))];
                let statement = self.history_sql(kind).branch_off(params.len());
                self.change(kind, statement, &[&branch[..], &params].concat()).await?;
            }
            let statement = self.texts(kind).rewind(params.len());
            self.change(kind, statement, &params).await?;
        }
        Ok(())
    }

    async fn unsay(&self, kind: &Kind, beyond: ResourceVersion, now: Timestamp) -> Result<(), StoreError> {
        if !kind.history {
            return Ok(());
        }
        let params = [Param::Int(lost_branch(now)), Param::Int(beyond.0.cast_signed())];
        let statement = self.history_sql(kind).branch_off_beyond();
        self.change(kind, statement, &params).await
    }

    async fn scan(&self, kind: &Kind, after: Option<Arrival>, limit: u32) -> Result<Vec<RowState>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let mut params: Vec<Param<'_>> = after.iter().map(|after| Param::Int(after.0)).collect();
        params.push(Param::Int(limit.into()));
        let statement = self.texts(kind).scan(after.is_none());
        let rows = self.connections.query(statement, &params).await.map_err(failed)?;
        rows.iter()
            .map(|row| Ok(found_row(row).map_err(failed)?.into()))
            .collect()
    }

    async fn get_by_name(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<Stored>, StoreError> {
        let params = [namespace, name].map(sql::exact).concat();
        self.get(kind, self.texts(kind).by_name(), &params).await
    }

    async fn get_by_id(&self, kind: &Kind, uid: &Uid) -> Result<Option<Stored>, StoreError> {
        let params = [Param::Text(&uid.0)];
        let found = self.get(kind, self.texts(kind).by_id(), &params).await?;
        let found = self.with_replaced(kind, found.into_iter().collect()).await?;
        Ok(found.into_iter().next())
    }

    async fn list(&self, kind: &Kind, query: &ListQuery) -> Result<Vec<Stored>, StoreError> {
        let limit = if query.limit == 0 { PAGE_ROWS } else { query.limit };
        let namespace = query.namespace.iter().flat_map(|text| sql::exact(text));
        let after = query.after.iter().map(|uid| Param::Text(&uid.0));
        let labels = query.labels.iter().flat_map(|(key, value)| [key, value]);
        let params: Vec<Param<'_>> = namespace
            .chain(after)
            .chain(labels.flat_map(|text| sql::exact(text)))
            .chain([Param::Int(limit.into())])
            .collect();
        let statement = self.texts(kind).list(ListFilter {
            namespace: query.namespace.is_some(),
            after: query.after.is_some(),
            include_deleted: query.include_deleted,
            labels: query.labels.len(),
        });
        let rows = self.connections.query(statement, &params).await;
        let rows = rows.map_err(|error| failure::<D>(kind.name, error))?;
        rows.iter().map(|row| stored(kind, row)).collect()
    }

    fn dialect(&self) -> Dialect {
        self.connections.driver.dialect()
    }

    async fn count(&self, kind: &Kind) -> Result<Counts, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let rows = self
            .connections
            .query(self.texts(kind).count(), &[])
            .await
            .map_err(failed)?;
        let row = rows.first().expect("an aggregate without groups has one row");
        let number = |index| row.int(index).map(i64::unsigned_abs).map_err(failed);
        Ok(Counts {
            live: number(0)?,
            evicted: number(1)?,
            deleted: number(2)?,
        })
    }

    async fn checkpoint(&self, kind: &Kind) -> Result<Option<ResourceVersion>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let params = [Param::Text(kind.name)];
        let rows = self
            .connections
            .query(bookkeeping::checkpoint(), &params)
            .await
            .map_err(failed)?;
        let version = rows.first().map(|row| res_version(row, 0));
        version.transpose().map_err(failed)
    }

    async fn save_checkpoint(
        &self,
        kind: &Kind,
        version: ResourceVersion,
        known_mark: Option<ResourceVersion>,
        now: Timestamp,
    ) -> Result<Saving, StoreError> {
        let [kind_name, now] = [Param::Text(kind.name), Param::Time(now)];
        let [version, least, known] =
            [version, MARKS_FROM, known_mark.unwrap_or_default()].map(|version| Param::Int(version.0.cast_signed()));
        let replace = bookkeeping::replace_checkpoint();
        let params = [version, now, kind_name, least, known];
        if self.count_changed(kind, replace, &params).await? > 0 {
            return Ok(Saving::Done);
        }
        let first = bookkeeping::first_checkpoint(self.connections.driver.dialect());
        if self.count_changed(kind, first, &[kind_name, version, now]).await? > 0 {
            return Ok(Saving::Done);
        }
        let found = self.checkpoint(kind).await?;
        Ok(Saving::Refused(found.unwrap_or_default()))
    }

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

    async fn close(&self) {
        self.connections.driver.close().await;
    }

    fn pool(&self) -> Option<PoolUse> {
        Some(self.connections.driver.pool())
    }

    fn calls(&self) -> Option<&Calls> {
        Some(&self.connections.calls)
    }

    fn outage(&self) -> Option<&Outage> {
        Some(&self.connections.outage)
    }
}

impl<D: Driver> SqlStore<D> {
    /// See [`Work::restored_from`].
    pub(super) fn restored_from(&self) -> &'static str {
        self.registry.platform.restored_from
    }

    pub(super) fn history_sql(&self, kind: &Kind) -> HistorySql {
        HistorySql {
            dialect: self.dialect(),
            main_table: kind.table,
        }
    }

    async fn get(&self, kind: &Kind, statement: Statement, params: &[Param<'_>]) -> Result<Option<Stored>, StoreError> {
        let rows = self.connections.query(statement, params).await;
        let rows = rows.map_err(|error| failure::<D>(kind.name, error))?;
        rows.first().map(|row| stored(kind, row)).transpose()
    }

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
        let statement = bookkeeping::quarantine(self.connections.driver.dialect());
        // A server closes the connection on a packet that is too long: it would pass for one that went away.
        let fits = self.connections.check_packet(&params).await;
        fits.map_err(|error| failure::<D>(kind.name, error))?;
        self.change(kind, statement, &params).await
    }

    async fn change(&self, kind: &Kind, statement: Statement, params: &[Param<'_>]) -> Result<(), StoreError> {
        self.count_changed(kind, statement, params).await.map(drop)
    }

    /// How many rows a statement found, whether it changed their values or not.
    async fn count_changed(&self, kind: &Kind, statement: Statement, params: &[Param<'_>]) -> Result<u64, StoreError> {
        let changed = self.connections.execute(statement, params).await;
        changed.map_err(|error| failure::<D>(kind.name, error))
    }
}
