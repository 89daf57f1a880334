//! One batch in one transaction: lock and read the rows, decide each write, then
//! apply all decisions of one sort together. The number of statements depends on
//! what sorts of change a batch holds, and on its size only where a statement would
//! be longer than the server takes.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::projection::Version;
use kindex_query::Life;

use super::cells::{MainRow, found_row, res_version, side_rows, stored};
use super::changes::{Told, becomes_another};
use super::driver::{Cells, Driver, Limits, Param, Raw, Statement};
use super::history::Keeping;
use super::plan::{FoundRow, NewRow, Plan, plan};
use super::replaced::Replaced;
use super::sql::{KindSql, LIST_MAX, Side, padded};
use super::{RowWrite, Written};

/// Rows of one statement, at most.
const ROWS_MAX: usize = 4_095;
/// What a packet holds besides parameters, at most.
pub(super) const PACKET_RESERVE_BYTES: usize = 4_096;

/// A batch on an open transaction.
pub(super) struct Batch<'a, D: Driver> {
    pub(super) connection: &'a mut Raw<D>,
    pub(super) limits: Limits,
    pub(super) work: &'a Work<'a>,
}

/// What a batch is written to, and when.
pub(super) struct Work<'a> {
    pub(super) sql: &'a KindSql,
    pub(super) kind: &'a Kind,
    pub(super) now: Timestamp,
    /// The annotation by which an object says as which it was stored before it was created again.
    pub(super) restored_from: &'static str,
    /// Where the kind keeps a history.
    pub(super) keeping: Option<Keeping>,
}

/// The decisions of a batch by sort, each in order of uid.
#[derive(Default)]
struct Sorted<'a> {
    inserts: Vec<NewRow<'a>>,
    updates: Vec<NewRow<'a>>,
    to_live: Vec<&'a str>,
    to_evicted: Vec<&'a str>,
    to_deleted: Vec<&'a str>,
    /// Versions whose rows are new or back from deletion: their names may be taken.
    arrived: Vec<&'a Version>,
}

/// One of the rows of a name; the younger ones are the larger ones.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Incarnation {
    version: ResourceVersion,
    uid: Uid,
    is_evicted: bool,
}

impl<D: Driver> Batch<'_, D> {
    /// Applies all writes and says what became of each.
    pub(super) async fn apply(&mut self, writes: &[RowWrite]) -> Result<Vec<Written>, sqlx::Error> {
        let mut order: Vec<usize> = (0..writes.len()).filter(|&i| writes[i].is_of_a_row()).collect();
        // One order for all writers: two of them never wait for each other.
        order.sort_unstable_by_key(|&index| writes[index].uid());
        let uids: Vec<&str> = order.iter().map(|&i| &*writes[i].uid().0).collect();
        debug_assert!(
            uids.windows(2).all(|pair| pair[0] != pair[1]),
            "a batch holds at most one write per uid"
        );
        let found = self.lock_rows(&uids).await?;

        let mut written = vec![Written::Unchanged; writes.len()];
        let mut sorted = Sorted::default();
        let mut changed = Vec::new();
        for index in order {
            let write = &writes[index];
            let row = found.get(write.uid());
            let decision = plan(write, row, self.work.now);
            changed.extend(decision.of_evicted(row));
            written[index] = sorted.add(decision);
        }
        // No cluster tells what becomes of an object there once SQL keeps it.
        let before = self.labels_before(&changed).await?;
        let replaced = self.carry_out(&sorted).await?;
        self.record_replaced(&replaced, writes, &mut written).await?;
        let updates = before.iter().map(|(uid, labels)| Told::update(uid, labels));
        let deletions = replaced.iter().map(|one| Told::deletion(&one.uid.0));
        let told: Vec<Told<'_>> = updates.chain(deletions).collect();
        self.tell(&told).await?;
        Ok(written)
    }

    /// Of rows whose objects become others by these versions, and not only go their way: the labels that they have.
    async fn labels_before<'v>(
        &mut self,
        versions: &[&'v Version],
    ) -> Result<Vec<(&'v str, BTreeMap<String, String>)>, sqlx::Error> {
        let mut before = Vec::new();
        for chunk in versions.chunks(LIST_MAX) {
            let uids: Vec<&str> = chunk.iter().map(|version| &*version.object.metadata.uid.0).collect();
            let params = padded_list(&uids);
            let mut held = HashMap::with_capacity(chunk.len());
            for row in D::query(self.connection, self.work.sql.by_ids(params.len()), &params).await? {
                // What cannot be read is not what comes.
                if let Ok(row) = stored(self.work.kind, &row) {
                    held.insert(row.object.metadata.uid.clone(), row.object);
                }
            }
            for version in chunk {
                let metadata = &version.object.metadata;
                let held = held.remove(&metadata.uid);
                if held
                    .as_ref()
                    .is_none_or(|held| becomes_another(held.text(), version.object.text()))
                {
                    before.push((
                        &*metadata.uid.0,
                        held.map(|held| held.metadata.labels.clone()).unwrap_or_default(),
                    ));
                }
            }
        }
        Ok(before)
    }

    /// Gives one row that is locked another content.
    pub(super) async fn replace(&mut self, row: NewRow<'_>) -> Result<(), sqlx::Error> {
        let sorted = Sorted {
            updates: vec![row],
            ..Sorted::default()
        };
        self.carry_out(&sorted).await.map(drop)
    }

    /// Marks rows deleted that are locked, in order of uid.
    pub(super) async fn soft_delete(&mut self, uids: &[&str]) -> Result<(), sqlx::Error> {
        self.relocate(Life::Deleted, uids).await
    }

    /// Gives back those that lived in SQL alone until others took their names: no cluster tells of their end.
    async fn carry_out(&mut self, sorted: &Sorted<'_>) -> Result<Vec<Replaced>, sqlx::Error> {
        if let Some(keeping) = &self.work.keeping {
            let mut replaced = Vec::with_capacity(sorted.updates.len());
            let mut anew = Vec::new();
            for row in &sorted.updates {
                let uid = &*row.version.object.metadata.uid.0;
                replaced.push(uid);
                anew.extend(row.begins_anew.then_some(uid));
            }
            self.keep_replaced(keeping.sql, &replaced).await?;
            self.branch_off(keeping.sql, &anew).await?;
            self.write_history(keeping).await?;
        }
        let replaced = self.write_main(sorted).await?;
        self.write_side(Side::Labels, sorted).await?;
        self.write_side(Side::Annotations, sorted).await?;
        Ok(replaced)
    }

    pub(super) async fn lock_rows(&mut self, uids: &[&str]) -> Result<HashMap<Uid, FoundRow>, sqlx::Error> {
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

    async fn write_main(&mut self, sorted: &Sorted<'_>) -> Result<Vec<Replaced>, sqlx::Error> {
        self.write_rows(&sorted.inserts, KindSql::insert).await?;
        self.write_rows(&sorted.updates, KindSql::update).await?;
        self.relocate(Life::Live, &sorted.to_live).await?;
        self.relocate(Life::Evicted, &sorted.to_evicted).await?;
        let outlived = self.outlived(&sorted.arrived, &sorted.to_deleted).await?;
        let mut deleted = sorted.to_deleted.clone();
        deleted.extend(outlived.iter().map(|(row, _)| &*row.uid.0));
        deleted.sort_unstable();
        self.relocate(Life::Deleted, &deleted).await?;
        let evicted = outlived.into_iter().filter(|(row, _)| row.is_evicted);
        Ok(evicted.map(|(row, by)| Replaced { uid: row.uid, by }).collect())
    }

    async fn write_rows(
        &mut self,
        rows: &[NewRow<'_>],
        statement: fn(&KindSql, usize) -> Statement,
    ) -> Result<(), sqlx::Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let group_ver = self.work.kind.api_version();
        let rows: Vec<MainRow<'_>> = rows
            .iter()
            .map(|row| MainRow::new(row, &group_ver, self.work.now))
            .collect();
        let rows: Vec<Vec<Param<'_>>> = rows.iter().map(MainRow::params).collect();
        self.execute_rows(&rows, statement).await
    }

    /// Sends rows in statements of sizes that come again, within the limits of the server.
    pub(super) async fn execute_rows<'p, R: AsRef<[Param<'p>]>>(
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

    async fn relocate(&mut self, to: Life, uids: &[&str]) -> Result<(), sqlx::Error> {
        for chunk in uids.chunks(LIST_MAX) {
            let list = padded_list(chunk);
            let statement = self.work.sql.relocate(to, list.len());
            let times = match to {
                Life::Live => 1,
                Life::Evicted | Life::Deleted => 2,
            };
            let mut params = vec![Param::Time(self.work.now); times];
            params.extend(list);
            D::execute(self.connection, statement, &params).await?;
        }
        Ok(())
    }

    /// Rows whose name a younger incarnation has, with its uid; besides those that this batch deletes anyway: those
    /// outlive nobody. The read locks what it finds: of two writers that store two incarnations at once, one sees
    /// the other's.
    async fn outlived(
        &mut self,
        arrived: &[&Version],
        deleted: &[&str],
    ) -> Result<Vec<(Incarnation, Uid)>, sqlx::Error> {
        let mut names: Vec<(&str, &str)> = arrived
            .iter()
            .map(|version| {
                let metadata = &version.object.metadata;
                (metadata.namespace.as_str(), metadata.name.as_str())
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        let mut incarnations: BTreeMap<(String, String), Vec<Incarnation>> = BTreeMap::new();
        for chunk in names.chunks(LIST_MAX) {
            let params = padded_pairs(chunk);
            let statement = self.work.sql.namesakes(params.len() / 2);
            for row in D::query(self.connection, statement, &params).await? {
                let incarnation = Incarnation {
                    // A version of SQL's own is no younger than the cluster's that it followed.
                    version: res_version(&row, 3)?.of_cluster(),
                    uid: Uid::from(row.text(0)?.as_str()),
                    is_evicted: row.time(4)?.is_some(),
                };
                if deleted.binary_search(&&*incarnation.uid.0).is_ok() {
                    continue;
                }
                let name = (row.text(1)?, row.text(2)?);
                incarnations.entry(name).or_default().push(incarnation);
            }
        }
        let outlived = incarnations.into_values().flat_map(|mut rows| {
            rows.sort_unstable();
            let youngest = rows.pop().map(|row| row.uid);
            rows.into_iter().zip(std::iter::repeat(youngest))
        });
        let outlived = outlived.filter_map(|(row, by)| by.map(|by| (row, by)));
        Ok(outlived.collect())
    }

    /// Rows of the side table follow their object: gone where they changed, then written anew.
    async fn write_side(&mut self, side: Side, sorted: &Sorted<'_>) -> Result<(), sqlx::Error> {
        let changed: Vec<&Version> = sorted
            .updates
            .iter()
            .filter(|row| match side {
                Side::Labels => row.labels,
                Side::Annotations => row.annotations,
            })
            .map(|row| row.version)
            .collect();
        let uids: Vec<&str> = changed.iter().map(|version| &*version.object.metadata.uid.0).collect();
        for chunk in uids.chunks(LIST_MAX) {
            let params = padded_list(chunk);
            let statement = self.work.sql.delete_side(side, params.len());
            D::execute(self.connection, statement, &params).await?;
        }
        let inserted = sorted.inserts.iter().map(|row| row.version);
        let rows: Vec<[Param<'_>; 3]> = inserted
            .chain(changed)
            .flat_map(|version| side_rows(side, version))
            .collect();
        self.execute_rows(&rows, |sql, rows| sql.insert_side(side, rows)).await
    }
}

impl<'a> Sorted<'a> {
    fn add(&mut self, decision: Plan<'a>) -> Written {
        match decision {
            Plan::Nothing(why) => return why,
            Plan::Insert(row) => {
                if row.delete_time.is_none() {
                    self.arrived.push(row.version);
                }
                self.inserts.push(row);
                return Written::Inserted;
            }
            Plan::Update(row) => {
                if row.revived {
                    self.arrived.push(row.version);
                }
                self.updates.push(row);
            }
            Plan::Move { uid, life, revived } => {
                self.arrived.extend(revived);
                let list = match life {
                    Life::Live => &mut self.to_live,
                    Life::Evicted => &mut self.to_evicted,
                    Life::Deleted => &mut self.to_deleted,
                };
                list.push(&uid.0);
            }
        }
        Written::Updated
    }
}

/// The largest size not above `rows` that has one octal digit other than zero. So any number of rows
/// goes out in a statement for each of its digits, and all numbers together in 28 different statements:
/// few enough to keep them prepared. A statement that is prepared for one use costs more than its round
/// trip: its close has no reply, and the driver, which leaves Nagle's algorithm on, then waits for a
/// delayed acknowledgement before the next command goes out.
fn recurring(rows: usize) -> usize {
    let rows = rows.min(ROWS_MAX);
    let zeros = rows.checked_ilog(8).unwrap_or(0);
    let unit = 8_usize.pow(zeros);
    rows / unit * unit
}

/// A list of a size that is kept prepared.
pub(super) fn padded_list<'a>(names: &[&'a str]) -> Vec<Param<'a>> {
    let last = names.last().copied().unwrap_or_default();
    (0..padded(names.len()))
        .map(|index| Param::Text(names.get(index).copied().unwrap_or(last)))
        .collect()
}

/// As [`padded_list`], of pairs of namespace and name.
pub(super) fn padded_pairs<'a>(names: &[(&'a str, &'a str)]) -> Vec<Param<'a>> {
    let last = names.last().copied().unwrap_or_default();
    (0..padded(names.len()))
        .map(|index| names.get(index).copied().unwrap_or(last))
        .flat_map(|(namespace, name)| [Param::Text(namespace), Param::Text(name)])
        .collect()
}

pub(super) fn too_long(row_bytes: usize, packet_bytes_max: usize) -> sqlx::Error {
    sqlx::Error::Encode(
        format!("a row of {row_bytes} bytes does not fit the server's max_allowed_packet of {packet_bytes_max}").into(),
    )
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
