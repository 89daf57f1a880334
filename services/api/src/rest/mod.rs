//! The Kubernetes API over HTTP: requests for the served kinds become verbs of `operations`, everything else goes to
//! the cluster as it is. Refuses to know what a verb does.

mod exchange;
mod read;
mod render;
mod watch;
mod write;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::Response;
use bytes::Bytes;
use kindex_cluster::request::{self, Query, ResourcePath, Target};
use kindex_runtime::kind::{Kind, Scope};

use crate::operations::{Caller, Operations, Place, Refusal};
use exchange::Head;
use render::Columns;

/// The front end.
#[derive(Clone)]
pub struct Rest {
    operations: Arc<Operations>,
    columns: Arc<Columns>,
}

impl Rest {
    /// Over these verbs.
    pub fn new(operations: Arc<Operations>) -> Self {
        let columns = Arc::new(Columns::of(operations.registry()));
        Self { operations, columns }
    }

    /// All paths.
    pub fn router(self) -> Router {
        Router::new().fallback(answer).with_state(self)
    }

    /// The served kind that a path is about, unless the path is about something below its objects that we leave alone.
    fn kind_of(&self, path: &ResourcePath) -> Option<&'static Kind> {
        let kinds = self.operations.registry().kinds.iter().copied();
        let mut found =
            kinds.filter(|kind| kind.group == path.group && kind.version == path.version && kind.plural == path.plural);
        found.next().filter(|kind| match kind.scope {
            Scope::Namespaced => path.namespace.is_some() || path.name.is_none(),
            Scope::Cluster => path.namespace.is_none(),
        })
    }
}

/// A request for objects of a served kind.
struct Asked {
    kind: &'static Kind,
    path: ResourcePath,
    query: Query,
    head: Head,
    caller: Caller,
    body: Bytes,
}

impl Asked {
    fn namespace(&self) -> &str {
        self.path.namespace.as_deref().unwrap_or_default()
    }

    fn place<'a>(&'a self, name: &'a str) -> Place<'a> {
        Place {
            kind: self.kind,
            namespace: self.namespace(),
            name,
        }
    }
}

async fn answer(State(rest): State<Rest>, request: Request) -> Response {
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let caller = exchange::caller(request.headers());
    let answered = respond(&rest, &caller, request).await;
    let response = answered.unwrap_or_else(|refusal| exchange::refused(&refusal));
    let code = response.status().as_u16();
    // Parameters may hold anything; a path holds names alone.
    if method != Method::GET || matches!(code, 401 | 403) {
        let user = rest.operations.known(&caller);
        tracing::info!(target: "kindex_api::audit", user, %method, path, code, "answered");
    } else {
        tracing::debug!(%method, path, code, "answered");
    }
    response
}

async fn respond(rest: &Rest, caller: &Caller, request: Request<Body>) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    if rest.operations.is_open() {
        exchange::check_origin(&parts)?;
    }
    let body = exchange::read(body).await?;
    let found = match request::parse_path(parts.uri.path()) {
        Target::Resource(path) => rest.kind_of(&path).map(|kind| (kind, path)),
        _ => None,
    };
    let Some((kind, path)) = found else {
        return exchange::relay(&rest.operations, caller, parts, body).await;
    };
    let head = Head::read(&parts.headers)?;
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let asked = Asked {
        kind,
        path,
        query,
        head,
        caller: caller.clone(),
        body,
    };
    let name = asked.path.name.as_deref();
    match (&parts.method, name, asked.path.subresource) {
        (&Method::GET, None, None) if asked.query.is_on("watch") => watch::watch(rest, &asked).await,
        (&Method::GET, None, None) => read::list(rest, &asked).await,
        (&Method::GET, Some(name), _) => read::get(rest, &asked, name).await,
        (&Method::POST, None, None) => write::create(rest, &asked).await,
        (&Method::PUT, Some(name), _) => write::update(rest, &asked, name).await,
        (&Method::PATCH, Some(name), _) => write::patch(rest, &asked, name).await,
        (&Method::DELETE, Some(name), None) => write::delete(rest, &asked, name).await,
        (&Method::DELETE, None, None) => write::clear(rest, &asked).await,
        _ => Err(Refusal::method_not_allowed()),
    }
}
