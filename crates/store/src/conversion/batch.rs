//! One batch of conversions in one transaction: lock the rows, leave out those that are no longer as they were read,
//! write the others with the text that they had, and save how far the conversion is.

use std::collections::HashMap;

use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_model::projection::ContentHash;
use kindex_model::row_version::RowVersion;
use kindex_model::tables::Side;

use crate::cells::{holds, version_of_gone};
use crate::connections::{InTransaction, failure};
use crate::conversion::{OtherVersionRow, PROGRESS, RowConversion, RowConverted, sql};
use crate::driver::{Cells, Driver, Limits, Param, Raw};
use crate::error::StoreError;
use crate::packed;
use crate::sql_store::SqlStore;
use crate::statements::{KindSql, LIST_MAX, bookkeeping, padded_list};
use crate::write::{Batch, NewRow, Work};

/// What a row holds.
struct LockedRow {
    group_ver: String,
    res_version: RowVersion,
    hash: Option<ContentHash>,
    /// Whether its extracted columns hold what the conversion would give them.
    has_columns: bool,
}

impl LockedRow {
    fn is_as_read(&self, row: &OtherVersionRow) -> bool {
        let Self {
            group_ver,
            res_version,
            hash,
            has_columns: _,
        } = self;
        *group_ver == row.group_ver && *res_version == row.res_version && *hash == row.hash
    }
}

struct Conversions<'a> {
    work: &'a Work<'a>,
    /// In the order of uid that all writers have.
    rows: &'a [&'a RowConversion],
    progress: Option<&'a str>,
}

pub(super) async fn write<D: Driver>(
    store: &SqlStore<D>,
    kind: &'static Kind,
    rows: &[RowConversion],
    progress: Option<&str>,
    now: Timestamp,
) -> Result<Vec<RowConverted>, StoreError> {
    let work = Work {
        sql: &store.texts(kind),
        kind,
        now,
        platform: store.registry.platform,
        draw: store.draw,
        history: None,
    };
    let mut sorted: Vec<&RowConversion> = rows.iter().collect();
    sorted.sort_unstable_by_key(|one| &one.row.uid);
    let conversions = Conversions {
        work: &work,
        rows: &sorted,
        progress,
    };
    let converted = store.connections.transact(&conversions).await;
    let converted = converted.map_err(|error| failure::<D>(kind.name, error))?;
    let became = |row: &RowConversion| match converted.binary_search(&row.row.uid) {
        Ok(_) => RowConverted::Converted,
        Err(_) => RowConverted::Superseded,
    };
    Ok(rows.iter().map(became).collect())
}

impl<D: Driver> InTransaction<D> for Conversions<'_> {
    /// The rows that were converted, in order.
    type Done = Vec<Uid>;

    fn kind(&self) -> &'static str {
        self.work.kind.name
    }

    async fn run(&self, connection: &mut Raw<D>, limits: Limits) -> Result<Vec<Uid>, sqlx::Error> {
        let mut batch = Batch::<D> {
            connection,
            limits,
            work: self.work,
        };
        let held = self.lock(&mut batch).await?;
        let is_as_read = |one: &&&RowConversion| held.get(&one.row.uid).is_some_and(|held| held.is_as_read(&one.row));
        let current: Vec<&RowConversion> = self.rows.iter().filter(is_as_read).copied().collect();
        self.write_main(&mut batch, &current, &held).await?;
        let new: Vec<NewRow<'_>> = current.iter().map(|one| new_row(one)).collect();
        for side in [Side::Labels, Side::Annotations] {
            batch.write_side(side, &[], &new).await?;
        }
        self.keep(&mut batch, &current).await?;
        if let Some(progress) = self.progress {
            let statement = bookkeeping::save_state(self.work.sql.spelling());
            let params = [
                Param::Text(self.work.kind.name),
                Param::Text(PROGRESS),
                Param::Text(progress),
                Param::Time(self.work.now),
            ];
            D::execute(batch.connection, statement, &params).await?;
        }
        Ok(current.iter().map(|one| one.row.uid.clone()).collect())
    }
}

impl Conversions<'_> {
    /// Rows that are archived or deleted, as they are until the transaction ends.
    async fn lock<D: Driver>(&self, batch: &mut Batch<'_, D>) -> Result<HashMap<Uid, LockedRow>, sqlx::Error> {
        let mut held = HashMap::with_capacity(self.rows.len());
        for chunk in self.rows.chunks(LIST_MAX) {
            let uids: Vec<&str> = chunk.iter().map(|one| &*one.row.uid.0).collect();
            let params = padded_list(&uids);
            let columns = &self.work.kind.columns;
            let statement = sql::lock(self.work.sql.spelling(), self.work.kind, params.len());
            for row in D::query(batch.connection, statement, &params).await? {
                let uid = Uid::from(row.text(0)?.as_str());
                let Ok(at) = chunk.binary_search_by_key(&&uid, |one| &one.row.uid) else {
                    continue;
                };
                let values = &chunk[at].version.columns;
                let found = LockedRow {
                    group_ver: row.text(1)?,
                    res_version: version_of_gone(&row, 2)?,
                    hash: row.bytes(3)?.as_deref().and_then(ContentHash::from_bytes),
                    has_columns: holds(&row, 4, columns.iter().zip(values)),
                };
                held.insert(uid, found);
            }
        }
        Ok(held)
    }

    /// The extracted columns, and so their keys, are written only where the conversion changes them.
    async fn write_main<D: Driver>(
        &self,
        batch: &mut Batch<'_, D>,
        rows: &[&RowConversion],
        held: &HashMap<Uid, LockedRow>,
    ) -> Result<(), sqlx::Error> {
        let has_columns = |one: &&RowConversion| held.get(&one.row.uid).is_some_and(|held| held.has_columns);
        let (texts, wholes): (Vec<_>, Vec<_>) = rows.iter().copied().partition(has_columns);
        let texts: Vec<NewRow<'_>> = texts.into_iter().map(new_row).collect();
        batch.write_rows(&texts, KindSql::convert_text).await?;
        let wholes: Vec<NewRow<'_>> = wholes.into_iter().map(new_row).collect();
        batch.write_rows(&wholes, KindSql::convert).await
    }

    /// Keeps the texts that the rows had.
    async fn keep<D: Driver>(&self, batch: &mut Batch<'_, D>, rows: &[&RowConversion]) -> Result<(), sqlx::Error> {
        let rows: Vec<[Param<'_>; 7]> = rows.iter().map(|one| self.kept(one)).collect();
        let keep = |sql: &KindSql, rows| sql::keep(sql.spelling(), rows);
        batch.execute_rows(&rows, keep).await
    }

    fn kept<'p>(&self, one: &'p RowConversion) -> [Param<'p>; 7] {
        [
            Param::Text(self.work.kind.name),
            Param::Text(&one.row.uid.0),
            Param::Text(&one.row.group_ver),
            Param::Int(one.row.res_version.pack().0.cast_signed()),
            Param::Time(self.work.now),
            Param::Int(packed::ENCODING),
            Param::Bytes(&one.payload),
        ]
    }
}

/// The times are those of the row, which [`KindSql::convert`] leaves alone.
fn new_row(one: &RowConversion) -> NewRow<'_> {
    let (held, made) = (one.row.hash, one.version.hash);
    NewRow {
        version: &one.version,
        arrival: Some(one.row.arrival),
        delete_time: None,
        evicted_time: None,
        labels: held.map(|hash| hash.labels) != Some(made.labels),
        annotations: held.map(|hash| hash.annotations) != Some(made.annotations),
        revived: false,
        begins_anew: false,
    }
}
