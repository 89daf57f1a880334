//! The archive in SQL. References on what is archived, and on what archived objects hold in the cluster, are rows; what
//! names an object without one is found by the columns of its reference.

mod rows;

mod written;

mod going;

mod restored;

mod former;

mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::deletion::Phase;
use kindex_model::kind::{Kind, Registry};
use kindex_model::object::{Object as Text, Uid};
use kindex_model::reference_name::ReferenceName;
use kindex_query::select::Select;
use kindex_query::{Life, Stored};
use kindex_store::{DirectError, HolderRow, MetadataStorage, Placed, ReadVersion, Reference, StoreError};

use super::{Archive, ArchiveError, Holder, HolderPosition, HolderScope, HolderState, Left, Page, PlacementOutcome};
use crate::cleanup::Cleanups;
use crate::decide::Seen;
use crate::kinds::{Kinds, in_own_version, name_of};
use crate::object::{DeletionState, Key, KindName, Object};
use crate::phase_start;

use rows::failed;

/// By whom rows are placed.
const PLACED_BY: &str = "kindex-deletion";
/// Rows of a page.
const PAGE_ROWS: u32 = 200;

/// The archive of one database.
pub struct SqlArchive {
    store: Arc<dyn MetadataStorage>,
    registry: Registry,
    kinds: Kinds,
    /// The kinds whose objects may have something outside: they go by their own deletion alone.
    outside: BTreeSet<KindName>,
}

impl SqlArchive {
    /// The archive of the kinds of the graph.
    pub fn new(store: Arc<dyn MetadataStorage>, registry: Registry, kinds: Kinds) -> Self {
        let outside = BTreeSet::new();
        Self {
            store,
            registry,
            kinds,
            outside,
        }
    }

    /// The same, with what removes what objects have outside.
    #[must_use]
    pub fn with_cleanups(self, cleanups: &Cleanups) -> Self {
        Self {
            outside: cleanups.all().map(|(kind, _)| name_of(kind)).collect(),
            ..self
        }
    }

    /// The kind of a holder; `None` where it is of another service, or of no kind of the graph.
    fn kind_of(&self, name: &ReferenceName) -> Option<&'static Kind> {
        let mut kinds = self.kinds.all();
        kinds.find(|kind| kind.group == name.group() && kind.name.eq_ignore_ascii_case(name.kind()))
    }

    /// The rows on an object, each with its holder. The row of a holder that is restored goes over to the new object,
    /// which may be between the two reads: where a holder was deleted, both are read once more, from the first row on,
    /// since the new one may come before.
    async fn rows(&self, target: &Seen, scope: HolderScope, after: Option<&str>) -> Result<Page, ArchiveError> {
        let mut after = after;
        loop {
            if let Some(page) = self.rows_after(target, scope, after).await? {
                return Ok(page);
            }
            after = None;
        }
    }

    /// Nothing where a holder was deleted, whose row is released.
    async fn rows_after(
        &self,
        target: &Seen,
        scope: HolderScope,
        after: Option<&str>,
    ) -> Result<Option<Page>, ArchiveError> {
        let kind = self.kind(&target.key.kind)?;
        let begin = Reference {
            kind: kind.name.to_owned(),
            uid: Uid::from(target.uid.as_str()),
            name: after.unwrap_or_default().to_owned(),
            placed: Timestamp::UNIX_EPOCH,
            placed_by: None,
        };
        let mut rows = self
            .store
            .reference_page(kind, Some(&begin), PAGE_ROWS)
            .await
            .map_err(failed)?;
        let is_full = rows.len() == PAGE_ROWS as usize;
        rows.retain(|row| row.uid == begin.uid);
        let more = rows.last().filter(|_| is_full && rows.len() == PAGE_ROWS as usize);
        let next = more.map(|last| HolderPosition::Reference(last.name.clone()));
        let naming = (scope != HolderScope::Rows).then_some(HolderPosition::Naming(0, None));
        let names: Vec<ReferenceName> = rows.iter().filter_map(|row| row.name.parse().ok()).collect();
        let holders = self.holders_of(target, names).await?;
        Ok(holders.map(|holders| Page {
            holders,
            next: next.or(naming),
        }))
    }

    /// The rows of objects of the graph, by uid.
    async fn rows_of(
        &self,
        names: &[ReferenceName],
    ) -> Result<BTreeMap<String, (&'static Kind, Stored)>, ArchiveError> {
        let mut of_kinds: BTreeMap<&'static str, (&'static Kind, Vec<&str>)> = BTreeMap::new();
        for name in names {
            if let Some(kind) = self.kind_of(name) {
                let (_, uids) = of_kinds.entry(kind.name).or_insert_with(|| (kind, Vec::new()));
                uids.push(name.uid());
            }
        }
        let mut found = BTreeMap::new();
        for (kind, uids) in of_kinds.into_values() {
            let mut select = Select::all(kind).among(&uids);
            select.limit = Some(PAGE_ROWS);
            for stored in self.store.select(&select, None).await.map_err(failed)?.items {
                found.insert(stored.object.metadata.uid.to_string(), (kind, stored));
            }
        }
        Ok(found)
    }

    /// The holders of rows; nothing where one of them was deleted out of the archive. Its row is what a process left
    /// that ended early, and is released.
    async fn holders_of(&self, target: &Seen, names: Vec<ReferenceName>) -> Result<Option<Vec<Holder>>, ArchiveError> {
        let found = self.rows_of(&names).await?;
        let (mut holders, mut are_all) = (Vec::new(), true);
        for name in names {
            match found.get(name.uid()) {
                Some((_, stored)) if was_deleted(stored) => {
                    self.release(target, &name).await?;
                    are_all = false;
                }
                Some((kind, stored)) => holders.push(self.holder(kind, stored, Some(name))),
                None => holders.push(Holder {
                    key: None,
                    uid: name.uid().to_owned(),
                    reference: Some(name),
                    version: None,
                    edges: Vec::new(),
                }),
            }
        }
        Ok(are_all.then_some(holders))
    }
}

#[async_trait]
impl Archive for SqlArchive {
    async fn keep(
        &self,
        target: &Seen,
        references: &[ReferenceName],
        now: Timestamp,
    ) -> Result<Vec<HolderState>, ArchiveError> {
        let kind = self.kind(&target.key.kind)?;
        let uid = Uid::from(target.uid.as_str());
        let mut places = BTreeMap::new();
        for holders in self.kinds.all() {
            let of_kind = references.iter().filter(|name| {
                let found = self.kind_of(name);
                found.is_some_and(|found| std::ptr::eq(found, holders))
            });
            let of_kind: Vec<_> = of_kind.cloned().collect();
            if of_kind.is_empty() {
                continue;
            }
            let kept = self
                .store
                .keep_references(holders, &of_kind, (kind, &uid), PLACED_BY, now);
            let kept = kept.await.map_err(failed)?;
            places.extend(of_kind.into_iter().zip(kept));
        }
        let place = |name| match places.get(name) {
            Some(HolderRow::Archived) => HolderState::Archived,
            Some(HolderRow::Deleted) => HolderState::Deleted,
            Some(HolderRow::Elsewhere) | None => HolderState::Unknown,
        };
        Ok(references.iter().map(place).collect())
    }

    async fn hold(
        &self,
        target: &Key,
        reference: &ReferenceName,
        now: Timestamp,
    ) -> Result<PlacementOutcome, ArchiveError> {
        let kind = self.kind(&target.kind)?;
        let found = self.store.get_by_name(kind, &target.namespace, &target.name).await;
        let found = found.map_err(failed)?.filter(|found| found.life == Life::Archived);
        let Some(uid) = found.map(|found| found.object.metadata.uid.clone()) else {
            return Ok(PlacementOutcome::Absent);
        };
        let placed = self.store.place_reference(kind, &uid, reference, PLACED_BY, now).await;
        match placed {
            Ok(placed) => Ok(PlacementOutcome::By {
                target: Seen {
                    key: target.clone(),
                    uid: uid.to_string(),
                },
                is_new: placed == Placed::New,
            }),
            Err(StoreError::Direct {
                source: DirectError::Deleting(_),
                ..
            }) => Ok(PlacementOutcome::Leaving),
            Err(StoreError::Direct { .. }) => Ok(PlacementOutcome::Absent),
            Err(error) => Err(failed(error)),
        }
    }

    async fn has_reference(&self, target: &Key, reference: &ReferenceName) -> Result<bool, ArchiveError> {
        let kind = self.kind(&target.kind)?;
        let found = self.store.get_by_name(kind, &target.namespace, &target.name).await;
        let found = found.map_err(failed)?.filter(|found| found.life == Life::Archived);
        let Some(found) = found else {
            return Ok(false);
        };
        let uid = &found.object.metadata.uid;
        let held = self.store.references_of_holder(&Uid::from(reference.uid())).await;
        let mut held = held.map_err(failed)?.into_iter();
        Ok(held.any(|row| row.kind == kind.name && row.uid == *uid && row.name == reference.to_string()))
    }

    async fn names(&self, holder: &Object, target: &Key) -> Result<Option<bool>, ArchiveError> {
        let kind = self.kind(&holder.key.kind)?;
        let found = self.store.get_by_id(kind, &Uid::from(holder.uid.as_str())).await;
        let found = found.map_err(failed)?.filter(|found| found.life == Life::Archived);
        let read = found.map(|found| self.kinds.read_stored(&self.registry.platform, kind, &found.object));
        Ok(read.map(|read| read.edges.iter().any(|edge| edge.target == *target)))
    }

    async fn left(&self, target: &Object, holders: &[ReferenceName]) -> Result<Left, ArchiveError> {
        let found = self.rows_of(holders).await?;
        let mut left = Left::default();
        for name in holders {
            let Some((kind, stored)) = found.get(name.uid()) else {
                continue;
            };
            if stored.life == Life::Archived {
                left.archived.push(self.holder(kind, stored, Some(name.clone())));
            }
            if was_deleted(stored) && !self.holds_for_restored(target, kind, stored).await? {
                left.deleted.push(name.clone());
            }
        }
        Ok(left)
    }

    async fn detach(&self, holder: &Holder, former: &str, now: Timestamp) -> Result<bool, ArchiveError> {
        self.detach_as_read(holder, former, now).await
    }

    async fn holders(
        &self,
        target: &Seen,
        scope: HolderScope,
        after: Option<&HolderPosition>,
    ) -> Result<Page, ArchiveError> {
        match after {
            // What holds objects of other services, their services have.
            None if self.kinds.get(&target.key.kind).is_none() => self.naming(target, scope, 0, None).await,
            None => self.rows(target, scope, None).await,
            Some(HolderPosition::Reference(name)) => self.rows(target, scope, Some(name)).await,
            Some(HolderPosition::Naming(at, token)) => self.naming(target, scope, *at, token.as_deref()).await,
        }
    }

    async fn delete(&self, with: &Seen, holders: &[&Holder], now: Timestamp) -> Result<Vec<String>, ArchiveError> {
        let mut read: BTreeMap<&KindName, Vec<(&Holder, ReadVersion)>> = BTreeMap::new();
        for holder in holders {
            if let (Some(key), Some(version)) = (&holder.key, holder.version) {
                let uid = Uid::from(holder.uid.as_str());
                let of_kind = read.entry(&key.kind).or_default();
                of_kind.push((holder, ReadVersion { uid, version }));
            }
        }
        let mut of_kinds: BTreeMap<&KindName, Vec<ReadVersion>> = BTreeMap::new();
        for (name, mut objects) in read {
            self.leave_tombstones(name, &mut objects).await?;
            let mut tombstones = Vec::new();
            for (holder, version) in objects {
                let mut targets = holder.edges.iter().map(|edge| &edge.target.kind);
                let holds_elsewhere = targets.any(|kind| self.kinds.get(kind).is_none());
                let is_cleaned_up = self.outside.contains(name);
                if is_cleaned_up || holds_elsewhere || self.is_named(holder, with).await? {
                    tombstones.push(version);
                    continue;
                }
                of_kinds.entry(name).or_default().push(version);
            }
            // What holds objects of other services releases them before it goes, what others name waits for these or
            // deletes them with it, and what has something outside waits for its cleanup: as a tombstone.
            let made = self.store.make_tombstones(self.kind(name)?, &tombstones, now).await;
            made.map_err(failed)?;
        }
        let mut gone = Vec::new();
        for (name, objects) in of_kinds {
            let taken = self.store.delete_unheld(self.kind(name)?, &objects, now).await;
            let taken = taken.map_err(failed)?;
            gone.extend(taken.deleted.iter().map(ToString::to_string));
        }
        Ok(gone)
    }

    async fn release(&self, target: &Seen, reference: &ReferenceName) -> Result<(), ArchiveError> {
        let (kind, uid) = (self.kind(&target.key.kind)?, Uid::from(target.uid.as_str()));
        self.store.drop_reference(kind, &uid, reference).await.map_err(failed)
    }

    async fn tombstones(&self, kind: &KindName, after: &str) -> Result<Vec<String>, ArchiveError> {
        let after = Uid::from(after);
        let page = self
            .store
            .tombstone_page(self.kind(kind)?, Some(&after), PAGE_ROWS)
            .await;
        let uids = page.map_err(failed)?.into_iter().map(|one| one.uid.to_string());
        Ok(uids.collect())
    }

    async fn tombstone(&self, kind: &KindName, uid: &str) -> Result<Option<Object>, ArchiveError> {
        let found = self.tombstone_text(kind, uid).await?;
        let kind = self.kind(kind)?;
        Ok(found.map(|found| Object {
            state: DeletionState::Deleting,
            ..self.kinds.read(kind, &found)
        }))
    }

    async fn tombstone_text(&self, kind: &KindName, uid: &str) -> Result<Option<Text>, ArchiveError> {
        let (kind, uid) = (self.kind(kind)?, Uid::from(uid));
        let found = self.store.get_by_id(kind, &uid).await.map_err(failed)?;
        let Some(found) = found.filter(|found| found.life == Life::Archived) else {
            return Ok(None);
        };
        let waits = self.store.tombstones(kind, &[uid]).await.map_err(failed)?;
        let own = || in_own_version(&self.registry.platform, kind, &found.object).into_owned();
        Ok(waits.first().map(|_| own()))
    }

    async fn waiting_for(&self, holder: &Seen) -> Result<Vec<Seen>, ArchiveError> {
        let mut waiting = self.waiting_by_rows(holder).await?;
        waiting.extend(self.waiting_by_fields(holder).await?);
        Ok(waiting.iter().map(Seen::of).collect())
    }

    async fn has_its_name(&self, seen: &Seen) -> Result<bool, ArchiveError> {
        let Key { kind, namespace, name } = &seen.key;
        let found = self.store.get_by_name(self.kind(kind)?, namespace, name).await;
        let found = found.map_err(failed)?;
        Ok(found.is_some_and(|found| found.life == Life::Archived && *found.object.metadata.uid.0 == *seen.uid))
    }

    async fn has_former(&self, holder: &Object) -> Result<bool, ArchiveError> {
        self.is_held_by_former(holder).await
    }

    async fn holds(&self, uid: &str) -> Result<bool, ArchiveError> {
        let held = self.store.references_of_holder(&Uid::from(uid)).await;
        Ok(!held.map_err(failed)?.is_empty())
    }

    async fn record(&self, object: &Object, phase: Phase, now: Timestamp) -> Result<bool, ArchiveError> {
        let kind = self.kind(&object.key.kind)?;
        let uid = Uid::from(object.uid.as_str());
        let found = self.store.get_by_id(kind, &uid).await.map_err(failed)?;
        let is_as_read = |found: &Stored| found.object.metadata.resource_version == object.version;
        let tombstones = self.store.tombstones(kind, &[uid]).await.map_err(failed)?;
        let (Some(found), Some(tombstone)) = (found.filter(is_as_read), tombstones.first()) else {
            return Ok(false);
        };
        let (own, start) = (self.own_form(kind, &found)?, phase_start::of_archived(phase, now));
        let recorded = &self.kinds.names.recorded;
        let text = recorded.record(own.text(), &start, tombstone.requested);
        self.rewrite(kind, &found, text, now).await
    }

    async fn end(&self, object: &Object, now: Timestamp) -> Result<bool, ArchiveError> {
        let kind = self.kind(&object.key.kind)?;
        let (uid, version) = (Uid::from(object.uid.as_str()), object.version);
        let read = [ReadVersion { uid, version }];
        let taken = self.store.delete_unheld(kind, &read, now).await.map_err(failed)?;
        Ok(!taken.deleted.is_empty())
    }

    async fn release_all(&self, holder: &ReferenceName, now: Timestamp) -> Result<(), ArchiveError> {
        let held = self.store.references_of_holder(&Uid::from(holder.uid())).await;
        for row in held.map_err(failed)? {
            let mut kinds = self.registry.kinds.iter().copied();
            let Some(kind) = kinds.find(|kind| kind.name == row.kind) else {
                continue;
            };
            if row.name != holder.to_string() {
                continue;
            }
            // A tombstone of the graph goes by its own deletion.
            let released = match self.kinds.all().any(|of_graph| std::ptr::eq(of_graph, kind)) {
                true => self.store.drop_reference(kind, &row.uid, holder).await,
                false => {
                    let released = self.store.release_reference(kind, &row.uid, holder, now).await;
                    released.map(drop)
                }
            };
            released.map_err(failed)?;
        }
        Ok(())
    }
}

/// Whether an object was deleted out of the archive.
fn was_deleted(stored: &Stored) -> bool {
    stored.life == Life::Deleted && stored.evicted_time.is_some()
}
