//! One batch in one transaction: lock and read the rows, decide each write, then apply all decisions of one sort
//! together. The number of statements depends on what sorts of change a batch holds, and on its size only where a
//! statement would be longer than the server takes.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_model::projection::Version;
use kindex_model::tables::Side;
use kindex_query::Life;

use crate::cells::{life, res_version, stored};
use crate::connections::InTransaction;
use crate::driver::{Cells, Driver, Limits, Param, Raw, Statement};
use crate::row::{RowWrite, Written, row_version};
use crate::statements::{KindSql, LIST_MAX, padded_list, padded_pairs};
use crate::write::batch::{Batch, Work};
use crate::write::events::{Event, Events};
use crate::write::feed::{FeedEntry, differs_in_content};
use crate::write::main_row::{main_row, side_rows};
use crate::write::plan::{NewRow, Plan, plan};
use crate::write::references::Carried;
use crate::write::replaced::Replaced;

/// Writes of a batch, in one transaction.
pub(crate) struct Writes<'a> {
    pub(crate) work: &'a Work<'a>,
    pub(crate) writes: &'a [RowWrite],
}

impl<D: Driver> InTransaction<D> for Writes<'_> {
    type Done = Vec<Written>;

    fn kind(&self) -> &'static str {
        self.work.kind.name
    }

    async fn run(&self, connection: &mut Raw<D>, limits: Limits) -> Result<Vec<Written>, sqlx::Error> {
        let mut batch = Batch::<D> {
            connection,
            limits,
            work: self.work,
        };
        batch.apply(self.writes).await
    }
}

/// The decisions of a batch by sort, each in order of uid.
#[derive(Default)]
struct Sorted<'a> {
    inserts: Vec<NewRow<'a>>,
    updates: Vec<NewRow<'a>>,
    to_live: Vec<&'a str>,
    to_archived: Vec<&'a str>,
    to_deleted: Vec<&'a str>,
    /// Versions whose rows are new or revived: their names may be taken.
    arrived: Vec<&'a Version>,
}

/// One of the rows of a name. Newer ones are greater.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct NamedRow {
    version: ResourceVersion,
    uid: Uid,
    is_archived: bool,
}

/// A row whose name a newer object has.
struct Superseded {
    row: NamedRow,
    /// Namespace and name.
    name: (String, String),
    by: Uid,
}

impl Superseded {
    /// Of one that was archived: no event of the cluster reports its end.
    fn replaced(&self) -> Option<Replaced> {
        self.row.is_archived.then(|| Replaced {
            uid: self.row.uid.clone(),
            by: self.by.clone(),
        })
    }

    fn event(&self, now: Timestamp) -> Event<'_> {
        let (namespace, name) = &self.name;
        let event = Event {
            uid: &self.row.uid.0,
            namespace,
            name,
            deletion: None,
            erased: false,
        };
        event.erased(now)
    }
}

/// Whether the content of an archived object changed, so that watches have to report it.
fn changes_for_watches(held: &Object, new: &Object) -> bool {
    differs_in_content(held.text(), new.text())
}

/// The same for those who follow the outbox. Its entry may say of an object that it is being deleted, and what is
/// archived is not: a deletion of which a cluster that was restored from a backup knows nothing.
fn changes_for_subscribers(held: &Object, new: &Object) -> bool {
    held.metadata.deletion_timestamp.is_some() || changes_for_watches(held, new)
}

impl<D: Driver> Batch<'_, D> {
    /// Applies all writes and says what became of each.
    pub(crate) async fn apply(&mut self, writes: &[RowWrite]) -> Result<Vec<Written>, sqlx::Error> {
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
        let mut carried = Carried::default();
        let mut events = Events::default();
        let own = self.work.kind.api_version();
        for index in order {
            let write = &writes[index];
            let row = found.get(write.uid());
            let decision = plan(write, row, &own, self.work.now);
            changed.extend(decision.of_archived(row));
            if self.work.kind.events {
                events.note(write, row, &decision, self.work.now);
            }
            if !matches!(decision, Plan::Nothing(Written::Superseded)) {
                carried.note(write, row, self.work.platform.finalizer);
            }
            written[index] = sorted.add(decision);
        }
        // No cluster tells what becomes of an object there once SQL keeps it.
        let before = self.labels_before(&changed, changes_for_watches).await?;
        let left = self.labels_before(events.leaving(), changes_for_subscribers).await?;
        let superseded = self.carry_out(&sorted).await?;
        let replaced: Vec<Replaced> = superseded.iter().filter_map(Superseded::replaced).collect();
        self.record_replaced(&replaced, writes, &mut written).await?;
        let closed: Vec<(&Uid, &Uid)> = superseded.iter().map(|one| (&one.row.uid, &one.by)).collect();
        self.hand_over_held(writes, &written, &found, &closed).await?;
        carried.note_gone(replaced.iter().map(|one| &*one.uid.0));
        self.carry(&carried).await?;
        let updates = before
            .iter()
            .map(|(version, labels)| FeedEntry::update(&version.object.metadata.uid.0, labels));
        let deletions = replaced.iter().map(|one| FeedEntry::deletion(&one.uid.0));
        let entries: Vec<FeedEntry<'_>> = updates.chain(deletions).collect();
        self.append_to_feed(&entries).await?;
        if self.work.kind.events {
            events.became_others(left.iter().map(|(version, _)| *version));
            events.changed_in_archive(before.iter().map(|(version, _)| *version));
            let requested = self.tombstones_of(&events.archived()).await?;
            events.settle(|uid| requested.get(&Uid::from(uid)).copied());
            superseded.iter().for_each(|one| events.add(one.event(self.work.now)));
            self.append_to_outbox(&events.into_sorted()).await?;
        }
        Ok(written)
    }

    /// Of rows that these versions change in such a way: the versions, and the labels that the rows have.
    async fn labels_before<'v>(
        &mut self,
        versions: &[&'v Version],
        is_change: fn(&Object, &Object) -> bool,
    ) -> Result<Vec<(&'v Version, BTreeMap<String, String>)>, sqlx::Error> {
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
                if held.as_ref().is_none_or(|held| is_change(held, &version.object)) {
                    before.push((
                        *version,
                        held.map(|held| held.metadata.labels.clone()).unwrap_or_default(),
                    ));
                }
            }
        }
        Ok(before)
    }

    /// Gives one row that is locked another content.
    pub(crate) async fn replace(&mut self, row: NewRow<'_>) -> Result<(), sqlx::Error> {
        let sorted = Sorted {
            updates: vec![row],
            ..Sorted::default()
        };
        self.carry_out(&sorted).await.map(drop)
    }

    /// Adds one row, of an object whose name nobody has.
    pub(crate) async fn insert(&mut self, row: NewRow<'_>) -> Result<(), sqlx::Error> {
        let sorted = Sorted {
            inserts: vec![row],
            ..Sorted::default()
        };
        self.carry_out(&sorted).await.map(drop)
    }

    /// Gives back those whose names others have now.
    async fn carry_out(&mut self, sorted: &Sorted<'_>) -> Result<Vec<Superseded>, sqlx::Error> {
        if let Some(history) = &self.work.history {
            let mut replaced = Vec::with_capacity(sorted.updates.len());
            let mut anew = Vec::new();
            for row in &sorted.updates {
                let uid = &*row.version.object.metadata.uid.0;
                replaced.push(uid);
                anew.extend(row.begins_anew.then_some(uid));
            }
            self.keep_replaced(history.sql, &replaced).await?;
            self.branch_off(history.sql, &anew).await?;
            self.write_history(history).await?;
        }
        let superseded = self.write_main(sorted).await?;
        self.write_side(Side::Labels, &sorted.inserts, &sorted.updates).await?;
        self.write_side(Side::Annotations, &sorted.inserts, &sorted.updates)
            .await?;
        Ok(superseded)
    }

    async fn write_main(&mut self, sorted: &Sorted<'_>) -> Result<Vec<Superseded>, sqlx::Error> {
        self.write_rows(&sorted.inserts, KindSql::insert).await?;
        self.write_rows(&sorted.updates, KindSql::update).await?;
        self.relocate(Life::Live, &sorted.to_live).await?;
        self.relocate(Life::Archived, &sorted.to_archived).await?;
        let superseded = self.superseded(&sorted.arrived, &sorted.to_deleted).await?;
        let mut deleted = sorted.to_deleted.clone();
        deleted.extend(superseded.iter().map(|one| &*one.row.uid.0));
        deleted.sort_unstable();
        self.relocate(Life::Deleted, &deleted).await?;
        Ok(superseded)
    }

    /// Gives rows that are locked, or new, their content.
    pub(crate) async fn write_rows(
        &mut self,
        rows: &[NewRow<'_>],
        statement: fn(&KindSql, usize) -> Statement,
    ) -> Result<(), sqlx::Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let own = self.work.kind.api_version();
        let hashes: Vec<[u8; 32]> = rows.iter().map(|row| row.version.hash.to_bytes()).collect();
        let rows: Vec<Vec<Param<'_>>> = rows
            .iter()
            .zip(&hashes)
            .map(|(row, hash)| main_row(row, &own, hash, self.work.now))
            .collect();
        self.execute_rows(&rows, statement).await
    }

    /// Rows whose name a newer object has. Leaves out those that this batch deletes anyway. The read locks the rows: of
    /// two writers that store two objects of one name at once, one sees the row of the other.
    async fn superseded(&mut self, arrived: &[&Version], deleted: &[&str]) -> Result<Vec<Superseded>, sqlx::Error> {
        let mut names: Vec<(&str, &str)> = arrived
            .iter()
            .map(|version| {
                let metadata = &version.object.metadata;
                (metadata.namespace.as_str(), metadata.name.as_str())
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        let mut rows_of_name: BTreeMap<(String, String), Vec<NamedRow>> = BTreeMap::new();
        for chunk in names.chunks(LIST_MAX) {
            let params = padded_pairs(chunk);
            let statement = self.work.sql.namesakes(params.len() / 2);
            for row in D::query(self.connection, statement, &params).await? {
                let life = life(None, row.time(4)?);
                let named = NamedRow {
                    // A version of SQL's own is no younger than the cluster's that it followed.
                    version: row_version(life, res_version(&row, 3)?).of_cluster(),
                    uid: Uid::from(row.text(0)?.as_str()),
                    is_archived: life == Life::Archived,
                };
                if deleted.binary_search(&&*named.uid.0).is_ok() {
                    continue;
                }
                let name = (row.text(1)?, row.text(2)?);
                rows_of_name.entry(name).or_default().push(named);
            }
        }
        let superseded = rows_of_name.into_iter().flat_map(|(name, mut rows)| {
            rows.sort_unstable();
            let youngest = rows.pop().map(|row| row.uid);
            rows.into_iter().filter_map(move |row| {
                let by = youngest.clone()?;
                let name = name.clone();
                Some(Superseded { row, name, by })
            })
        });
        Ok(superseded.collect())
    }

    /// Updates the side table: removes the rows of changed objects and inserts them again.
    pub(crate) async fn write_side(
        &mut self,
        side: Side,
        inserts: &[NewRow<'_>],
        updates: &[NewRow<'_>],
    ) -> Result<(), sqlx::Error> {
        let changed: Vec<&Version> = updates
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
        let inserted = inserts.iter().map(|row| row.version);
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
                    Life::Archived => &mut self.to_archived,
                    Life::Deleted => &mut self.to_deleted,
                };
                list.push(&uid.0);
            }
        }
        Written::Updated
    }
}
