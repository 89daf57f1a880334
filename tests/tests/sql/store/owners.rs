//! What an object owns by the columns of declared references, as an ingester asks before an eviction.

use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_model::reference::Reference;

use super::backend::Backend;
use super::tombstones::{KINDS, Linked, PARENT, child};
use super::widget::{KEEPSAKE, PARTS, at, soft_delete};

scenarios!(
    an_object_owns_the_live_ones_that_name_it,
    no_other_field_than_one_of_an_owner_counts,
);

/// A widget owns those that name it.
const OWNED_PARTS: Kind = Kind {
    references: &[Reference { owned: true, ..PARENT }],
    ..PARTS
};
static OWNED: Kind = OWNED_PARTS;
pub(super) static OWNING: [&Kind; 2] = [&OWNED, &KEEPSAKE];

/// The same by a field that has no column.
static UNINDEXED: Kind = Kind {
    references: &[Reference {
        owned: true,
        columns: &[],
        ..PARENT
    }],
    ..PARTS
};

/// The same where no cluster has widgets.
static SQL_ONLY: Kind = Kind {
    cluster: false,
    ..OWNED_PARTS
};

async fn owns(backend: &Backend, name: &str, uid: &str) -> bool {
    let uid = Uid::from(uid);
    let found = backend.store.owns_live_rows(&OWNED, "shop", name, &uid).await;
    found.expect("an answer")
}

/// As if an owner waited for what has left, or for itself.
async fn an_object_owns_the_live_ones_that_name_it(backend: Backend) {
    let backend = Linked::of(&OWNING, backend).await.backend;
    assert!(!owns(&backend, "t", "t").await, "nothing is there");
    let named = child("h", "t");
    backend.write(named.live(), at(0)).await;
    assert!(owns(&backend, "t", "t").await);
    assert!(!owns(&backend, "other", "other").await);
    backend.write(named.archived(), at(1)).await;
    assert!(!owns(&backend, "t", "t").await, "it is archived");
    backend.write(child("g", "t").live(), at(2)).await;
    backend.write(soft_delete("g"), at(3)).await;
    assert!(!owns(&backend, "t", "t").await, "it is deleted");
    backend.write(child("t", "t").live(), at(4)).await;
    assert!(!owns(&backend, "t", "t").await, "it names itself");
    backend.write(child("z", "t").live(), at(5)).await;
    assert!(owns(&backend, "t", "t").await, "another one beside it");
}

/// As if a holder that the object does not own kept it in the cluster, or one that no cluster has.
async fn no_other_field_than_one_of_an_owner_counts(mut backend: Backend) {
    static UNINDEXED_KINDS: [&Kind; 2] = [&UNINDEXED, &KEEPSAKE];
    static SQL_ONLY_KINDS: [&Kind; 2] = [&SQL_ONLY, &KEEPSAKE];
    for kinds in [&KINDS, &UNINDEXED_KINDS, &SQL_ONLY_KINDS] {
        backend = Linked::of(kinds, backend).await.backend;
        backend.write(child("h", "t").live(), at(0)).await;
        assert!(!owns(&backend, "t", "t").await);
    }
}
