//! The step that asks who holds a live object out of the archive. The cluster counts how often it is asked.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use kindex_deletion::answers::Swept;
use kindex_deletion::archive::sql::SqlArchive;
use kindex_deletion::cluster::Cluster;
use kindex_deletion::cluster::carry_out::carry_out;
use kindex_deletion::cluster::outcome::Task;
use kindex_deletion::decide::{Archived, Step};
use kindex_deletion::kinds::Kinds;
use kindex_model::deletion::Phase;
use kindex_model::object::Object as Text;
use kindex_query::Life;
use kube::Client;

use super::backend::Backend;
use super::tombstones::{KINDS, LINKED, Linked, registry};
use super::widget::{Widget, at, widget};

scenarios!(
    an_object_that_nobody_holds_out_of_the_archive_is_not_read_again,
    what_is_archived_goes_only_with_an_object_that_was_read_again,
);

/// A widget of the cluster that is being deleted.
fn deleted() -> Widget {
    Widget {
        deletion: Some("2024-03-01T00:00:00Z".to_owned()),
        ..widget("t", "t", 7).annotation("test.kindex/deletion-phase", "DELETING")
    }
}

/// Carries the step out for that widget. What it has found, and how often the cluster was asked for the widget, which
/// it has or not.
async fn sweep(linked: &Linked, is_there: bool) -> (Option<Swept>, usize) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let router: Router = Router::new().fallback(move || {
        count.fetch_add(1, Ordering::SeqCst);
        ready(match is_there {
            true => deleted().text().into_response(),
            false => StatusCode::NOT_FOUND.into_response(),
        })
    });
    let registry = registry(&KINDS);
    let kinds = Kinds::of(&registry);
    let text = Text::parse_str(&deleted().text()).expect("an object");
    let task = Task {
        object: kinds.read(&LINKED, &text),
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
