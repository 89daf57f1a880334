//! Deletions of archived objects that others hold, as the graph carries them out in SQL: a phase is recorded on what
//! was read, holders are found and deleted with it, and the end is refused while a row is left.

use futures::future::join;
use jiff::Timestamp;
use kindex_deletion::archive::sql::SqlArchive;
use kindex_deletion::archive::{Archive, Holder, HolderPosition, HolderScope, HolderState};
use kindex_deletion::decide::Seen;
use kindex_deletion::kinds::{Kinds, name_of};
use kindex_deletion::object::{DeletionState, Key, Object};
use kindex_model::deletion::Phase;
use kindex_model::kind::{Kind, Registry};
use kindex_model::object::{Object as Text, Uid};
use kindex_model::reference::{Named, OnDelete, Reference, Target};
use kindex_model::reference_name::ReferenceName;
use kindex_query::Life;
use kindex_store::{Deletion, HolderRow};
use serde_json::json;

use super::backend::Backend;
use super::direct::{archived_object, evict, expect_whole};
use super::widget::{KEEPSAKE, KEEPSAKE_PARTS, PARTS, REGISTRY, Widget, at, soft_delete, widget};

scenarios!(
    a_phase_is_recorded_only_on_what_was_read,
    a_tombstone_ends_without_rows_and_releases_what_it_holds,
    a_tombstone_whose_row_is_closed_is_none,
    a_row_of_what_was_deleted_out_of_the_archive_is_dropped,
    holders_of_all_kinds_are_found_and_go,
    who_holds_a_tombstone_is_found_by_rows_and_by_fields,
    whoever_has_a_name_last_is_meant_by_it,
    a_reference_that_is_dropped_ends_no_deletion,
    what_is_of_no_graph_goes_with_its_last_reference,
    a_drop_and_the_end_leave_nothing_behind,
    tombstones_are_read_page_by_page,
    holders_are_read_page_by_page,
);

pub(super) const PARENT: Reference = Reference {
    name: "parent",
    targets: &[Target {
        service: None,
        group: "test.kindex",
        kind: "Widget",
    }],
    kind_column: None,
    path: &["spec", "group"],
    named: Named::Name,
    columns: &["group"],
    owned: false,
    on_delete: OnDelete::Cascade,
};
/// Widgets that name each other.
pub(super) static LINKED: Kind = Kind {
    references: &[PARENT],
    ..PARTS
};

/// Keepsakes that name widgets, by a field without a column.
static LINKING: Kind = Kind {
    references: &[Reference { columns: &[], ..PARENT }],
    ..KEEPSAKE_PARTS
};

/// Keepsakes are of no graph here.
pub(super) static KINDS: [&Kind; 2] = [&LINKED, &KEEPSAKE];
static BOTH: [&Kind; 2] = [&LINKED, &LINKING];

pub(super) fn registry(kinds: &'static [&'static Kind]) -> Registry {
    Registry {
        kinds,
        queries: &[],
        ..REGISTRY
    }
}

pub(super) struct Linked {
    pub(super) backend: Backend,
    pub(super) archive: SqlArchive,
}

impl Linked {
    pub(super) async fn on(backend: Backend) -> Self {
        Self::of(&KINDS, backend).await
    }

    pub(super) async fn of(kinds: &'static [&'static Kind], backend: Backend) -> Self {
        let registry = registry(kinds);
        let backend = backend.with_registry(registry).await;
        let archive = SqlArchive::new(backend.store.clone(), registry, Kinds::of(&registry));
        Self { backend, archive }
    }

    /// Archives a widget that names another one.
    pub(super) async fn evict(&self, uid: &str, parent: &str) {
        evict(&self.backend, &child(uid, parent)).await;
    }

    pub(super) async fn hold(&self, target: &str, holder: &str) {
        let (target, names) = (Uid::from(target), [name(holder)]);
        let kept = self
            .backend
            .store
            .keep_references(&LINKED, &names, (&LINKED, &target), "jane", at(1));
        assert_eq!(kept.await.expect("kept"), [HolderRow::Archived]);
    }

    /// Somebody deletes an archived widget that is held.
    pub(super) async fn delete_held(&self, uid: &str) -> Object {
        let deleted = self
            .backend
            .store
            .delete_direct(&LINKED, &Uid::from(uid), None, at(2))
            .await;
        assert_eq!(deleted.expect("an answer"), Deletion::Held);
        self.read(uid).await.expect("a tombstone")
    }

    pub(super) async fn read(&self, uid: &str) -> Option<Object> {
        self.archive.tombstone(&name_of(&LINKED), uid).await.expect("readable")
    }

    pub(super) async fn record(&self, object: &Object, phase: Phase) -> bool {
        let written = self.archive.record(object, phase, at(3)).await;
        written.expect("an answer")
    }

    /// To the second, as Kubernetes has it. Nobody may change it.
    async fn has_the_time_of_the_request(&self, stored: &Text) {
        let [asked, later] = [2, 9].map(|number| at(number).strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        assert!(stored.text().contains(&asked), "{}", stored.text());
        let later = Text::parse_str(&stored.text().replace(&asked, &later)).expect("an object");
        let refused = self.backend.store.update_direct(&LINKED, &later, at(9)).await;
        let refused = format!("{:?}", refused.expect_err("refused"));
        assert!(refused.contains("metadata.deletionTimestamp"), "{refused}");
    }

    pub(super) async fn end(&self, object: &Object) -> bool {
        self.archive.end(object, at(4)).await.expect("an answer")
    }

    pub(super) async fn holders(&self, uid: &str, scope: HolderScope) -> Vec<Holder> {
        let (mut holders, mut after): (Vec<Holder>, Option<HolderPosition>) = (Vec::new(), None);
        loop {
            let page = self.archive.holders(&seen(uid, uid), scope, after.as_ref()).await;
            let page = page.expect("readable");
            holders.extend(page.holders);
            after = page.next;
            if after.is_none() {
                return holders;
            }
        }
    }

    /// Their uids, each once.
    async fn holder_uids(&self, uid: &str, scope: HolderScope) -> Vec<String> {
        let holders = self.holders(uid, scope).await.into_iter();
        let mut uids: Vec<String> = holders.map(|one| one.uid).collect();
        uids.sort_unstable();
        uids.dedup();
        uids
    }

    pub(super) async fn rows(&self, uid: &str) -> usize {
        let rows = self.backend.store.references(&LINKED, &[Uid::from(uid)]).await;
        rows.expect("readable").len()
    }
}

pub(super) fn child(uid: &str, parent: &str) -> Widget {
    archived_object(uid).spec(json!({"group": parent}))
}

pub(super) fn name(holder: &str) -> ReferenceName {
    ReferenceName::new("Widget", "test.kindex", holder).expect("a name")
}

pub(super) fn seen(uid: &str, name: &str) -> Seen {
    Seen {
        key: Key {
            kind: name_of(&LINKED),
            namespace: "shop".into(),
            name: name.into(),
        },
        uid: uid.to_owned(),
    }
}

async fn a_phase_is_recorded_only_on_what_was_read(backend: Backend) {
    let linked = Linked::on(backend).await;
    linked.evict("t", "").await;
    linked.evict("h", "t").await;
    assert_eq!(linked.read("t").await, None, "nobody has deleted it");
    linked.hold("t", "h").await;
    let read = linked.delete_held("t").await;
    assert_eq!((read.state, read.phase), (DeletionState::Deleting, None));
    assert!(linked.record(&read, Phase::Deleting).await);
    assert!(!linked.record(&read, Phase::Draining).await, "it has another version");
    let now = linked.read("t").await.expect("a tombstone");
    assert_eq!(now.phase, Some(Phase::Deleting));
    let stored = linked.backend.store.get_by_id(&LINKED, &Uid::from("t")).await;
    let stored = stored.expect("readable").expect("a row").object;
    let note = stored.metadata.annotations.get("note");
    assert_eq!(
        note.map(String::as_str),
        Some("first"),
        "what was annotated before stays"
    );
    linked.has_the_time_of_the_request(&stored).await;
    expect_whole(&linked.backend, "t").await;
}

async fn a_tombstone_ends_without_rows_and_releases_what_it_holds(backend: Backend) {
    let linked = Linked::on(backend).await;
    linked.evict("top", "").await;
    linked.evict("t", "top").await;
    linked.evict("h", "t").await;
    linked.hold("top", "t").await;
    linked.hold("t", "h").await;
    let read = linked.delete_held("t").await;
    assert!(!linked.end(&read).await, "it is held");
    let holders = linked.holders("t", HolderScope::All).await;
    let holders: Vec<&Holder> = holders.iter().filter(|holder| holder.reference.is_some()).collect();
    let gone = linked.archive.delete(&seen("t", "t"), &holders, at(3)).await;
    assert_eq!(gone.expect("an answer"), ["h"]);
    assert_eq!(
        linked.read("t").await,
        Some(read.clone()),
        "it goes by its own deletion"
    );
    assert!(linked.record(&read, Phase::Finalizing).await);
    assert!(!linked.end(&read).await, "it has another version");
    let read = linked.read("t").await.expect("a tombstone");
    assert!(linked.archive.holds("t").await.expect("readable"));
    assert!(linked.end(&read).await);
    assert_eq!(linked.backend.life("t").await, Some(Life::Deleted));
    assert_eq!((linked.read("t").await, linked.rows("top").await), (None, 0));
    assert!(!linked.end(&read).await, "once is enough");
    assert!(!linked.archive.holds("t").await.expect("readable"));
    let waits = linked.archive.tombstones(&name_of(&LINKED), "").await;
    assert!(waits.expect("readable").is_empty());
}

async fn a_tombstone_whose_row_is_closed_is_none(backend: Backend) {
    let linked = Linked::on(backend).await;
    linked.evict("t", "").await;
    linked.evict("h", "t").await;
    linked.hold("t", "h").await;
    let read = linked.delete_held("t").await;
    linked.backend.write(soft_delete("t"), at(3)).await;
    assert_eq!(linked.read("t").await, None);
    assert!(!linked.record(&read, Phase::Deleting).await, "what was read is gone");
    assert!(!linked.end(&read).await);
}

async fn a_row_of_what_was_deleted_out_of_the_archive_is_dropped(backend: Backend) {
    let linked = Linked::on(backend).await;
    linked.evict("t", "").await;
    linked.evict("left", "t").await;
    linked.hold("t", "left").await;
    linked.backend.write(child("closed", "t").live(), at(0)).await;
    for holder in ["closed", "nobody"] {
        let (store, uid) = (&linked.backend.store, Uid::from("t"));
        let placed = store.place_reference(&LINKED, &uid, &name(holder), "jane", at(1)).await;
        placed.expect("placed");
    }
    linked.backend.write(soft_delete("closed"), at(1)).await;
    let left = linked
        .backend
        .store
        .delete_direct(&LINKED, &Uid::from("left"), None, at(1))
        .await;
    assert_eq!(left.expect("an answer"), Deletion::Done);
    let read = linked.delete_held("t").await;
    let holders = linked.holders("t", HolderScope::Rows).await;
    assert!(holders.iter().all(|holder| holder.version.is_none()));
    assert_eq!(linked.holder_uids("t", HolderScope::Rows).await, ["closed", "nobody"]);
    assert_eq!((linked.rows("t").await, linked.read("t").await), (2, Some(read)));
}

async fn holders_of_all_kinds_are_found_and_go(backend: Backend) {
    let linked = Linked::of(&BOTH, backend).await;
    linked.evict("t", "").await;
    linked.evict("w", "t").await;
    linked.backend.write(child("live", "other").live(), at(0)).await;
    let keepsakes = [("k", "t"), ("other", "other")];
    let keepsakes = keepsakes.map(|(uid, parent)| child(uid, parent).archived());
    let written = linked.backend.store.write(&LINKING, &keepsakes, at(0)).await;
    written.expect("written");
    let found = linked.holder_uids("t", HolderScope::Archived).await;
    assert_eq!(found, ["k", "w"], "by fields");
    let of_keepsake = ReferenceName::new("Keepsake", "test.kindex", "k").expect("a name");
    let names = [of_keepsake, name("live"), name("w"), name("nobody")];
    let keep = async || {
        let kept = linked.archive.keep(&seen("t", "t"), &names, at(1)).await;
        kept.expect("kept")
    };
    let (archived, unknown) = (HolderState::Archived, HolderState::Unknown);
    assert_eq!(keep().await, [archived, unknown, archived, unknown]);
    assert_eq!(linked.rows("t").await, 2);
    let holders = linked.holders("t", HolderScope::Rows).await;
    let holders: Vec<&Holder> = holders.iter().collect();
    let gone = linked.archive.delete(&seen("t", "t"), &holders, at(2)).await;
    let gone = gone.expect("an answer");
    assert_eq!(
        (gone, linked.rows("t").await),
        (vec!["k".to_owned()], 1),
        "others may name the other one, which goes by its own deletion"
    );
    assert!(linked.read("w").await.is_some(), "it is a tombstone");
    let deleted = HolderState::Deleted;
    assert_eq!(keep().await, [deleted, unknown, archived, unknown]);
}

async fn who_holds_a_tombstone_is_found_by_rows_and_by_fields(backend: Backend) {
    let linked = Linked::on(backend).await;
    for (uid, parent) in [("t", ""), ("row", "other"), ("both", "t"), ("field", "t")] {
        linked.evict(uid, parent).await;
    }
    linked.backend.write(child("live", "t").live(), at(0)).await;
    for holder in ["row", "both"] {
        linked.hold("t", holder).await;
    }
    linked.delete_held("t").await;
    let found = async |scope| linked.holder_uids("t", scope).await;
    assert_eq!(found(HolderScope::Rows).await, ["both", "row"]);
    assert_eq!(found(HolderScope::Archived).await, ["both", "field", "row"]);
    assert_eq!(found(HolderScope::All).await, ["both", "field", "live", "row"]);
    let holders = linked.holders("t", HolderScope::All).await;
    let live = holders.iter().find(|holder| holder.uid == "live").expect("found");
    assert_eq!(live.version, None, "SQL does not delete it");
}

async fn whoever_has_a_name_last_is_meant_by_it(backend: Backend) {
    let linked = Linked::on(backend).await;
    linked.evict("t", "").await;
    let has = async |uid: &str| linked.archive.has_its_name(&seen(uid, "t")).await.expect("readable");
    assert!(has("t").await);
    let other = widget("t2", "t", 20);
    linked.backend.write(other.live(), at(1)).await;
    assert!(!has("t").await && !has("t2").await, "the cluster has the name");
    linked.backend.write(other.archived(), at(2)).await;
    assert!(!has("t").await && has("t2").await);
}

async fn a_reference_that_is_dropped_ends_no_deletion(backend: Backend) {
    let linked = Linked::on(backend).await;
    linked.evict("t", "").await;
    let (store, uid) = (&linked.backend.store, Uid::from("t"));
    let placed = store.place_reference(&LINKED, &uid, &name("live"), "jane", at(1)).await;
    placed.expect("placed");
    let read = linked.delete_held("t").await;
    let released = linked.archive.release_all(&name("live"), Timestamp::UNIX_EPOCH).await;
    released.expect("released");
    assert_eq!(linked.rows("t").await, 0);
    assert_eq!(linked.read("t").await, Some(read.clone()));
    assert!(linked.end(&read).await);
}

async fn what_is_of_no_graph_goes_with_its_last_reference(backend: Backend) {
    let linked = Linked::on(backend).await;
    let store = &linked.backend.store;
    let uids = ["k1", "k2"].map(Uid::from);
    for uid in &uids {
        let keepsake = archived_object(&uid.0).archived();
        store.write(&KEEPSAKE, &[keepsake], at(0)).await.expect("written");
        let placed = store
            .place_reference(&KEEPSAKE, uid, &name("live"), "jane", at(1))
            .await;
        placed.expect("placed");
        let deleted = store.delete_direct(&KEEPSAKE, uid, None, at(2)).await;
        assert_eq!(deleted.expect("an answer"), Deletion::Held);
    }
    let released = linked.archive.release_all(&name("live"), at(3)).await;
    released.expect("released");
    let states = store.row_states(&KEEPSAKE, &uids).await.expect("readable");
    let lives: Vec<Life> = states.iter().map(|state| state.life).collect();
    assert_eq!(lives, [Life::Deleted; 2]);
}

async fn a_drop_and_the_end_leave_nothing_behind(backend: Backend) {
    let linked = Linked::on(backend).await;
    for round in 0..25 {
        let uid = format!("t{round}");
        linked.evict(&uid, "").await;
        linked.evict(&format!("h{round}"), &uid).await;
        linked.hold(&uid, &format!("h{round}")).await;
        let read = linked.delete_held(&uid).await;
        let (target, holder) = (seen(&uid, &uid), name(&format!("h{round}")));
        let (dropped, ended) = join(
            linked.archive.release(&target, &holder),
            linked.archive.end(&read, at(4)),
        )
        .await;
        dropped.expect("dropped");
        if !ended.expect("an answer") {
            assert_eq!(linked.read(&uid).await, Some(read.clone()));
            assert!(linked.end(&read).await, "nothing holds it any more");
        }
        assert_eq!(linked.backend.life(&uid).await, Some(Life::Deleted));
        assert_eq!(linked.rows(&uid).await, 0);
    }
}

async fn tombstones_are_read_page_by_page(backend: Backend) {
    let linked = Linked::on(backend).await;
    linked.evict("h", "").await;
    for number in 0..205 {
        let uid = format!("t{number:03}");
        linked.evict(&uid, "").await;
        linked.hold(&uid, "h").await;
        linked.delete_held(&uid).await;
    }
    let kind = name_of(&LINKED);
    let page = async |after: &str| linked.archive.tombstones(&kind, after).await.expect("readable");
    let first = page("").await;
    assert_eq!((first.len(), &*first[199]), (200, "t199"));
    assert_eq!(page("t199").await.len(), 5);
    assert!(page("t204").await.is_empty());
}

async fn holders_are_read_page_by_page(backend: Backend) {
    let linked = Linked::on(backend).await;
    let uid = |prefix: &str, number: u32| format!("{prefix}a15ab0-f1cc-4f3b-b1c0-000000000{number:03}");
    let uids = |prefix| (0..205).map(|number| uid(prefix, number)).collect::<Vec<_>>();
    let (by_field, by_row) = (uids("1f"), uids("2f"));
    let naming = by_field.iter().map(|uid| child(uid, "t").archived());
    let others = by_row.iter().map(|uid| child(uid, "").archived());
    linked
        .backend
        .write_all(&naming.chain(others).collect::<Vec<_>>(), at(0))
        .await;
    let target = Widget {
        finalizers: by_row.iter().map(|uid| name(uid).to_string()).collect(),
        ..child("t", "")
    };
    evict(&linked.backend, &target).await;
    linked.evict("u", "").await;
    linked.hold("u", &by_field[0]).await;
    assert_eq!(
        linked.holder_uids("t", HolderScope::Rows).await,
        by_row,
        "not those of the next one"
    );
    assert_eq!(
        linked.holder_uids("t", HolderScope::Archived).await,
        [by_field, by_row].concat()
    );
}
