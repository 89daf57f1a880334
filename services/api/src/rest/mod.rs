//! The Kubernetes API over HTTP: requests for the served kinds become verbs of `operations`, and all others are
//! forwarded to the cluster.

mod exchange;

mod aggregated;

mod render;

mod read;

mod watch;

mod write;

mod references;

mod events;

mod discovery;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use kindex_kube_api::request::{self, Query, ResourcePath, Target, Verb, parameter};
use kindex_model::kind::Scope;
use kindex_serve::watches::Accounting;

use exchange::Head;
use render::Columns;

use crate::identity;
use crate::metrics::Operation;
use crate::operations::{Caller, ObjectKey, Operations, Refusal, Resource};
use crate::watched::watched;

pub(crate) use aggregated::caller as front_proxy_caller;
pub(crate) use exchange::refused;

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

    /// The served kind that a request is about, and what its path says of it.
    fn about(&self, path: &str) -> Option<About> {
        let Target::Resource(mut path) = request::parse_path(path) else {
            return None;
        };
        let group = aggregated::group(&path.group).map(str::to_owned);
        let is_aggregated = group.is_some();
        path.group = group.unwrap_or(path.group);
        let resource = self.resource_of(&path)?;
        Some(About {
            resource,
            path,
            is_aggregated,
        })
    }

    /// The served kind that a path is about, in the version of the path, unless the path is about something below its
    /// objects that we leave alone.
    fn resource_of(&self, path: &ResourcePath) -> Option<Resource> {
        let kinds = self.operations.registry().kinds.iter().copied();
        let mut kinds = kinds.filter(|kind| kind.group == path.group && kind.plural == path.plural);
        let found = kinds.find_map(|kind| Resource::all(kind).find(|resource| resource.version == path.version));
        found.filter(|resource| match resource.kind.scope {
            Scope::Namespaced => path.namespace.is_some() || path.name.is_none(),
            Scope::Cluster => path.namespace.is_none(),
        })
    }
}

/// What a path says.
struct About {
    resource: Resource,
    path: ResourcePath,
    /// Whether it is in the kind's group for aggregation.
    is_aggregated: bool,
}

/// A request for objects of a served kind.
struct Inbound {
    resource: Resource,
    path: ResourcePath,
    query: Query,
    head: Head,
    caller: Caller,
    body: Bytes,
}

impl Inbound {
    fn namespace(&self) -> &str {
        self.path.namespace.as_deref().unwrap_or_default()
    }

    fn key<'a>(&'a self, name: &'a str) -> ObjectKey<'a> {
        ObjectKey {
            resource: self.resource,
            namespace: self.namespace(),
            name,
        }
    }
}

async fn answer(State(rest): State<Rest>, request: Request) -> Response {
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let from_front_proxy = aggregated::caller(request.extensions().get(), request.headers());
    let is_from_front_proxy = from_front_proxy.is_some();
    let caller = from_front_proxy.unwrap_or_else(|| identity::caller(request.headers()));
    let query = Query::parse(request.uri().query().unwrap_or_default());
    // A request that kube-apiserver passes on is for us or for nobody: what we would hand on comes back here.
    let about = rest
        .about(&path)
        .filter(|about| about.is_aggregated || !is_from_front_proxy);
    let references = references::about(rest.operations.registry().kinds, &path).filter(|_| !is_from_front_proxy);
    let events = events::about(&path).filter(|_| !is_from_front_proxy);
    let operation = match &events {
        Some(about) => Operation {
            verb: about.verb(),
            kind: about.kind(&rest.operations),
        },
        None => operation_of(about.as_ref(), references.as_ref(), &method, &query),
    };
    let deprecation = about.as_ref().and_then(|about| about.resource.deprecation());
    let answered = match (about, references, events) {
        (Some(about), ..) if about.is_aggregated && !aggregated::serves(operation.verb) => {
            Err(Refusal::method_not_allowed())
        }
        (Some(about), ..) => respond(&rest, &caller, about, query, request).await,
        (None, Some(about), _) => about_references(&rest, &caller, about, &query, request).await,
        (None, None, Some(about)) => about_events(&rest, &caller, &about, &query, request).await,
        (None, None, None) if is_from_front_proxy => Ok(aggregated::discovery(rest.operations.registry(), &path)),
        (None, None, None) => relay(&rest, &caller, &query, request).await,
    };
    let mut response = answered.unwrap_or_else(|refusal| exchange::refused(&refusal));
    let code = response.status().as_u16();
    // As kube-apiserver: whatever the answer is, of everything that gets as far as the version.
    if let Some(warning) = deprecation.filter(|_| !matches!(code, 401 | 403 | 429)) {
        exchange::warn(&mut response, warning);
    }
    // Parameters may hold anything; a path holds names alone.
    if method != Method::GET || matches!(code, 401 | 403) {
        let user = rest.operations.known(&caller);
        tracing::info!(target: "kindex_api::audit", user, %method, path, code, "answered");
    } else {
        tracing::debug!(%method, path, code, "answered");
    }
    response.extensions_mut().insert(operation);
    response
}

/// What a request is counted as.
fn operation_of(
    about: Option<&About>,
    references: Option<&Result<references::About, Refusal>>,
    method: &Method,
    query: &Query,
) -> Operation {
    match (about, references) {
        (Some(about), _) => Operation {
            verb: Verb::of(method.as_str(), &about.path, query).into(),
            kind: about.resource.kind.name,
        },
        (None, Some(Ok(about))) => Operation {
            verb: references::verb(method).into(),
            kind: about.kind(),
        },
        (None, Some(Err(_)) | None) => Operation::RELAYED,
    }
}

async fn about_references(
    rest: &Rest,
    caller: &Caller,
    about: Result<references::About, Refusal>,
    query: &Query,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let about = about?;
    let (parts, _body) = open(rest, request).await?;
    references::answer(rest, caller, &about, &parts.method, query).await
}

async fn about_events(
    rest: &Rest,
    caller: &Caller,
    about: &events::About,
    query: &Query,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let (parts, _body) = open(rest, request).await?;
    events::answer(rest, caller, about, &parts.method, &parts.headers, query).await
}

async fn open(rest: &Rest, request: Request<Body>) -> Result<(Parts, Bytes), Refusal> {
    let (parts, body) = request.into_parts();
    if rest.operations.is_open() {
        identity::check_origin(&parts)?;
    }
    let body = exchange::read(body).await?;
    Ok((parts, body))
}

async fn relay(rest: &Rest, caller: &Caller, query: &Query, request: Request<Body>) -> Result<Response, Refusal> {
    if request.method() == Method::GET && rest.operations.has_sql_only() && discovery::is_one(request.uri().path()) {
        let (parts, _body) = open(rest, request).await?;
        return discovery::answer(&rest.operations, caller, &parts).await;
    }
    // Of other kinds, and of ours in a form that is not served here: it lasts as long as any.
    let is_watch = request.method() == Method::GET && query.is_on(parameter::WATCH);
    let slot = is_watch.then(|| rest.operations.slot()).transpose()?;
    let (parts, body) = open(rest, request).await?;
    let response = exchange::relay(&rest.operations, caller, parts, body).await?;
    Ok(match slot {
        Some(slot) => watched(response, slot, Accounting::Own),
        None => response,
    })
}

async fn respond(
    rest: &Rest,
    caller: &Caller,
    about: About,
    query: Query,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let (parts, body) = open(rest, request).await?;
    let inbound = Inbound {
        resource: about.resource,
        path: about.path,
        query,
        head: Head::read(&parts.headers)?,
        caller: caller.clone(),
        body,
    };
    let Some(verb) = Verb::of(parts.method.as_str(), &inbound.path, &inbound.query) else {
        return Err(Refusal::method_not_allowed());
    };
    match (verb, inbound.path.name.as_deref(), inbound.path.subresource) {
        (Verb::Watch, ..) => watch::watch(rest, &inbound).await,
        (Verb::List, None, None) => read::list(rest, &inbound).await,
        (Verb::Get, Some(name), _) => read::get(rest, &inbound, name).await,
        (Verb::Create, None, None) => write::create(rest, &inbound).await,
        (Verb::Update, Some(name), _) => write::update(rest, &inbound, name).await,
        (Verb::Patch, Some(name), _) => write::patch(rest, &inbound, name).await,
        (Verb::Delete, Some(name), None) => write::delete(rest, &inbound, name).await,
        (Verb::DeleteCollection, None, None) => write::clear(rest, &inbound).await,
        _ => Err(Refusal::method_not_allowed()),
    }
}
