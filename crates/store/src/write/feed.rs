//! Appends the changes of archived objects to the feed, for watches. Knows no engine.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::dialect::{Spelling, marks};
use crate::driver::{Cells, Driver, Param, Statement};
use crate::statements::{LIST_MAX, fixed, kept, once};
use crate::write::batch::Batch;

/// How many changes of a kind are kept, at least.
pub const CHANGES_KEPT: u64 = 100_000;
/// The same of a SQL-only kind: each with the whole object before it.
pub const SQL_ONLY_CHANGES_KEPT: u64 = 10_000;
/// Dropped at once.
const CHANGES_DROPPED: u64 = 1_000;

/// How many changes of a kind there were up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

/// The fields of the metadata that an eviction changes, while the content of the object stays the same.
const FIELDS_CHANGED_BY_EVICTION: [&str; 6] = [
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// Whether two texts of an object differ in other fields than those. Of texts that are too deep to be read, each
/// difference counts: an event too many does no harm.
pub(crate) fn differs_in_content(before: &str, after: &str) -> bool {
    let substance = |text: &str| -> Option<Value> {
        let mut object: Value = serde_json::from_str(text).ok()?;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|field, _| !FIELDS_CHANGED_BY_EVICTION.contains(&field.as_str()));
        }
        Some(object)
    };
    match (substance(before), substance(after)) {
        (Some(before), Some(after)) => before != after,
        (None, _) | (_, None) => before != after,
    }
}

/// One change of an archived object.
pub(crate) struct FeedEntry<'a> {
    uid: &'a str,
    /// What an update replaces, as JSON: the labels, or the whole object of a SQL-only kind.
    before: Option<String>,
}

impl<'a> FeedEntry<'a> {
    pub(crate) fn deletion(uid: &'a str) -> Self {
        Self { uid, before: None }
    }

    /// Of an object of a SQL-only kind, with the text that it had, if it was there.
    pub(crate) fn of_object(uid: &'a str, before: Option<&str>) -> Self {
        Self {
            uid,
            before: before.map(str::to_owned),
        }
    }

    pub(crate) fn update(uid: &'a str, before: &BTreeMap<String, String>) -> Self {
        let before = serde_json::to_string(before).expect("texts are JSON");
        Self {
            uid,
            before: Some(before),
        }
    }
}

impl<D: Driver> Batch<'_, D> {
    /// Appends changes with consecutive numbers. Must come last before the commit, because other writers wait for the
    /// numbers.
    pub(crate) async fn append_to_feed(&mut self, changes: &[FeedEntry<'_>]) -> Result<(), sqlx::Error> {
        let Some(count) = u64::try_from(changes.len()).ok().filter(|count| *count > 0) else {
            return Ok(());
        };
        let last = self.advance_feed(count).await?;
        self.write_to_feed(last, changes).await
    }

    /// Takes so many numbers, and gives back the last. From here on every other writer of the kind who takes one
    /// waits for the end of the transaction, also where none is taken.
    pub(crate) async fn advance_feed(&mut self, count: u64) -> Result<Position, sqlx::Error> {
        let (kind, spelling) = (Param::Text(self.work.kind.name), self.work.sql.spelling());
        D::execute(self.connection, advance(spelling), &[kind, number(count)]).await?;
        let read = fixed("SELECT [position] FROM [kindex_feed] WHERE [kind] = ?");
        let rows = D::query(self.connection, read, &[kind]).await?;
        let last = rows.first().map(|row| position(row, 0)).transpose()?;
        last.ok_or(sqlx::Error::RowNotFound)
    }

    /// Writes changes whose numbers were taken, of which this is the last.
    pub(crate) async fn write_to_feed(&mut self, last: Position, changes: &[FeedEntry<'_>]) -> Result<(), sqlx::Error> {
        let kind = Param::Text(self.work.kind.name);
        let last = last.0;
        let first = last - changes.len() as u64;
        for (chunk, after) in changes.chunks(LIST_MAX).zip((first..).step_by(LIST_MAX)) {
            let mut params = Vec::with_capacity(chunk.len() * 5);
            for (change, place) in chunk.iter().zip(after + 1..) {
                let before = change.before.as_deref().map_or(Param::Null, Param::Text);
                params.extend([
                    kind,
                    number(place),
                    Param::Text(change.uid),
                    before,
                    Param::Time(self.work.now),
                ]);
            }
            D::execute(self.connection, insert(chunk.len()), &params).await?;
        }
        if first / CHANGES_DROPPED != last / CHANGES_DROPPED
            && let Some(old) = last.checked_sub(if self.work.kind.cluster {
                CHANGES_KEPT
            } else {
                SQL_ONLY_CHANGES_KEPT
            })
        {
            let drop = fixed("DELETE FROM [kindex_changes] WHERE [kind] = ? AND [position] <= ?");
            D::execute(self.connection, drop, &[kind, number(old)]).await?;
        }
        Ok(())
    }
}

/// Parameters: kind, how many.
fn advance(spelling: &'static dyn Spelling) -> Statement {
    let sum = format!("[kindex_feed].[position] + {}", spelling.inserted("position"));
    kept(format!(
        "INSERT INTO [kindex_feed] ([kind], [position]) VALUES (?, ?){}[position] = {sum}",
        spelling.on_conflict("[kind]"),
    ))
}

/// Parameters of each: kind, position, uid, labels, now.
fn insert(rows: usize) -> Statement {
    let values = marks("(?,?,?,?,?)", rows);
    let head = "INSERT INTO [kindex_changes] ([kind], [position], [uid], [labels], [change_time]) VALUES";
    once(format!("{head} {values}"))
}

pub(crate) fn number<'a>(number: u64) -> Param<'a> {
    Param::Int(number.cast_signed())
}

pub(crate) fn position<R: Cells>(row: &R, index: usize) -> Result<Position, sqlx::Error> {
    Ok(Position(row.int(index)?.cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_is_released_stays_what_it_is() {
        let kept = r#"{"metadata":{"name":"a","labels":{"n":"1"},"resourceVersion":"7","finalizers":["f"]},"spec":{}}"#;
        let released = r#"{"spec":{},"metadata":{"name":"a","labels":{"n":"1"},"resourceVersion":"9",
            "deletionTimestamp":"2026-11-01T12:00:00Z","deletionGracePeriodSeconds":0,"generation":2}}"#;
        assert!(!differs_in_content(kept, released));
        for (of, by) in [
            (r#""n":"1""#, r#""n":"2""#),
            (r#""name":"a""#, r#""name":"a","annotations":{"n":"1"}"#),
            (r#""name":"a""#, r#""name":"a","ownerReferences":[]"#),
            (r#""spec":{}"#, r#""spec":{"a":1}"#),
            ("}}", r#"},"status":{}}"#),
        ] {
            assert!(differs_in_content(kept, &released.replace(of, by)), "{by}");
        }
    }

    /// As if all texts that are deeper than a value may be were one.
    #[test]
    fn a_change_of_an_object_too_deep_to_be_read_is_one() {
        let of = |n: u8| {
            format!(
                r#"{{"metadata":{{"name":"a"}},"spec":{{"n":{n},"d":{}{}}}}}"#,
                "[".repeat(200),
                "]".repeat(200)
            )
        };
        assert!(differs_in_content(&of(1), &of(2)));
        assert!(!differs_in_content(&of(1), &of(1)));
    }
}
