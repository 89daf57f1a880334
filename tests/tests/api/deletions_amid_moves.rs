//! An archived holder is deleted amid its move to an object of another service: what its deletion has released there
//! stays released.

use std::collections::BTreeSet;
use std::future::IntoFuture as _;
use std::sync::{Arc, Mutex};

use axum::extract::Request;
use axum::{Json, Router};
use kindex_api::operations::{Caller, NamedObject, Peers};
use kindex_harness::wait::eventually;
use kindex_model::kind::Kind;
use kindex_query::Life;
use kube::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::moves_across::{GROUP, HOLDERS, PROJECTS, REGION, discovery, holder};
use super::stage::{FINAL, Stage, client_of, send, serve};

static KINDS: &[&Kind] = &[&HOLDERS];

/// A moment of the move from `a` to `b`: while the region is asked this, and the holder names that.
#[derive(Clone, Copy, Debug)]
struct Moment {
    during: &'static str,
    names: &'static str,
}

/// The new target is held, and nothing names it.
const PLACED: Moment = Moment {
    during: "PUT b",
    names: "a",
};
/// Whoever moves has yet to look whether the new target is still held.
const WRITTEN: Moment = Moment {
    during: "GET b",
    names: "b",
};
/// It has been held once more.
const RENEWED: Moment = Moment {
    during: "PUT b",
    names: "b",
};
/// Whoever moves is through with the new target.
const RELEASED: Moment = Moment {
    during: "DELETE a",
    names: "b",
};

/// The service of the models, and whoever deletes the holder.
struct Region {
    /// The models that the holder holds.
    held: Mutex<BTreeSet<String>>,
    moment: Moment,
    /// Of the service with the holder.
    client: Client,
    /// The code by which that service has deleted the holder.
    deleted: Mutex<Option<u16>>,
}

impl Region {
    async fn answer(&self, method: &str, path: &str) -> Value {
        if let Some(found) = discovery(path) {
            return found;
        }
        let model = path.split('/').nth(5).unwrap_or_default();
        self.note(method, model);
        let is_asked_this = format!("{method} {model}") == self.moment.during;
        let is_there = self.deleted.lock().unwrap().is_none();
        if is_asked_this && is_there {
            self.delete_holder().await;
        }
        json!({"target": {"uid": "u", "state": "Live"}, "references": []})
    }

    fn note(&self, method: &str, model: &str) {
        let mut held = self.held.lock().unwrap();
        if method == "PUT" {
            held.insert(model.to_owned());
        } else if method == "DELETE" {
            held.remove(model);
        }
    }

    /// Deletes the holder if the moment has come. `kindex deletion` is fast: before it ends the tombstone, it releases
    /// what that names.
    async fn delete_holder(&self) {
        let path = format!("{PROJECTS}/p");
        let (_, found) = send(&self.client, "GET", &path, &Value::Null).await;
        if found["spec"]["description"] != self.moment.names {
            return;
        }
        let (code, _) = send(&self.client, "DELETE", &path, &Value::Null).await;
        if code == 202 {
            self.held.lock().unwrap().remove(self.moment.names);
        }
        *self.deleted.lock().unwrap() = Some(code);
    }
}

/// A project that names `a`, in the archive alone.
async fn archive(stage: &Stage) {
    let metadata = json!({"name": "p", "annotations": {FINAL: "true"}});
    let project = json!({"apiVersion": "michelangelo.api/v2", "kind": "Project", "metadata": metadata,
        "spec": {"description": "a"}});
    let (code, created) = send(&stage.api, "POST", PROJECTS, &project).await;
    assert_eq!(code, 201, "{created}");
    let path = format!("{PROJECTS}/p");
    eventually("the project is archived", async || {
        let rows = stage.store.rows_of_name(&HOLDERS, "default", "p").await.unwrap();
        let (code, _) = send(&stage.cluster, "GET", &path, &Value::Null).await;
        code == 404 && rows.first().is_some_and(|row| row.life == Life::Archived)
    })
    .await;
}

/// Moves the holder, which is deleted meanwhile: into a tombstone where the deletion graph is at work, else at once.
/// What it holds in the end.
async fn held_after(moment: Moment, has_graph: bool) -> BTreeSet<String> {
    let stage = Stage::of_kinds(KINDS).await;
    archive(&stage).await;
    let operations = || stage.operations().with_graph(has_graph);
    let region = Arc::new(Region {
        held: Mutex::new(BTreeSet::from(["a".to_owned()])),
        moment,
        client: client_of(serve(operations(), None, stage.ground.stop()).await),
        deleted: Mutex::default(),
    });
    let asked = region.clone();
    let router: Router = Router::new().fallback(move |request: Request| {
        let (asked, method, path) = (asked.clone(), request.method().clone(), request.uri().path().to_owned());
        async move { Json(asked.answer(method.as_str(), &path).await) }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peers = Peers::default().at(GROUP, &format!("http://{}", listener.local_addr().unwrap()));
    tokio::spawn(axum::serve(listener, router).into_future());

    let operations = operations().with_peers(peers);
    let (caller, holder) = (Caller::default(), holder());
    let to = NamedObject::of_peer(&REGION, "Model", "default", "b");
    let moved = operations.move_holder(&caller, &holder, None, &to, false).await;
    let is_written = moment.names == "b";
    assert_eq!(moved.is_ok(), is_written, "{moment:?}: {moved:?}");
    let code = if has_graph { 202 } else { 200 };
    assert_eq!(*region.deleted.lock().unwrap(), Some(code), "{moment:?}");
    let held = region.held.lock().unwrap().clone();
    drop(operations);
    stage.end().await;
    held
}

/// As if a reference that its holder's deletion has released were placed once more, and nobody knew of it.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_held_by_a_holder_whose_deletion_has_released_what_it_names() {
    for moment in [PLACED, WRITTEN, RENEWED, RELEASED] {
        let held = held_after(moment, true).await;
        assert!(held.is_empty(), "{moment:?}: {held:?}");
    }
}

/// Without the graph, nobody but the move knows of the new target, as long as it is not through with that.
#[tokio::test(flavor = "multi_thread")]
async fn a_move_whose_holder_is_gone_at_once_leaves_nothing_held_at_the_new_target() {
    for moment in [PLACED, WRITTEN, RENEWED] {
        let held = held_after(moment, false).await;
        assert!(!held.contains("b"), "{moment:?}: {held:?}");
    }
}
