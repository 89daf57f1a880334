//! The part of a batch's transaction that is about references on archived objects. All of it happens under the locks of
//! the objects' rows, so that a reference and a deletion cannot both win. On a cluster, where locks are of one node,
//! all that changes a reference writes those rows too, and so do deletions.

use std::collections::HashMap;

use jiff::Timestamp;
use kindex_model::object::Uid;
use kindex_model::projection::Version;
use kindex_model::reference_name::ReferenceName;
use kindex_query::Life;

use crate::cells::FoundRow;
use crate::driver::{Cells, Driver, Param};
use crate::row::RowWrite;
use crate::statements::{LIST_MAX, padded_list, references as sql};
use crate::write::batch::Batch;
use crate::write::events::Event;
use crate::write::feed::FeedEntry;

/// A reference that is placed on an object.
pub(crate) struct NewReference<'a> {
    pub(crate) uid: &'a str,
    /// Holder and text.
    pub(crate) name: ReferenceName,
    /// By whom; `None` where it came with the object from the cluster.
    pub(crate) placed_by: Option<&'a str>,
}

/// When an archived object that is deleted goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeletionMode {
    /// At once, where no reference holds it. If it waited for that, its tombstone goes with it.
    Unheld,
    /// Whoever ends the deletions of tombstones does it: references that are no rows count too.
    Tombstone,
}

/// What became of archived objects that were to be deleted.
#[derive(Default)]
pub(crate) struct Deletions<'a> {
    /// No reference held them: their rows are marked deleted.
    pub(crate) deleted: Vec<&'a str>,
    /// They stay, with tombstones.
    pub(crate) held: Vec<&'a str>,
}

/// What the objects of a batch bring along from the cluster, or take back to it.
#[derive(Default)]
pub(crate) struct Carried<'a> {
    /// The references of objects that are archived: their finalizers.
    references: Vec<NewReference<'a>>,
    /// Objects that were not live before, of which SQL may have some already.
    again: Vec<&'a str>,
    /// Objects that wait for no release any more: those that are back, and archived ones that are gone.
    without_tombstone: Vec<&'a str>,
}

impl<'a> Carried<'a> {
    /// Notes what follows from a write to a row.
    pub(crate) fn note(&mut self, write: &'a RowWrite, row: Option<&FoundRow>, own_finalizer: &str) {
        let before = row.map(FoundRow::life);
        match write {
            RowWrite::Store { version, life, .. } => self.note_version(version, *life, before, own_finalizer),
            RowWrite::SoftDelete { uid } if before == Some(Life::Archived) => self.without_tombstone.push(&uid.0),
            RowWrite::SoftDelete { .. } | RowWrite::Record { .. } => {}
        }
    }

    /// Notes archived objects that go without a write of their own. The order of uids is that of all writers.
    pub(crate) fn note_gone(&mut self, uids: impl Iterator<Item = &'a str>) {
        self.without_tombstone.extend(uids);
        self.without_tombstone.sort_unstable();
        self.without_tombstone.dedup();
    }

    /// Of an object that is being deleted, Kindex takes the references off together with its own finalizer, once SQL
    /// has them: without that finalizer, their absence says nothing.
    fn note_version(&mut self, version: &'a Version, life: Life, before: Option<Life>, own_finalizer: &str) {
        let metadata = &version.object.metadata;
        let uid = &*metadata.uid.0;
        let again = before.is_some_and(|life| life != Life::Live);
        match life {
            Life::Archived => {
                let names = metadata.finalizers.iter();
                let names = names.filter_map(|finalizer| ReferenceName::of_finalizer(finalizer));
                self.references.extend(names.map(|name| NewReference {
                    uid,
                    name,
                    placed_by: None,
                }));
                let has_finalizer = metadata.finalizers.iter().any(|finalizer| finalizer == own_finalizer);
                let is_complete = has_finalizer || metadata.deletion_timestamp.is_none();
                self.again.extend((again && is_complete).then_some(uid));
                self.without_tombstone
                    .extend((before == Some(Life::Deleted)).then_some(uid));
            }
            Life::Live if again => {
                self.again.push(uid);
                self.without_tombstone.push(uid);
            }
            Life::Deleted if before == Some(Life::Archived) => self.without_tombstone.push(uid),
            Life::Live | Life::Deleted => {}
        }
    }
}

impl<D: Driver> Batch<'_, D> {
    /// Deletes archived objects whose rows are locked, those with references as soon as these are released.
    pub(crate) async fn delete_archived<'a>(
        &mut self,
        rows: &[&'a FoundRow],
        mode: DeletionMode,
    ) -> Result<Deletions<'a>, sqlx::Error> {
        let uids: Vec<&str> = rows.iter().map(|row| &*row.uid.0).collect();
        let counts = match mode {
            DeletionMode::Unheld => self.reference_counts(&uids).await?,
            DeletionMode::Tombstone => HashMap::new(),
        };
        let stays = |row: &FoundRow| mode == DeletionMode::Tombstone || counts.contains_key(&row.uid);
        let (held, deleted): (Vec<&FoundRow>, Vec<&FoundRow>) = rows.iter().partition(|row| stays(row));
        let begins = self.not_waiting(&held).await?;
        let events = match self.work.kind.events {
            true => events_of_deletion(&begins, &deleted, self.work.now),
            false => Vec::new(),
        };
        let uids = |rows: &[&'a FoundRow]| rows.iter().map(|row| &*row.uid.0).collect();
        let deletions = Deletions {
            deleted: uids(&deleted),
            held: uids(&held),
        };
        self.soft_delete(&deletions.deleted).await?;
        let begins: Vec<&str> = begins.iter().map(|row| &*row.uid.0).collect();
        self.touch(&begins).await?;
        self.forget_tombstones(&deletions.deleted).await?;
        let held = deletions.held.iter().copied();
        let rows: Vec<[Param<'_>; 3]> = held.map(|uid| self.tombstone(uid)).collect();
        self.execute_rows(&rows, |kind, rows| sql::make_tombstones(kind.spelling(), rows))
            .await?;
        let deleted = deletions.deleted.iter().copied();
        let entries: Vec<FeedEntry<'_>> = deleted.map(FeedEntry::deletion).collect();
        self.append_to_feed(&entries).await?;
        self.append_to_outbox(&events).await?;
        Ok(deletions)
    }

    /// Those of the held ones that did not wait before, as far as anything but their tombstones follows from it.
    async fn not_waiting<'a>(&mut self, held: &[&'a FoundRow]) -> Result<Vec<&'a FoundRow>, sqlx::Error> {
        if !self.work.kind.events && !self.limits.is_node {
            return Ok(Vec::new());
        }
        let uids: Vec<&str> = held.iter().map(|row| &*row.uid.0).collect();
        let waiting = self.tombstones_of(&uids).await?;
        let begins = held.iter().filter(|row| !waiting.contains_key(&row.uid));
        Ok(begins.copied().collect())
    }

    fn tombstone<'p>(&self, uid: &'p str) -> [Param<'p>; 3] {
        [self.kind(), Param::Text(uid), Param::Time(self.work.now)]
    }

    fn kind(&self) -> Param<'static> {
        Param::Text(self.work.kind.name)
    }

    /// How many references these objects have; those without any are left out.
    pub(crate) async fn reference_counts(&mut self, uids: &[&str]) -> Result<HashMap<Uid, u64>, sqlx::Error> {
        let mut counts = HashMap::new();
        for chunk in uids.chunks(LIST_MAX) {
            let params = self.of_kind(chunk);
            let statement = sql::counts(self.work.sql.spelling(), params.len() - 1);
            for row in D::query(self.connection, statement, &params).await? {
                let count = u64::try_from(row.int(1)?).unwrap_or_default();
                counts.insert(Uid::from(row.text(0)?.as_str()), count);
            }
        }
        Ok(counts)
    }

    /// Since when an object waits for the release of its references, if it does.
    pub(crate) async fn tombstone_of(&mut self, uid: &Uid) -> Result<Option<Timestamp>, sqlx::Error> {
        Ok(self.tombstones_of(&[&uid.0]).await?.remove(uid))
    }

    /// Those of these objects that wait so, each with the time of the request.
    pub(crate) async fn tombstones_of(&mut self, uids: &[&str]) -> Result<HashMap<Uid, Timestamp>, sqlx::Error> {
        let mut requested = HashMap::new();
        for chunk in uids.chunks(LIST_MAX) {
            let params = self.of_kind(chunk);
            let statement = sql::tombstones(self.work.sql.spelling(), params.len() - 1);
            for row in D::query(self.connection, statement, &params).await? {
                let uid = Uid::from(row.text(0)?.as_str());
                requested.extend(row.time(1)?.map(|since| (uid, since)));
            }
        }
        Ok(requested)
    }

    /// Whether an object has a reference.
    pub(crate) async fn has_reference(&mut self, uid: &Uid, name: &str) -> Result<bool, sqlx::Error> {
        let params = [self.kind(), Param::Text(&uid.0), Param::Text(name)];
        Ok(!D::query(self.connection, sql::has(), &params).await?.is_empty())
    }

    /// Adds references; leaves those alone that are there.
    pub(crate) async fn place_references(&mut self, references: &[NewReference<'_>]) -> Result<(), sqlx::Error> {
        let names: Vec<String> = references.iter().map(|new| new.name.to_string()).collect();
        let rows = references.iter().zip(&names).map(|(new, name)| {
            [
                self.kind(),
                Param::Text(new.uid),
                Param::Text(name),
                Param::Text(new.name.kind()),
                Param::Text(new.name.group()),
                Param::Text(new.name.uid()),
                Param::Time(self.work.now),
                new.placed_by.map_or(Param::Null, Param::Text),
            ]
        });
        let rows: Vec<[Param<'_>; 8]> = rows.collect();
        self.execute_rows(&rows, |kind, rows| sql::place(kind.spelling(), rows))
            .await
    }

    /// Removes one reference, and says whether it was there.
    pub(crate) async fn release_reference(&mut self, uid: &Uid, name: &str) -> Result<bool, sqlx::Error> {
        let params = [self.kind(), Param::Text(&uid.0), Param::Text(name)];
        let released = D::execute(self.connection, sql::release(), &params).await?;
        Ok(released > 0)
    }

    /// Removes the references that these objects have on others.
    pub(crate) async fn release_held_by(&mut self, holders: &[&str]) -> Result<(), sqlx::Error> {
        for chunk in holders.chunks(LIST_MAX) {
            let params = padded_list(chunk);
            let statement = sql::release_held_by(self.work.sql.spelling(), params.len());
            D::execute(self.connection, statement, &params).await?;
        }
        Ok(())
    }

    /// Stores the references that objects bring along when they leave the cluster, and removes those that they
    /// brought before. References that were placed in SQL go by their release alone.
    pub(crate) async fn carry(&mut self, carried: &Carried<'_>) -> Result<(), sqlx::Error> {
        for chunk in carried.again.chunks(LIST_MAX) {
            let params = self.of_kind(chunk);
            let statement = sql::forget_carried(self.work.sql.spelling(), params.len() - 1);
            D::execute(self.connection, statement, &params).await?;
        }
        self.place_references(&carried.references).await?;
        let mut held: Vec<&str> = carried.references.iter().map(|new| new.uid).collect();
        held.dedup();
        self.touch(&held).await?;
        self.forget_tombstones(&carried.without_tombstone).await
    }

    /// Removes the tombstones of these objects.
    pub(crate) async fn forget_tombstones(&mut self, uids: &[&str]) -> Result<(), sqlx::Error> {
        for chunk in uids.chunks(LIST_MAX) {
            let params = self.of_kind(chunk);
            let statement = sql::forget_tombstones(self.work.sql.spelling(), params.len() - 1);
            D::execute(self.connection, statement, &params).await?;
        }
        Ok(())
    }

    /// The kind, and a list of a size that is kept prepared.
    fn of_kind<'p>(&self, uids: &[&'p str]) -> Vec<Param<'p>> {
        let mut params = vec![self.kind()];
        params.extend(padded_list(uids));
        params
    }
}

/// Of objects whose deletion begins, and of those that are gone.
fn events_of_deletion<'a>(begins: &[&'a FoundRow], deleted: &[&'a FoundRow], now: Timestamp) -> Vec<Event<'a>> {
    let begins = begins.iter().map(|row| Event::of_row(row, Some(now)));
    let gone = deleted.iter().map(|row| Event::of_row(row, None).erased(now));
    begins.chain(gone).collect()
}
