//! What a batch adds to the history of a kind that keeps one: each version once, by uid and
//! resource version, packed before any row is locked. Executes nothing.

use jiff::Timestamp;
use kindex_model::object::{Object, ResourceVersion, Uid};

use crate::driver::Param;
use crate::packed;
use crate::packed::ENCODING;
use crate::row::RowWrite;
use crate::statements::history::HistorySql;

/// The branch that the cluster continues.
pub(crate) const PRESENT: i64 = 0;

/// The versions of a batch.
pub(crate) struct HistoryBatch {
    pub(crate) sql: HistorySql,
    pub(crate) versions: Vec<PackedVersion>,
}

/// One version, packed as the history keeps it.
pub(crate) struct PackedVersion {
    pub(crate) uid: Uid,
    pub(crate) version: ResourceVersion,
    pub(crate) seen: Timestamp,
    pub(crate) payload: Vec<u8>,
}

impl HistoryBatch {
    /// Takes in every version of a batch. One that is both recorded and stored was seen when it was
    /// recorded. In order of the primary key: two writers never wait for each other.
    pub(crate) fn new(sql: HistorySql, batch: &[RowWrite], now: Timestamp) -> Self {
        let mut seen: Vec<(&Object, Timestamp)> = batch
            .iter()
            .filter_map(|write| match write {
                RowWrite::Record { object, seen } => Some((object, *seen)),
                RowWrite::Store { version, .. } => Some((&version.object, now)),
                RowWrite::SoftDelete { .. } => None,
            })
            .collect();
        seen.sort_by_key(|&(object, seen)| (key(object), seen));
        seen.dedup_by_key(|&mut (object, _)| key(object));
        let kept = seen.into_iter().map(|(object, seen)| PackedVersion {
            uid: object.metadata.uid.clone(),
            version: object.metadata.resource_version,
            seen,
            payload: packed::pack(object.text()),
        });
        Self {
            sql,
            versions: kept.collect(),
        }
    }
}

fn key(object: &Object) -> (&Uid, ResourceVersion) {
    (&object.metadata.uid, object.metadata.resource_version)
}

impl PackedVersion {
    /// In the order of [`COLUMNS`](crate::statements::history::COLUMNS).
    pub(crate) fn params(&self) -> [Param<'_>; 6] {
        [
            Param::Text(&self.uid.0),
            Param::Int(PRESENT),
            Param::Int(self.version.0.cast_signed()),
            Param::Time(self.seen),
            Param::Int(ENCODING),
            Param::Bytes(&self.payload),
        ]
    }
}

/// The branch for versions that the cluster was found to have lost at this moment. Negative until
/// the year 10000, and higher the later it is: a history sorted by branch is sorted by time.
pub(crate) fn lost_branch(found: Timestamp) -> i64 {
    const YEAR_10000_US: i64 = 253_402_300_800_000_000;
    found.as_microsecond() - YEAR_10000_US
}

#[cfg(test)]
mod tests {
    use kindex_model::tables::Tables;

    use super::*;
    use crate::sqlite::SqliteSpelling;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    fn record(uid: &str, version: u64, second: i64) -> RowWrite {
        let text = format!(r#"{{"metadata":{{"name":"a","uid":"{uid}","resourceVersion":"{version}"}}}}"#);
        RowWrite::Record {
            object: Object::parse_str(&text).expect("an object"),
            seen: at(second),
        }
    }

    #[test]
    fn a_batch_keeps_each_version_once_at_its_first_time_in_order_of_the_key() {
        let batch = [
            record("b", 2, 5),
            record("a", 9, 7),
            record("b", 1, 6),
            record("a", 9, 3),
        ];
        let sql = HistorySql {
            spelling: &SqliteSpelling,
            tables: Tables { main: "thing" },
        };
        let kept = HistoryBatch::new(sql, &batch, at(0));
        let kept: Vec<(&str, u64, Timestamp)> = kept
            .versions
            .iter()
            .map(|kept| (&*kept.uid.0, kept.version.0, kept.seen))
            .collect();
        assert_eq!(kept, [("a", 9, at(3)), ("b", 1, at(6)), ("b", 2, at(5))]);
    }

    #[test]
    fn a_branch_that_was_lost_later_sorts_after_one_lost_before_and_below_the_present() {
        let (early, late) = (lost_branch(at(1_700_000_000)), lost_branch(at(1_700_000_001)));
        assert!(early < late && late < PRESENT);
    }
}
