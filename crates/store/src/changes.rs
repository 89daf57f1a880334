//! What changed in SQL alone, for those who follow: no cluster tells of it. The changes of a kind are numbered in the
//! order of their commits, so that who has read up to a position has missed nothing. The oldest are dropped as new
//! ones come. Knows no dialect.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use kindex_model::kind::Kind;
use kindex_model::object::{ResourceVersion, Uid};
use serde_json::Value;

use super::StoreError;
use super::connections::failure;
use super::dialect::{Dialect, marks};
use super::driver::{Cells, Driver, Param, Statement};
use super::sql::{LIST_MAX, fixed, kept, once};
use super::sql_store::{BOOKKEEPING, SqlStore};
use super::write::Batch;

/// How many changes of a kind are kept, at least.
pub const CHANGES_KEPT: u64 = 100_000;
/// Dropped at once.
const CHANGES_DROPPED: u64 = 1_000;

/// How many changes of a kind there were up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// One change of an object that lives, or lived, in SQL alone. What the object is now its row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its place in the order.
    pub position: Position,
    /// The object.
    pub uid: Uid,
    /// Its labels before it was updated; none where it was deleted.
    pub labels: Option<BTreeMap<String, String>>,
}

/// The order of what changed in SQL alone.
///
/// # Guarantees
/// A change is in here as soon as the row has changed, in the same transaction. Positions are committed in order,
/// without gaps: once one is seen, all before it are.
#[async_trait]
pub trait Changes: Send + Sync {
    /// How far each kind has come, by its name; kinds without any change are left out.
    async fn positions(&self) -> Result<HashMap<String, Position>, StoreError>;

    /// The changes after a position, in order; `None` where some of these were dropped.
    async fn changes(&self, kind: &Kind, after: Position, limit: u32) -> Result<Option<Vec<Change>>, StoreError>;

    /// Remembers that the cluster had this version after everybody who follows had seen this change. The first
    /// who says it is heard.
    async fn mark(&self, kind: &Kind, position: Position, version: ResourceVersion) -> Result<(), StoreError>;

    /// The last change that is marked with a version before this one: who has seen the cluster's version has seen
    /// the changes up to it.
    async fn marked_before(&self, kind: &Kind, version: ResourceVersion) -> Result<Option<Position>, StoreError>;
}

#[async_trait]
impl<D: Driver> Changes for SqlStore<D> {
    async fn positions(&self) -> Result<HashMap<String, Position>, StoreError> {
        let failed = |error| failure::<D>(BOOKKEEPING, error);
        let statement = fixed("SELECT `kind`, `position` FROM `kindex_feed`");
        let rows = self.connections.query(statement, &[]).await.map_err(failed)?;
        let read = |row: &D::Row| Ok((row.text(0)?, position(row, 1)?));
        rows.iter().map(read).collect::<Result<_, _>>().map_err(failed)
    }

    async fn changes(&self, kind: &Kind, after: Position, limit: u32) -> Result<Option<Vec<Change>>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let statement = fixed(
            "SELECT `position`, `uid`, `labels` FROM `kindex_changes` WHERE `kind` = ? AND `position` > ? \
             ORDER BY `position` LIMIT ?",
        );
        let params = [Param::Text(kind.name), number(after.0), Param::Int(limit.into())];
        let rows = self.connections.query(statement, &params).await.map_err(failed)?;
        let found: Result<Vec<Change>, _> = rows.iter().map(change::<D>).collect();
        let found = found.map_err(failed)?;
        let is_next = found.first().is_none_or(|first| first.position.0 == after.0 + 1);
        Ok(is_next.then_some(found))
    }

    async fn mark(&self, kind: &Kind, position: Position, version: ResourceVersion) -> Result<(), StoreError> {
        let statement = fixed(
            "UPDATE `kindex_changes` SET `cluster_version` = ? \
             WHERE `kind` = ? AND `position` = ? AND `cluster_version` IS NULL",
        );
        let params = [number(version.0), Param::Text(kind.name), number(position.0)];
        let marked = self.connections.execute(statement, &params).await;
        marked.map(drop).map_err(|error| failure::<D>(kind.name, error))
    }

    async fn marked_before(&self, kind: &Kind, version: ResourceVersion) -> Result<Option<Position>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let statement = fixed(
            "SELECT `position` FROM `kindex_changes` WHERE `kind` = ? AND `cluster_version` < ? \
             ORDER BY `position` DESC LIMIT 1",
        );
        let params = [Param::Text(kind.name), number(version.0)];
        let rows = self.connections.query(statement, &params).await.map_err(failed)?;
        rows.first().map(|row| position(row, 0)).transpose().map_err(failed)
    }
}

/// What an object goes through on its way out of a cluster, without becoming another one.
const ON_THE_WAY: [&str; 6] = [
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// Whether two texts of an object differ in more than that.
pub(super) fn becomes_another(before: &str, after: &str) -> bool {
    let substance = |text: &str| {
        let mut object: Value = serde_json::from_str(text).unwrap_or_default();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|field, _| !ON_THE_WAY.contains(&field.as_str()));
        }
        object
    };
    substance(before) != substance(after)
}

/// A change that is about to be committed.
pub(super) struct Told<'a> {
    uid: &'a str,
    /// JSON text of those that an update replaces.
    labels: Option<String>,
}

impl<'a> Told<'a> {
    pub(super) fn deletion(uid: &'a str) -> Self {
        Self { uid, labels: None }
    }

    pub(super) fn update(uid: &'a str, before: &BTreeMap<String, String>) -> Self {
        let labels = serde_json::to_string(before).expect("texts are JSON");
        Self {
            uid,
            labels: Some(labels),
        }
    }
}

impl<D: Driver> Batch<'_, D> {
    /// Numbers these changes, as the last thing before the commit: others wait for the numbers.
    pub(super) async fn tell(&mut self, changes: &[Told<'_>]) -> Result<(), sqlx::Error> {
        let Some(count) = u64::try_from(changes.len()).ok().filter(|count| *count > 0) else {
            return Ok(());
        };
        let (kind, dialect) = (Param::Text(self.work.kind.name), self.work.sql.dialect());
        D::execute(self.connection, advance(dialect), &[kind, number(count)]).await?;
        let read = fixed("SELECT `position` FROM `kindex_feed` WHERE `kind` = ?");
        let rows = D::query(self.connection, read, &[kind]).await?;
        let last = rows.first().map(|row| position(row, 0)).transpose()?;
        let last = last.ok_or(sqlx::Error::RowNotFound)?.0;
        let first = last - count;
        for (chunk, after) in changes.chunks(LIST_MAX).zip((first..).step_by(LIST_MAX)) {
            let mut params = Vec::with_capacity(chunk.len() * 5);
            for (change, place) in chunk.iter().zip(after + 1..) {
                let labels = change.labels.as_deref().map_or(Param::Null, Param::Text);
                params.extend([
                    kind,
                    number(place),
                    Param::Text(change.uid),
                    labels,
                    Param::Time(self.work.now),
                ]);
            }
            D::execute(self.connection, insert(chunk.len()), &params).await?;
        }
        if first / CHANGES_DROPPED != last / CHANGES_DROPPED
            && let Some(old) = last.checked_sub(CHANGES_KEPT)
        {
            let drop = fixed("DELETE FROM `kindex_changes` WHERE `kind` = ? AND `position` <= ?");
            D::execute(self.connection, drop, &[kind, number(old)]).await?;
        }
        Ok(())
    }
}

/// Parameters: kind, how many.
fn advance(dialect: Dialect) -> Statement {
    let sum = format!("`kindex_feed`.`position` + {}", dialect.inserted("position"));
    kept(format!(
        "INSERT INTO `kindex_feed` (`kind`, `position`) VALUES (?, ?){}`position` = {sum}",
        dialect.on_conflict("`kind`"),
    ))
}

/// Parameters of each: kind, position, uid, labels, now.
fn insert(rows: usize) -> Statement {
    let values = marks("(?,?,?,?,?)", rows);
    let head = "INSERT INTO `kindex_changes` (`kind`, `position`, `uid`, `labels`, `change_time`) VALUES";
    once(format!("{head} {values}"))
}

fn number<'a>(number: u64) -> Param<'a> {
    Param::Int(number.cast_signed())
}

fn position<R: Cells>(row: &R, index: usize) -> Result<Position, sqlx::Error> {
    Ok(Position(row.int(index)?.cast_unsigned()))
}

fn change<D: Driver>(row: &D::Row) -> Result<Change, sqlx::Error> {
    let labels = row.text_or_null(2)?;
    let labels = labels.map(|text| serde_json::from_str(&text)).transpose();
    Ok(Change {
        position: position(row, 0)?,
        uid: Uid::from(row.text(1)?.as_str()),
        labels: labels.map_err(|error| sqlx::Error::Decode(error.into()))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_is_released_stays_what_it_is() {
        let kept = r#"{"metadata":{"name":"a","labels":{"n":"1"},"resourceVersion":"7","finalizers":["f"]},"spec":{}}"#;
        let released = r#"{"spec":{},"metadata":{"name":"a","labels":{"n":"1"},"resourceVersion":"9",
            "deletionTimestamp":"2026-11-01T12:00:00Z","deletionGracePeriodSeconds":0,"generation":2}}"#;
        assert!(!becomes_another(kept, released));
        for (of, by) in [
            (r#""n":"1""#, r#""n":"2""#),
            (r#""name":"a""#, r#""name":"a","annotations":{"n":"1"}"#),
            (r#""name":"a""#, r#""name":"a","ownerReferences":[]"#),
            (r#""spec":{}"#, r#""spec":{"a":1}"#),
            ("}}", r#"},"status":{}}"#),
        ] {
            assert!(becomes_another(kept, &released.replace(of, by)), "{by}");
        }
    }
}
