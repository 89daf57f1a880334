//! The server without a connection, for other parts of the same process: requests are function calls, without a socket
//! or a token.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use http_body_util::{BodyExt, BodyStream, StreamBody};
use hyper::body::Body;
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response};
use kindex_serve::abort::AbortToken;
use tower::Service;

use crate::access::Holder;
use crate::limits::InternalRequest;
use crate::server::{Answered, Host, respond};

/// Answers requests of the same process as if they had come over a connection with a token. What they may be at once is
/// bounded as it is there, with places beside those of the connections.
///
/// # Example
/// ```
/// # let _of_a_runtime = async || -> Result<(), Box<dyn std::error::Error>> {
/// use kindex_cluster::Cluster;
/// use tower::ServiceExt;
///
/// let cluster = Cluster::ephemeral().await?;
/// let request = hyper::Request::get("/version").body(String::new())?;
/// let response = cluster.in_process(([127, 0, 0, 1], 6480).into()).oneshot(request).await?;
/// assert_eq!(response.status(), 200);
/// # Ok(())
/// # };
/// ```
#[derive(Clone)]
pub struct InProcess {
    host: Arc<Host>,
    holder: Holder,
    agent: Option<HeaderValue>,
}

impl InProcess {
    pub(crate) fn new(host: Host) -> Self {
        Self {
            host: Arc::new(host),
            holder: Holder::Anybody,
            agent: None,
        }
    }

    /// The same for the ingester, who has places of its own.
    #[must_use]
    pub fn of_the_ingester(mut self) -> Self {
        self.holder = Holder::Ingester;
        self
    }

    /// The same for a program that calls itself so, where its requests do not say it.
    #[must_use]
    pub fn named(mut self, agent: &'static str) -> Self {
        self.agent = Some(HeaderValue::from_static(agent));
        self
    }
}

impl<B> Service<Request<B>> for InProcess
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Answered;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Some(agent) = &self.agent {
            let named = request.headers_mut().entry(header::USER_AGENT);
            named.or_insert_with(|| agent.clone());
        }
        request.extensions_mut().insert(InternalRequest(self.holder));
        let host = Arc::clone(&self.host);
        async move { Ok(ending(respond(&host, request).await)) }.boxed()
    }
}

/// The same answer, which ends where a connection would be broken off for the sake of others.
fn ending(response: Answered) -> Answered {
    let Some(AbortToken(abort)) = response.extensions().get::<AbortToken>().cloned() else {
        return response;
    };
    let (head, body) = response.into_parts();
    let frames = BodyStream::new(body).take_until(abort.cancelled_owned());
    Response::from_parts(head, StreamBody::new(frames).boxed_unsync())
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use serde_json::{Value, json};
    use tower::ServiceExt;

    use super::*;
    use crate::Cluster;

    fn request(method: &str, uri: &str, body: &Value) -> Request<Full<Bytes>> {
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header("content-type", "application/json");
        request.body(Full::new(body.to_string().into())).expect("a request")
    }

    #[tokio::test]
    async fn requests_of_the_same_process_need_no_connection_and_no_token() {
        let cluster = Cluster::ephemeral().await.expect("a cluster");
        let service = cluster.in_process(([127, 0, 0, 1], 1).into()).named("a-part/1");
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
        let created = service
            .clone()
            .oneshot(request("POST", "/api/v1/namespaces", &namespace))
            .await;
        let created = created.expect("an answer");
        assert_eq!(created.status(), 201);
        let text = created.into_body().collect().await.expect("a body").to_bytes();
        let created: Value = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(created["metadata"]["managedFields"][0]["manager"], "a-part");

        let watch = request("GET", "/api/v1/namespaces?watch=1&resourceVersion=0", &Value::Null);
        let watch = service.oneshot(watch).await.expect("an answer");
        let mut lines = watch.into_body();
        let first = lines.frame().await.expect("a line").expect("a frame");
        let first = first.into_data().expect("data");
        assert!(first.starts_with(b"{\"type\":\"ADDED\""));
    }
}
