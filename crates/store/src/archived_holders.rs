//! Archived objects as holders: their references on others are rows, and they go with their rows. Each change is one
//! transaction under the locks of the holders' rows. Knows no dialect.

use std::collections::HashMap;

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::reference_name::ReferenceName;
use kindex_query::Life;

use crate::cells::{FoundRow, stored};
use crate::connections::{InTransaction, failure};
use crate::driver::{Driver, Limits, Param, Raw};
use crate::error::StoreError;
use crate::sql_store::SqlStore;
use crate::statements::{LIST_MAX, padded_list, references as sql};
use crate::write::{Batch, DeletionMode, NewReference, Work};

/// Where the row of a holder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderRow {
    /// It is archived.
    Archived,
    /// It was archived and has been deleted since.
    Deleted,
    /// The cluster has it, or had it to its end, or there is none.
    Elsewhere,
}

/// An archived object in the version that a caller has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadVersion {
    /// Its uid.
    pub uid: Uid,
    /// That of the text.
    pub version: ResourceVersion,
}

/// What became of archived objects that were to be deleted. Those that somebody changed since they were read, or that
/// are archived no more, are in neither list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeletionResults {
    /// They are deleted, and hold nothing any more.
    pub deleted: Vec<Uid>,
    /// References hold them: each is deleted once its last one is released.
    pub held: Vec<Uid>,
}

/// Archived objects as holders of others.
///
/// # Guarantees
/// A row of a reference is placed only while its holder is archived, and goes in the transaction in which its holder is
/// deleted here.
#[async_trait]
pub trait ArchivedHolders: Send + Sync {
    /// Stores the references that archived objects of one kind have on an object, also on one in the cluster, and says
    /// where each holder is. Those that are not archived get no row.
    async fn keep_references(
        &self,
        holders: &Kind,
        names: &[ReferenceName],
        target: (&Kind, &Uid),
        placed_by: &str,
        now: Timestamp,
    ) -> Result<Vec<HolderRow>, StoreError>;

    /// Releases a reference and nothing more: an object that waits for the release of its last one is deleted by
    /// [`delete_unheld`](Self::delete_unheld), once its own deletion is through.
    async fn drop_reference(&self, kind: &Kind, uid: &Uid, name: &ReferenceName) -> Result<(), StoreError>;

    /// Marks archived objects deleted that are as they were read, and releases what they hold.
    async fn delete_unheld(
        &self,
        kind: &Kind,
        objects: &[ReadVersion],
        now: Timestamp,
    ) -> Result<DeletionResults, StoreError>;

    /// Gives tombstones to archived objects that are as they were read, whether references hold them or not. They go on
    /// holding others. Returns the uids of those that have tombstones: the others were changed since, or are archived
    /// no more. To do so again changes nothing. As `make_tombstone` for each of them, in one transaction.
    async fn make_tombstones(
        &self,
        kind: &Kind,
        objects: &[ReadVersion],
        now: Timestamp,
    ) -> Result<Vec<Uid>, StoreError>;
}

struct Keep<'a> {
    holders: &'a Work<'a>,
    targets: &'a Work<'a>,
    target: &'a Uid,
    names: &'a [ReferenceName],
    placed_by: &'a str,
}

struct DeleteAsRead<'a> {
    work: &'a Work<'a>,
    objects: &'a [ReadVersion],
    mode: DeletionMode,
    /// Whether those that references hold are left out, and the versions are those of rows.
    is_purge: bool,
}

impl<D: Driver> InTransaction<D> for Keep<'_> {
    type Done = Vec<HolderRow>;

    fn kind(&self) -> &'static str {
        self.holders.kind.name
    }

    async fn run(&self, connection: &mut Raw<D>, limits: Limits) -> Result<Self::Done, sqlx::Error> {
        let mut uids: Vec<&str> = self.names.iter().map(ReferenceName::uid).collect();
        uids.sort_unstable();
        let mut holders = Batch::<D> {
            connection,
            limits,
            work: self.holders,
        };
        let rows = holders.lock_rows(&uids).await?;
        let row_of = |name: &ReferenceName| {
            rows.get(&Uid::from(name.uid()))
                .map_or(HolderRow::Elsewhere, holder_row)
        };
        let archived = self.names.iter().filter(|name| row_of(name) == HolderRow::Archived);
        let new: Vec<_> = archived
            .map(|name| NewReference {
                uid: &self.target.0,
                name: name.clone(),
                placed_by: Some(self.placed_by),
            })
            .collect();
        let holding: Vec<&str> = new.iter().map(|new| new.name.uid()).collect();
        holders.touch(&holding).await?;
        let mut targets = Batch::<D> {
            connection: holders.connection,
            limits,
            work: self.targets,
        };
        targets.place_references(&new).await?;
        Ok(self.names.iter().map(row_of).collect())
    }
}

impl<D: Driver> InTransaction<D> for DeleteAsRead<'_> {
    type Done = DeletionResults;

    fn kind(&self) -> &'static str {
        self.work.kind.name
    }

    async fn run(&self, connection: &mut Raw<D>, limits: Limits) -> Result<DeletionResults, sqlx::Error> {
        let mut batch = Batch::<D> {
            connection,
            limits,
            work: self.work,
        };
        let mut uids: Vec<&str> = self.objects.iter().map(|read| &*read.uid.0).collect();
        uids.sort_unstable();
        let locked = batch.lock_rows(&uids).await?;
        let versions = batch.versions_of(&uids).await?;
        let is_as_read = |read: &&ReadVersion| match (self.is_purge, locked.get(&read.uid)) {
            // Rewound, a row has another version than its text.
            (true, Some(row)) => versions.contains_key(&read.uid) && row.res_version.pack() == read.version,
            (true, None) => false,
            (false, _) => versions.get(&read.uid) == Some(&read.version),
        };
        let unchanged = self.objects.iter().filter(is_as_read);
        let mut rows: Vec<&FoundRow> = unchanged.filter_map(|read| locked.get(&read.uid)).collect();
        rows.retain(|row| row.life() == Life::Archived);
        rows.sort_unstable_by(|one, other| one.uid.cmp(&other.uid));
        // One that is named twice has one event all the same.
        rows.dedup_by(|one, other| one.uid == other.uid);
        if self.is_purge {
            let uids: Vec<&str> = rows.iter().map(|row| &*row.uid.0).collect();
            let counts = batch.reference_counts(&uids).await?;
            rows.retain(|row| !counts.contains_key(&row.uid));
        }
        let deletions = batch.delete_archived(&rows, self.mode).await?;
        batch.release_held_by(&deletions.deleted).await?;
        let uids = |uids: &[&str]| uids.iter().map(|uid| Uid::from(*uid)).collect();
        Ok(DeletionResults {
            deleted: uids(&deletions.deleted),
            held: uids(&deletions.held),
        })
    }
}

impl<D: Driver> Batch<'_, D> {
    /// The versions of texts that can be read; their rows are locked.
    async fn versions_of(&mut self, uids: &[&str]) -> Result<HashMap<Uid, ResourceVersion>, sqlx::Error> {
        let mut versions = HashMap::with_capacity(uids.len());
        for chunk in uids.chunks(LIST_MAX) {
            let params = padded_list(chunk);
            for row in D::query(self.connection, self.work.sql.by_ids(params.len()), &params).await? {
                if let Ok(row) = stored(self.work.kind, &row) {
                    let metadata = &row.object.metadata;
                    versions.insert(metadata.uid.clone(), metadata.resource_version);
                }
            }
        }
        Ok(versions)
    }
}

/// A row that was deleted in the cluster was never archived.
fn holder_row(row: &FoundRow) -> HolderRow {
    match (row.life(), row.evicted_time) {
        (Life::Archived, _) => HolderRow::Archived,
        (Life::Deleted, Some(_)) => HolderRow::Deleted,
        (Life::Deleted, None) | (Life::Live, _) => HolderRow::Elsewhere,
    }
}

#[async_trait]
impl<D: Driver> ArchivedHolders for SqlStore<D> {
    async fn keep_references(
        &self,
        holders: &Kind,
        names: &[ReferenceName],
        (kind, target): (&Kind, &Uid),
        placed_by: &str,
        now: Timestamp,
    ) -> Result<Vec<HolderRow>, StoreError> {
        let (holder_texts, target_texts) = (self.texts(holders), self.texts(kind));
        let keep = Keep {
            holders: &self.reference_work(holders, &holder_texts, now),
            targets: &self.reference_work(kind, &target_texts, now),
            target,
            names,
            placed_by,
        };
        let kept = self.connections.transact(&keep).await;
        kept.map_err(|error| failure::<D>(holders.name, error))
    }

    async fn drop_reference(&self, kind: &Kind, uid: &Uid, name: &ReferenceName) -> Result<(), StoreError> {
        let name = name.to_string();
        let params = [Param::Text(kind.name), Param::Text(&uid.0), Param::Text(&name)];
        self.change(kind, sql::release(), &params).await
    }

    async fn delete_unheld(
        &self,
        kind: &Kind,
        objects: &[ReadVersion],
        now: Timestamp,
    ) -> Result<DeletionResults, StoreError> {
        self.delete_as_read(kind, objects, (DeletionMode::Unheld, false), now)
            .await
    }

    async fn make_tombstones(
        &self,
        kind: &Kind,
        objects: &[ReadVersion],
        now: Timestamp,
    ) -> Result<Vec<Uid>, StoreError> {
        let mode = (DeletionMode::Tombstone, false);
        Ok(self.delete_as_read(kind, objects, mode, now).await?.held)
    }
}

impl<D: Driver> SqlStore<D> {
    /// As [`make_tombstones`](ArchivedHolders::make_tombstones), of those that no reference holds, by the versions of
    /// their rows.
    pub(crate) async fn make_unheld_tombstones(
        &self,
        kind: &Kind,
        objects: &[ReadVersion],
        now: Timestamp,
    ) -> Result<Vec<Uid>, StoreError> {
        let mode = (DeletionMode::Tombstone, true);
        Ok(self.delete_as_read(kind, objects, mode, now).await?.held)
    }

    async fn delete_as_read(
        &self,
        kind: &Kind,
        objects: &[ReadVersion],
        (mode, is_purge): (DeletionMode, bool),
        now: Timestamp,
    ) -> Result<DeletionResults, StoreError> {
        if objects.is_empty() {
            return Ok(DeletionResults::default());
        }
        let texts = self.texts(kind);
        let delete = DeleteAsRead {
            work: &self.reference_work(kind, &texts, now),
            objects,
            mode,
            is_purge,
        };
        let done = self.connections.transact(&delete).await;
        done.map_err(|error| failure::<D>(kind.name, error))
    }
}
