//! The step that asks who holds a live object out of the archive, and deletes those that go in its phase. The cluster
//! counts how often it is asked.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::Uri;
use axum::response::IntoResponse as _;
use kindex_deletion::answers::Swept;
use kindex_deletion::archive::sql::SqlArchive;
use kindex_deletion::cluster::Cluster;
use kindex_deletion::cluster::carry_out::carry_out;
use kindex_deletion::cluster::outcome::Task;
use kindex_deletion::decide::{Archived, Step};
use kindex_deletion::kinds::Kinds;
use kindex_model::deletion::Phase;
use kindex_model::kind::Kind;
use kindex_model::object::Object as Text;
use kindex_query::Life;
use kube::Client;

use super::absent::absent;
use super::backend::Backend;
use super::direct::evict;
use super::owners::OWNING;
use super::tombstones::{KINDS, Linked, child, registry};
use super::widget::{Widget, at, widget};

scenarios!(
    an_object_that_nobody_holds_out_of_the_archive_is_not_read_again,
    what_is_archived_goes_only_with_an_object_that_was_read_again,
    what_is_archived_goes_however_deeply_it_is_nested,
    what_is_archived_and_owned_goes_once_its_owner_drains,
);

/// A widget of the cluster that is being deleted.
fn deleted(phase: Phase) -> Widget {
    Widget {
        deletion: Some("2024-03-01T00:00:00Z".to_owned()),
        ..widget("t", "t", 7).annotation("test.kindex/deletion-phase", &phase.to_string())
    }
}

/// Carries the step out for that widget. What it has found, and how often the cluster was asked for the widget, which
/// it has or not.
pub(super) async fn sweep(linked: &Linked, is_there: bool) -> (Option<Swept>, usize) {
    sweep_in(Phase::Deleting, &KINDS, linked, is_there).await
}

/// The same in a phase, for the first one of these kinds.
async fn sweep_in(
    phase: Phase,
    kinds: &'static [&'static Kind],
    linked: &Linked,
    is_there: bool,
) -> (Option<Swept>, usize) {
    let text = deleted(phase).text();
    let read = Text::parse_str(&text).expect("an object");
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let router: Router = Router::new().fallback(move |at: Uri| {
        count.fetch_add(1, Ordering::SeqCst);
        ready(match is_there {
            true => text.clone().into_response(),
            false => absent(&at),
        })
    });
    let registry = registry(kinds);
    let kinds = Kinds::of(&registry);
    let task = Task {
        object: kinds.read(registry.kinds[0], &read),
        others: Vec::new(),
        step: Step::Sweep,
        target: None,
    };
    let archive = SqlArchive::new(linked.backend.store.clone(), registry, kinds.clone());
    let cluster = Cluster::new(Client::new(router, "default"), kinds).with_archive(Arc::new(archive));
    let outcome = carry_out(&cluster, &task, at(3)).await;
    assert_eq!(outcome.failed, None);
    (outcome.swept, asked.load(Ordering::SeqCst))
}

/// As if each object of a tree were asked for though nothing is archived that could go with it.
async fn an_object_that_nobody_holds_out_of_the_archive_is_not_read_again(backend: Backend) {
    let linked = Linked::on(backend).await;
    linked.evict("other", "elsewhere").await;
    let nobody = Swept {
        phase: Some(Phase::Deleting),
        archived: Archived::Remaining {
            plain: Vec::new(),
            owned: Vec::new(),
        },
        goes_on: false,
        refused: None,
    };
    assert_eq!(sweep(&linked, true).await, (Some(nobody), 0));
}

/// As if what a watch has reported were enough.
async fn what_is_archived_goes_only_with_an_object_that_was_read_again(backend: Backend) {
    let linked = Linked::on(backend).await;
    linked.evict("h", "t").await;
    assert_eq!(sweep(&linked, false).await, (None, 1));
    assert_eq!(linked.backend.life("h").await, Some(Life::Archived));
    let (swept, reads) = sweep(&linked, true).await;
    assert_eq!((swept.map(|swept| swept.goes_on), reads), (Some(true), 1));
    assert_eq!(linked.backend.life("h").await, Some(Life::Deleted));
}

/// As if a holder that is too deep for a value named nothing, and its row had no columns.
async fn what_is_archived_goes_however_deeply_it_is_nested(backend: Backend) {
    let linked = Linked::on(backend).await;
    evict(&linked.backend, &child("h", "t").nested()).await;
    let (swept, _) = sweep(&linked, true).await;
    assert_eq!(swept.map(|swept| swept.goes_on), Some(true));
    assert_eq!(linked.backend.life("h").await, Some(Life::Deleted));
}

/// As if the archive did not know that the owner may still be used, or nobody asked it again once the owner drains.
async fn what_is_archived_and_owned_goes_once_its_owner_drains(backend: Backend) {
    let linked = Linked::of(&OWNING, backend).await;
    for holder in ["named", "placed"] {
        linked.evict(holder, "t").await;
    }
    linked.hold("t", "placed").await;
    let owned = ["named", "placed"].map(|holder| format!("widget.test.kindex shop/{holder} (archived)"));
    let waits = Swept {
        phase: Some(Phase::Deleting),
        archived: Archived::Remaining {
            plain: Vec::new(),
            owned: Vec::from(owned),
        },
        goes_on: false,
        refused: None,
    };
    for _ in 0..2 {
        let (swept, _) = sweep_in(Phase::Deleting, &OWNING, &linked, true).await;
        assert_eq!(swept.as_ref(), Some(&waits), "others may use the owner");
    }
    for holder in ["named", "placed"] {
        assert_eq!(linked.backend.life(holder).await, Some(Life::Archived), "{holder}");
    }
    let gone = Swept {
        phase: Some(Phase::Draining),
        archived: Archived::Remaining {
            plain: Vec::new(),
            owned: Vec::new(),
        },
        goes_on: true,
        refused: None,
    };
    let (swept, _) = sweep_in(Phase::Draining, &OWNING, &linked, true).await;
    assert_eq!(swept, Some(gone));
    for holder in ["named", "placed"] {
        assert_eq!(linked.backend.life(holder).await, Some(Life::Deleted), "{holder}");
    }
}
