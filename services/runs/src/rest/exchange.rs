//! What all handlers share: bodies in, answers and refusals out.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use http::{Uri, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::json;
use crate::front::{detail, over_rest};
use crate::operations::Operations;
use crate::refusal::{Code, Refusal};
use crate::wire::v1::ErrorDetail;

/// When to look again whether it stores.
const AGAIN: Duration = Duration::from_secs(5);

/// What a handler refuses.
#[derive(Debug)]
pub(super) struct Refused(Refusal);

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        over_rest(&self.0)
    }
}

/// What a handler answers.
pub(super) type Answered<T> = Result<Json<T>, Refused>;

/// A body.
pub(super) fn body<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    json::read(body).map_err(Refused)
}

/// What stands behind the question mark.
pub(super) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Refused> {
    let query = Query::<T>::try_from_uri(uri);
    query.map(|Query(query)| query).map_err(|error| {
        let message = format!("the query of the address cannot be read: {}", error.body_text());
        Refused(Refusal::new(Code::InvalidArgument, "INVALID_FIELD", message))
    })
}

/// Warnings as REST spells them.
pub(super) fn warnings(warnings: &[ErrorDetail]) -> Vec<Value> {
    warnings.iter().map(detail).collect()
}

/// A list that is left out where it is empty.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Warnings(pub(super) Vec<Value>);

impl Warnings {
    pub(super) fn of(details: &[ErrorDetail]) -> Self {
        Self(warnings(details))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What this is.
pub(super) async fn index() -> &'static str {
    concat!("Kindex runs ", env!("CARGO_PKG_VERSION"))
}

/// All routes with their requests and answers, as OpenAPI 3.1 has it.
pub(super) async fn description() -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "application/json")],
        include_str!("openapi.json"),
    )
}

/// That it stores what it is sent, or why not.
pub(super) async fn health(State(operations): State<Arc<Operations>>) -> Result<&'static str, Refused> {
    match operations.store.not_ready() {
        None => Ok("ok"),
        Some(why) => Err(Refused(
            Refusal::new(Code::Unavailable, "NOT_READY", why).again_after(AGAIN),
        )),
    }
}

/// No route.
pub(super) async fn unknown(uri: Uri) -> Refused {
    let message = format!(
        "there is no route {}; see the reference of the runs service",
        uri.path()
    );
    Refused(Refusal::new(Code::NotFound, "ROUTE_NOT_FOUND", message))
}

/// A route without this method.
pub(super) async fn other_method(method: http::Method, uri: Uri) -> Refused {
    let message = format!("{} takes no {method}", uri.path());
    Refused(Refusal::new(Code::InvalidArgument, "METHOD_NOT_ALLOWED", message))
}
