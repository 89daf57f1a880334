//! REST: the routes that existing clients know, and one for each further call, in JSON. Who calls was found out before.

mod json;

mod values;

mod pairs;

mod batch;

mod message;

mod runs;

mod exchange;

mod write;

mod read;

mod files;

#[cfg(test)]
mod fuzz;

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::routing::{MethodRouter, delete, get, post};
use axum::{Extension, Router};

use crate::front::over_rest;
use crate::keys::{Caller, Scope};
use crate::operations::Operations;

/// The handlers of a route.
type Handlers = MethodRouter<Arc<Operations>>;

/// A route, and what its caller needs to be allowed.
pub struct Route {
    /// The method.
    pub method: &'static str,
    /// The path, with names in braces.
    pub path: &'static str,
    /// None for what everybody may ask.
    pub scope: Option<Scope>,
    handlers: fn() -> Handlers,
}

const fn route(method: &'static str, path: &'static str, scope: Option<Scope>, handlers: fn() -> Handlers) -> Route {
    Route {
        method,
        path,
        scope,
        handlers,
    }
}

const INGEST: Option<Scope> = Some(Scope::Ingest);
const QUERY: Option<Scope> = Some(Scope::Query);
const ADMIN: Option<Scope> = Some(Scope::Admin);

/// All routes but those of signed addresses.
pub const ROUTES: &[Route] = &[
    route("GET", "/", None, || get(exchange::index)),
    route("GET", "/health", None, || get(exchange::health)),
    route("GET", "/openapi.json", None, || get(exchange::description)),
    route("POST", "/api/v1/runs", INGEST, || post(write::open)),
    route("GET", "/api/v1/runs", QUERY, || get(read::list)),
    route("POST", "/api/v1/ingest/batch", INGEST, || post(write::batch)),
    route("GET", "/api/v1/runs/search", QUERY, || get(files::search)),
    route("POST", "/api/v1/runs/compare", QUERY, || post(read::compare)),
    route("GET", "/api/v1/runs/{id}", QUERY, || get(read::run)),
    route("DELETE", "/api/v1/runs/{id}", ADMIN, || delete(write::delete)),
    route("GET", "/api/v1/runs/{id}/metrics", QUERY, || get(read::metrics)),
    route("POST", "/api/v1/runs/{id}/finish", INGEST, || post(write::finish)),
    route("POST", "/api/v1/runs/{id}/heartbeat", INGEST, || post(write::heartbeat)),
    route("GET", "/api/v1/runs/{id}/params", QUERY, || get(read::params)),
    route("POST", "/api/v1/runs/{id}/params", INGEST, || post(write::params)),
    route("POST", "/api/v1/runs/{id}/tags", INGEST, || post(write::tags)),
    route("GET", "/api/v1/runs/{id}/artifacts", QUERY, || get(files::list)),
    route("POST", "/api/v1/runs/{id}/artifacts", INGEST, || post(files::create)),
    route("GET", "/api/v1/runs/{id}/artifacts/{name}/url", QUERY, || {
        get(files::url)
    }),
    route("POST", "/api/v1/artifacts/{upload_id}/finalize", INGEST, || {
        post(files::finalize)
    }),
    route("GET", "/api/v1/projects/{project}/stats", QUERY, || get(files::stats)),
];

/// The routes.
pub fn router(operations: Arc<Operations>) -> Router {
    let router = ROUTES.iter().fold(Router::new(), |router, route| {
        router.route(route.path, requiring(route.scope, (route.handlers)()))
    });
    router
        .route("/artifacts/{upload_id}", get(files::content).put(files::content))
        .fallback(exchange::unknown)
        .method_not_allowed_fallback(exchange::other_method)
        .with_state(operations)
}

/// Who may not do this is told so before anybody reads the body.
fn requiring(scope: Option<Scope>, handlers: Handlers) -> Handlers {
    let Some(scope) = scope else { return handlers };
    let check = move |Extension(caller): Extension<Caller>, request: Request, next: Next| async move {
        match caller.may(scope) {
            Ok(()) => next.run(request).await,
            Err(refusal) => over_rest(&refusal),
        }
    };
    handlers.route_layer(middleware::from_fn(check))
}
