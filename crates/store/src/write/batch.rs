//! A batch on an open transaction: what it is written to, the rows that it locks, and statements within the limits of
//! the server.

use std::collections::HashMap;

use jiff::Timestamp;
use kindex_model::kind::{Kind, Platform};
use kindex_model::object::Uid;
use kindex_query::Life;

use crate::cells::{FoundRow, found_row};
use crate::connections::{PACKET_RESERVE_BYTES, too_long};
use crate::driver::{Driver, Limits, Param, Raw, Statement};
use crate::statements::{KindSql, LIST_MAX, padded_list};
use crate::write::versions::HistoryBatch;

/// Rows of one statement, at most.
const ROWS_MAX: usize = 4_095;
/// A batch on an open transaction.
pub(crate) struct Batch<'a, D: Driver> {
    pub(crate) connection: &'a mut Raw<D>,
    pub(crate) limits: Limits,
    pub(crate) work: &'a Work<'a>,
}

/// What a batch is written to, and when.
pub(crate) struct Work<'a> {
    pub(crate) sql: &'a KindSql,
    pub(crate) kind: &'a Kind,
    pub(crate) now: Timestamp,
    /// The words by which objects say what they were, and who holds them.
    pub(crate) platform: Platform,
    /// Draws the stamps of the outbox.
    pub(crate) draw: fn() -> u64,
    /// Where the kind keeps a history.
    pub(crate) history: Option<HistoryBatch>,
}

impl<D: Driver> Batch<'_, D> {
    pub(crate) async fn lock_rows(&mut self, uids: &[&str]) -> Result<HashMap<Uid, FoundRow>, sqlx::Error> {
        let mut found = HashMap::with_capacity(uids.len());
        for chunk in uids.chunks(LIST_MAX) {
            let params = padded_list(chunk);
            let statement = self.work.sql.states(params.len(), true);
            for row in D::query(self.connection, statement, &params).await? {
                let row = found_row(&row)?;
                found.insert(row.uid.clone(), row);
            }
        }
        Ok(found)
    }

    /// Sends rows in statements of sizes that come again, within the limits of the server.
    pub(crate) async fn execute_rows<'p, R: AsRef<[Param<'p>]>>(
        &mut self,
        rows: &[R],
        statement: impl Fn(&KindSql, usize) -> Statement,
    ) -> Result<(), sqlx::Error> {
        let mut rest = rows;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(recurring(self.fitting(rest)?));
            let params: Vec<Param<'p>> = now.iter().flat_map(AsRef::as_ref).copied().collect();
            let statement = statement(self.work.sql, now.len());
            D::execute(self.connection, statement, &params).await?;
            rest = later;
        }
        Ok(())
    }

    /// How many of the rows one statement can hold; at least one.
    fn fitting<'p, R: AsRef<[Param<'p>]>>(&self, rows: &[R]) -> Result<usize, sqlx::Error> {
        let bytes_max = self.limits.packet_bytes_max.saturating_sub(PACKET_RESERVE_BYTES);
        let (mut bytes, mut params) = (0, 0);
        for (index, row) in rows.iter().enumerate() {
            let row_bytes: usize = row.as_ref().iter().map(Param::wire_bytes).sum();
            if row_bytes > bytes_max {
                return Err(too_long(row_bytes, self.limits.packet_bytes_max));
            }
            bytes += row_bytes;
            params += row.as_ref().len();
            if bytes > bytes_max || params > self.limits.params_max {
                return Ok(index);
            }
        }
        Ok(rows.len())
    }

    pub(crate) async fn relocate(&mut self, to: Life, uids: &[&str]) -> Result<(), sqlx::Error> {
        for chunk in uids.chunks(LIST_MAX) {
            let list = padded_list(chunk);
            let statement = self.work.sql.relocate(to, list.len());
            let times = match to {
                Life::Live => 1,
                Life::Archived | Life::Deleted => 2,
            };
            let mut params = vec![Param::Time(self.work.now); times];
            params.extend(list);
            D::execute(self.connection, statement, &params).await?;
        }
        Ok(())
    }

    /// Writes rows that are locked and stay as they are, where that is what excludes those who write them on other
    /// nodes of a cluster. On one server the lock does that, and nothing is written.
    pub(crate) async fn touch(&mut self, uids: &[&str]) -> Result<(), sqlx::Error> {
        if !self.limits.is_node {
            return Ok(());
        }
        for chunk in uids.chunks(LIST_MAX) {
            let params = padded_list(chunk);
            if let Some(statement) = self.work.sql.touch(params.len()) {
                D::execute(self.connection, statement, &params).await?;
            }
        }
        Ok(())
    }

    /// Marks rows deleted that are locked, in order of uid.
    pub(crate) async fn soft_delete(&mut self, uids: &[&str]) -> Result<(), sqlx::Error> {
        self.relocate(Life::Deleted, uids).await
    }
}

/// The largest size not above `rows` that has one octal digit other than zero. So any number of rows
/// goes out in a statement for each of its digits, and all numbers together in 28 different statements:
/// few enough to keep them prepared. A statement that is prepared for one use costs more than its round
/// trip: its close has no reply, and the driver, which leaves Nagle's algorithm on, then waits for a
/// delayed acknowledgement before the next command goes out.
pub(crate) fn recurring(rows: usize) -> usize {
    let rows = rows.min(ROWS_MAX);
    let zeros = rows.checked_ilog(8).unwrap_or(0);
    let unit = 8_usize.pow(zeros);
    rows / unit * unit
}

#[cfg(test)]
mod tests {
    use super::recurring;

    #[test]
    fn rows_go_out_in_few_statements_of_few_sizes() {
        let mut sizes = std::collections::BTreeSet::new();
        for rows in 1..=super::ROWS_MAX {
            let (mut rest, mut statements) = (rows, 0);
            while rest > 0 {
                let size = recurring(rest);
                assert!((1..=rest).contains(&size), "{size} of {rest}");
                sizes.insert(size);
                rest -= size;
                statements += 1;
            }
            assert!(statements <= 4, "{rows} rows");
        }
        assert_eq!(sizes.len(), 28);
        assert_eq!(recurring(1_000_000), 3_584);
    }
}
