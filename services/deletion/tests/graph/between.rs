//! What stands between the service and the cluster of a test, and sees every change before the cluster does.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse as _;
use kube::Client;
use kube::client::Body as Sent;

/// A change that is about to be sent.
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) body: String,
}

/// A client whose changes reach the cluster once this has ended; where it answers itself, they do not.
pub(crate) fn client<F>(cluster: Client, sees: impl Fn(Change) -> F + Clone + Send + Sync + 'static) -> Client
where
    F: Future<Output = Option<StatusCode>> + Send + 'static,
{
    let pass = move |request: Request| {
        let (cluster, sees) = (cluster.clone(), sees.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = to_bytes(body, usize::MAX).await.expect("a body").to_vec();
            if head.method == Method::PATCH {
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
            answer.map(Body::new)
        }
    };
    let router: Router = Router::new().fallback(pass);
    Client::new(router, "default")
}
