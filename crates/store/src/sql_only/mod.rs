//! Objects of kinds that no cluster has: SQL is where they are created, changed and deleted. Their versions are the
//! numbers of the changes of their kind, so that they come in the order of their commits. What an object may be is the
//! caller's to decide. Knows no dialect.

mod write;

use std::collections::HashMap;

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_query::{Life, Stored};

use crate::cells::stored;
use crate::connections::failure;
use crate::driver::{Cells, Driver, Param};
use crate::error::StoreError;
use crate::sql_store::SqlStore;
use crate::statements::{fixed, padded_list};
use crate::write::{Position, number, position};

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlOnlyWrite {
    /// It is new: no object that is not deleted has its name.
    Create,
    /// It is another one now. It still has the version that the caller read.
    Replace {
        /// That version.
        read: ResourceVersion,
    },
    /// It is gone, and was this at last. It still has the version that the caller read.
    Remove {
        /// That version.
        read: ResourceVersion,
    },
}

/// What became of it.
#[derive(Clone, Debug)]
pub enum SqlOnlyWritten {
    /// It is stored, in its new version.
    Done(Object),
    /// Its name is taken.
    Exists,
    /// It has another version by now, or is gone.
    Changed,
}

/// Which objects a page has: in order of namespace and name.
#[derive(Clone, Copy, Debug, Default)]
pub struct SqlOnlyPage<'a> {
    /// One namespace, or all.
    pub namespace: Option<&'a str>,
    /// Namespace and name after which it begins.
    pub after: (&'a str, &'a str),
    /// Most objects.
    pub limit: u32,
}

/// One change of an object.
#[derive(Clone, Debug)]
pub struct SqlOnlyChange {
    /// The version that the object has by it.
    pub version: ResourceVersion,
    /// The object.
    pub uid: Uid,
    /// What it was before; `None` where it was created.
    pub before: Option<Object>,
    /// What it was after; the last state of one that was deleted.
    pub object: Object,
    /// Whether it was deleted.
    pub deleted: bool,
}

/// The version of an object that a change of its kind gave it. None is 0, which would mean any.
pub const fn sql_only_version(position: Position) -> ResourceVersion {
    ResourceVersion(position.0 + 1)
}

fn position_of(version: ResourceVersion) -> Position {
    Position(version.0.saturating_sub(1))
}

/// The SQL store as the one place where objects of a kind are.
///
/// # Guarantees
/// Each write is one transaction. All writes of a kind wait for each other, on every engine: of two that create one
/// name, or replace one version, one is done and the other refused. Columns, labels, annotations and history follow.
///
/// # Assumptions
/// The kind is none of a cluster's.
#[async_trait]
pub trait SqlOnly: Send + Sync {
    /// Writes one object. The version in its text is replaced by that of the write.
    async fn write_sql_only(
        &self,
        kind: &Kind,
        object: &Object,
        write: SqlOnlyWrite,
        now: Timestamp,
    ) -> Result<SqlOnlyWritten, StoreError>;

    /// A page of the objects that are there.
    async fn page_sql_only(&self, kind: &Kind, page: SqlOnlyPage<'_>) -> Result<Vec<Stored>, StoreError>;

    /// How many objects come after that.
    async fn count_sql_only(&self, kind: &Kind, page: SqlOnlyPage<'_>) -> Result<u64, StoreError>;

    /// The changes after a version, in order; `None` where some of these were dropped.
    async fn sql_only_changes(
        &self,
        kind: &Kind,
        after: ResourceVersion,
        limit: u32,
    ) -> Result<Option<Vec<SqlOnlyChange>>, StoreError>;
}

#[async_trait]
impl<D: Driver> SqlOnly for SqlStore<D> {
    async fn write_sql_only(
        &self,
        kind: &Kind,
        object: &Object,
        write: SqlOnlyWrite,
        now: Timestamp,
    ) -> Result<SqlOnlyWritten, StoreError> {
        let texts = self.texts(kind);
        let transaction = write::WriteTransaction {
            sql: &texts,
            kind,
            now,
            platform: self.registry.platform,
            draw: self.draw,
            history: kind.history.then(|| self.history_sql(kind)),
            object,
            write,
        };
        let written = self.connections.transact(&transaction).await;
        written.map_err(|error| failure::<D>(kind.name, error))?
    }

    async fn page_sql_only(&self, kind: &Kind, page: SqlOnlyPage<'_>) -> Result<Vec<Stored>, StoreError> {
        let mut params = page.params();
        params.push(Param::Int(page.limit.into()));
        let statement = self.texts(kind).after_name(page.namespace.is_some());
        let rows = self.connections.query(statement, &params).await;
        let rows = rows.map_err(|error| failure::<D>(kind.name, error))?;
        rows.iter().map(|row| stored(kind, row)).collect()
    }

    async fn count_sql_only(&self, kind: &Kind, page: SqlOnlyPage<'_>) -> Result<u64, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let statement = self.texts(kind).count_after_name(page.namespace.is_some());
        let rows = self
            .connections
            .query(statement, &page.params())
            .await
            .map_err(failed)?;
        let row = rows.first().expect("an aggregate without groups has one row");
        row.int(0).map(i64::unsigned_abs).map_err(failed)
    }

    async fn sql_only_changes(
        &self,
        kind: &Kind,
        after: ResourceVersion,
        limit: u32,
    ) -> Result<Option<Vec<SqlOnlyChange>>, StoreError> {
        let failed = |error| failure::<D>(kind.name, error);
        let statement = fixed(
            "SELECT [position], [uid], [labels] FROM [kindex_changes] WHERE [kind] = ? AND [position] > ? \
             ORDER BY [position] LIMIT ?",
        );
        let after = position_of(after);
        let params = [Param::Text(kind.name), number(after.0), Param::Int(limit.into())];
        let rows = self.connections.query(statement, &params).await.map_err(failed)?;
        let entries: Result<Vec<Entry>, StoreError> = rows.iter().map(|row| entry::<D>(kind, row)).collect();
        let entries = entries?;
        if entries.first().is_some_and(|first| first.position.0 != after.0 + 1) {
            return Ok(None);
        }
        // Read after the entries: a row is as the last entry of its object says, or newer.
        let rows = self.rows_of(kind, &entries).await?;
        Ok(Some(changes(entries, rows)))
    }
}

impl<'a> SqlOnlyPage<'a> {
    fn params(&self) -> Vec<Param<'a>> {
        let (namespace, name) = self.after;
        match self.namespace {
            Some(one) => vec![Param::Text(one), Param::Text(name)],
            None => vec![Param::Text(namespace), Param::Text(namespace), Param::Text(name)],
        }
    }
}

/// A change as the feed has it.
struct Entry {
    position: Position,
    uid: Uid,
    before: Option<Object>,
}

fn entry<D: Driver>(kind: &Kind, row: &D::Row) -> Result<Entry, StoreError> {
    let failed = |error| failure::<D>(kind.name, error);
    let uid = Uid::from(row.text(1).map_err(failed)?.as_str());
    let before = row.text_or_null(2).map_err(failed)?;
    let corrupt = |error: &dyn std::fmt::Display| StoreError::Corrupt {
        kind: kind.name.to_owned(),
        uid: uid.to_string(),
        message: format!("changes: {error}"),
    };
    let before = before.map(|text| Object::parse_str(&text)).transpose();
    Ok(Entry {
        position: position(row, 0).map_err(failed)?,
        before: before.map_err(|error| corrupt(&error))?,
        uid,
    })
}

impl<D: Driver> SqlStore<D> {
    async fn rows_of(&self, kind: &Kind, entries: &[Entry]) -> Result<HashMap<Uid, Stored>, StoreError> {
        let mut uids: Vec<&str> = entries.iter().map(|entry| &*entry.uid.0).collect();
        uids.sort_unstable();
        uids.dedup();
        let mut found = HashMap::with_capacity(uids.len());
        for chunk in uids.chunks(crate::statements::LIST_MAX) {
            let params = padded_list(chunk);
            let rows = self
                .connections
                .query(self.texts(kind).by_ids(params.len()), &params)
                .await;
            for row in rows.map_err(|error| failure::<D>(kind.name, error))? {
                let row = stored(kind, &row)?;
                found.insert(row.object.metadata.uid.clone(), row);
            }
        }
        Ok(found)
    }
}

/// What each entry left is what the next one of its object replaced, and what the last one left is in the row. An
/// object whose row was removed for good went by its last entry.
fn changes(entries: Vec<Entry>, rows: HashMap<Uid, Stored>) -> Vec<SqlOnlyChange> {
    let mut next: HashMap<Uid, Option<Object>> = HashMap::with_capacity(rows.len());
    let mut changes: Vec<SqlOnlyChange> = Vec::with_capacity(entries.len());
    for entry in entries.into_iter().rev() {
        let version = sql_only_version(entry.position);
        let (object, deleted) = match next.insert(entry.uid.clone(), entry.before.clone()) {
            Some(replaced) => (replaced, false),
            None => match rows.get(&entry.uid) {
                Some(row) => {
                    let is_last = row.object.metadata.resource_version == version;
                    (Some(row.object.clone()), is_last && row.life == Life::Deleted)
                }
                None => (entry.before.clone(), true),
            },
        };
        // Of an object without a row nothing is known where it was created after the first change.
        let Some(object) = object else { continue };
        let object = match object.metadata.resource_version == version {
            true => object,
            // It was changed once more while this was read.
            false => object.with_version(version),
        };
        changes.push(SqlOnlyChange {
            version,
            uid: entry.uid,
            before: entry.before,
            object,
            deleted,
        });
    }
    changes.reverse();
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(version: u64, n: u64) -> Object {
        let text = format!(r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"{version}"}},"n":{n}}}"#);
        Object::parse_str(&text).expect("an object")
    }

    fn row(version: u64, n: u64, life: Life) -> HashMap<Uid, Stored> {
        let row = Stored {
            object: object(version, n),
            life,
            update_time: None,
            delete_time: (life == Life::Deleted).then_some(Timestamp::UNIX_EPOCH),
            evicted_time: None,
            replaced_by: None,
        };
        HashMap::from([(Uid::from("u"), row)])
    }

    fn received(befores: &[Option<(u64, u64)>], rows: HashMap<Uid, Stored>) -> Vec<(u64, String, bool)> {
        let entries = befores.iter().zip(1..).map(|(before, number)| Entry {
            position: Position(number),
            uid: Uid::from("u"),
            before: before.map(|(version, n)| object(version, n)),
        });
        let changes = changes(entries.collect(), rows);
        let read = |change: SqlOnlyChange| {
            let text = change.object.text();
            let n = text.rsplit(':').next().unwrap_or_default().trim_end_matches('}');
            (change.version.0, n.to_owned(), change.deleted)
        };
        changes.into_iter().map(read).collect()
    }

    #[test]
    fn each_change_shows_what_it_left_and_a_deletion_is_the_last() {
        let shown = |n: &str, version, deleted| (version, n.to_owned(), deleted);
        let three = [None, Some((2, 10)), Some((3, 20))];
        assert_eq!(
            received(&three, row(4, 20, Life::Deleted)),
            [shown("10", 2, false), shown("20", 3, false), shown("20", 4, true)]
        );
        assert_eq!(
            received(&three[..2], row(3, 20, Life::Live)),
            [shown("10", 2, false), shown("20", 3, false)]
        );
    }

    #[test]
    fn a_row_that_is_newer_than_the_page_deletes_nothing_yet() {
        let page = [None, Some((2, 10))];
        let changes = received(&page, row(9, 90, Life::Deleted));
        assert_eq!(
            changes[1],
            (3, "90".to_owned(), false),
            "its deletion has an entry of its own"
        );
    }

    #[test]
    fn an_object_whose_row_was_removed_was_deleted() {
        let changes = received(&[None, Some((2, 10))], HashMap::new());
        assert_eq!(changes, [(2, "10".to_owned(), false), (3, "10".to_owned(), true)]);
    }
}
