//! What stands between the service and the cluster of a test: it sees every change before the cluster does, and knows
//! that it is answered before the service does.

use std::future::ready;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse as _;
use kube::Client;
use kube::client::Body as Sent;

/// A change that is about to be sent: a `PATCH` or a `DELETE`.
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) body: String,
}

/// A client whose changes reach the cluster once this has ended; where it answers itself, they do not.
pub(crate) fn client<F>(cluster: Client, sees: impl Fn(Change) -> F + Clone + Send + Sync + 'static) -> Client
where
    F: Future<Output = Option<StatusCode>> + Send + 'static,
{
    around(cluster, sees, || ready(()))
}

/// The same. What the cluster answers to a change reaches the service once `is_answered` has ended.
pub(crate) fn around<F, G>(
    cluster: Client,
    sees: impl Fn(Change) -> F + Clone + Send + Sync + 'static,
    is_answered: impl Fn() -> G + Clone + Send + Sync + 'static,
) -> Client
where
    F: Future<Output = Option<StatusCode>> + Send + 'static,
    G: Future<Output = ()> + Send + 'static,
{
    let pass = move |request: Request| {
        let (cluster, sees, is_answered) = (cluster.clone(), sees.clone(), is_answered.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = to_bytes(body, usize::MAX).await.expect("a body").to_vec();
            let is_change = [Method::PATCH, Method::DELETE].contains(&head.method);
            if is_change {
                let change = Change {
                    path: head.uri.path().to_owned(),
                    body: String::from_utf8_lossy(&body).into_owned(),
                };
                if let Some(code) = sees(change).await {
                    return code.into_response();
                }
            }
            let sent = Request::from_parts(head, Sent::from(body));
            let answer = cluster.send(sent).await.expect("the cluster answers");
            if is_change {
                is_answered().await;
            }
            answer.map(Body::new)
        }
    };
    let router: Router = Router::new().fallback(pass);
    Client::new(router, "default")
}
