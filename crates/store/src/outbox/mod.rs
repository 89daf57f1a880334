//! The outbox: one row per object of a kind with `events = true`, live and archived alike, with what changed last. From
//! it subscribers learn what exists and what goes. Knows no dialect.

mod fill;

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;

use crate::calls::Step;
use crate::connections::failure;
use crate::driver::{Cells, Driver, Param, Purpose, Raw};
use crate::error::StoreError;
use crate::sql_store::SqlStore;
use crate::statements::outbox as sql;
use crate::write::{Position, number, position};

/// An object, and what changed last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEntry {
    /// The object.
    pub uid: Uid,
    /// Its namespace; empty for a kind of the whole cluster.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The place of its last change in the order of the kind.
    pub position: Position,
    /// Since when it is being deleted; set wherever `erased` is.
    pub deletion_timestamp: Option<Timestamp>,
    /// The object is gone: this entry is its tombstone.
    pub erased: bool,
}

/// The end of a transaction in the order of a kind. Two databases that were restored from one backup have different
/// stamps at the same position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mark {
    /// The position of the last change of the transaction.
    pub position: Position,
    /// A random number that the transaction drew.
    pub stamp: u64,
}

/// Reading the outbox. Kinds without `events = true` have nothing in it.
///
/// # Expected flow
/// Note the [`head`](Self::head), page through [`replay`](Self::replay), then read [`since`](Self::since) that mark,
/// and since the mark that each answer ends with. What a replay shows may be newer than the noted head: a subscriber
/// may resume by a mark once it has read up to a head that was noted after the replay.
///
/// # Guarantees
/// A change is in here in the same transaction as the row, and positions are committed in order, without gaps: once
/// one is seen, all before it are. Each change is seen at least once, unless a newer one of the same object takes its
/// place. The tombstone of an object is there before its row is erased, and for seven days.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// The end of the newest transaction; zero where there is none.
    ///
    /// # Errors
    /// [`StoreError::Schema`] where objects have no entries because a program wrote that knows the kind without
    /// `events = true`.
    async fn head(&self, kind: &Kind) -> Result<Mark, StoreError>;

    /// A page of all objects, tombstones too, in order of uid.
    async fn replay(&self, kind: &Kind, after: Option<&Uid>, limit: u32) -> Result<Vec<OutboxEntry>, StoreError>;

    /// What changed after a mark, in order, and the mark to go on from. `None` where the mark is not of this database,
    /// which was restored since, or is older than what is kept: only a replay says then what exists.
    ///
    /// A page ends where a transaction ends. It has more entries than `limit` where one transaction has. A page without
    /// entries is the last one. The zero mark is before everything, and always valid.
    async fn since(&self, kind: &Kind, after: Mark, limit: u32)
    -> Result<Option<(Vec<OutboxEntry>, Mark)>, StoreError>;
}

#[async_trait]
impl<D: Driver> Outbox for SqlStore<D> {
    async fn head(&self, kind: &Kind) -> Result<Mark, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        if kind.events && !self.is_filled(kind).await? {
            return Err(StoreError::Schema(format!(
                "{}: not all objects are in the outbox, since a program wrote without `events = true`: \
                 start a program with it, which completes the outbox first",
                kind.name
            )));
        }
        let rows = self.connections.query(sql::head(), &[Param::Text(kind.name)]).await;
        let rows = rows.map_err(failed)?;
        let head = rows.first().map(mark).transpose().map_err(failed)?;
        Ok(head.unwrap_or_default())
    }

    async fn replay(&self, kind: &Kind, after: Option<&Uid>, limit: u32) -> Result<Vec<OutboxEntry>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let after = after.map_or("", |uid| &uid.0);
        let params = [Param::Text(kind.name), Param::Text(after), Param::Int(limit.into())];
        let statement = sql::replay(self.connections.driver.spelling());
        let rows = self.connections.query(statement, &params).await.map_err(failed)?;
        rows.iter().map(entry).collect::<Result<_, _>>().map_err(failed)
    }

    async fn since(
        &self,
        kind: &Kind,
        after: Mark,
        limit: u32,
    ) -> Result<Option<(Vec<OutboxEntry>, Mark)>, StoreError> {
        let read = async {
            // On one connection: no later statement sees less than the first one, which finds the head.
            let mut connection = self.connections.acquire(Purpose::Read).await?;
            let call = self.since_on(&mut connection, kind, after, limit);
            let under_way = self.connections.calls.begin(Step::Read, kind.name);
            let answer = under_way.bound(self.connections.driver.call_timeout(), call).await;
            self.connections.settle(connection, answer)
        };
        read.await.map_err(|error| failure::<D>(kind.name, error))
    }
}

impl<D: Driver> SqlStore<D> {
    async fn since_on(
        &self,
        connection: &mut Raw<D>,
        kind: &Kind,
        after: Mark,
        limit: u32,
    ) -> Result<Option<(Vec<OutboxEntry>, Mark)>, sqlx::Error> {
        let of_kind = Param::Text(kind.name);
        let known = D::query(connection, sql::known(), &[of_kind, number(after.position.0), of_kind]).await?;
        let known = known.iter().map(mark).collect::<Result<Vec<_>, _>>()?;
        let is_known = after == Mark::default() || known.contains(&after);
        let head = known.into_iter().max_by_key(|mark| mark.position).unwrap_or_default();
        if !is_known {
            return Ok(None);
        }
        if head.position <= after.position {
            return Ok(Some((Vec::new(), after)));
        }
        let mut limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
        loop {
            let most = i64::try_from(limit).unwrap_or(i64::MAX);
            let [from, to] = [after, head].map(|mark| number(mark.position.0));
            let statement = sql::since(self.connections.driver.spelling());
            let rows = D::query(connection, statement, &[of_kind, from, to, Param::Int(most)]).await?;
            let mut entries = rows.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
            let last = match entries.last() {
                Some(last) if entries.len() >= limit => last.position,
                _ => return Ok(Some((entries, head))),
            };
            let params = [of_kind, number(after.position.0), number(last.0)];
            let ended = D::query(connection, sql::last_between(), &params).await?;
            if let Some(end) = ended.first().map(mark).transpose()? {
                entries.retain(|entry| entry.position <= end.position);
                if !entries.is_empty() {
                    return Ok(Some((entries, end)));
                }
            }
            // The next transaction with entries has more of them.
            limit = limit.saturating_mul(2);
        }
    }
}

fn mark(row: &impl Cells) -> Result<Mark, sqlx::Error> {
    Ok(Mark {
        position: position(row, 0)?,
        stamp: row.int(1)?.cast_unsigned(),
    })
}

/// Reads what [`sql::since`] selects.
fn entry(row: &impl Cells) -> Result<OutboxEntry, sqlx::Error> {
    Ok(OutboxEntry {
        uid: Uid::from(row.text(0)?.as_str()),
        namespace: row.text(1)?,
        name: row.text(2)?,
        position: position(row, 3)?,
        deletion_timestamp: row.time(4)?,
        erased: row.time(5)?.is_some(),
    })
}
