//! What a cluster says of an object that it does not have. The clusters of these tests are routers, whose own 404 says
//! that nothing is served at the path.

use axum::Json;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

/// There is no object at this path: the answer names it.
pub(super) fn absent(at: &Uri) -> Response {
    let (_, name) = at.path().rsplit_once('/').expect("the path of an object");
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
        "message": format!("widgets \"{name}\" not found"), "details": {"name": name}});
    (StatusCode::NOT_FOUND, Json(status)).into_response()
}
