//! Who sends a request, found out from its head alone: whoever may not ask is told so before anything of the body is
//! read.

use axum::http::request::Parts;
use futures::FutureExt;
use futures::future::BoxFuture;
use kindex_kube_api::status::Status;
use kindex_serve::body;
use kindex_serve::listen::Peer;

use crate::operations::{Operations, Reason, Refusal};
use crate::{grpc, identity, rest};

/// Who sends a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerIdentity {
    /// Somebody who was found out.
    Named(String),
    /// Somebody at an address, as far as is known.
    Unnamed,
}

/// Finds out who sends a request, from its head.
pub trait Authenticator: Send + Sync {
    /// Who asks.
    ///
    /// # Errors
    /// Who is nobody, and what a page of a browser asks of a server that would do it.
    fn authenticate_request<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<CallerIdentity, Refusal>>;

    /// The server stops: what would never end by itself is to end.
    fn stop(&self) {}
}

/// Lets everybody in.
impl Authenticator for () {
    fn authenticate_request<'a>(&'a self, _head: &'a Parts) -> BoxFuture<'a, Result<CallerIdentity, Refusal>> {
        std::future::ready(Ok(CallerIdentity::Unnamed)).boxed()
    }
}

impl Authenticator for Operations {
    fn authenticate_request<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<CallerIdentity, Refusal>> {
        async move {
            if self.is_open() {
                identity::check_origin(head)?;
                return Ok(CallerIdentity::Unnamed);
            }
            let from_front_proxy = rest::front_proxy_caller(head.extensions.get::<Peer>(), &head.headers);
            let caller = from_front_proxy.unwrap_or_else(|| identity::caller(&head.headers));
            if !caller.is_identified() {
                // Without a body there is nothing to read, and the cluster says what everybody may see.
                return match body::is_expected(&head.method) && !grpc::is_public(head.uri.path()) {
                    true => Err(Refusal::from(Status::unauthorized())),
                    false => Ok(CallerIdentity::Unnamed),
                };
            }
            match self.authenticate(&caller).await {
                Ok(name) => Ok(CallerIdentity::Named(name)),
                Err(refusal) if refusal.reason == Reason::Unauthorized => Err(refusal),
                // That nobody can say who it is now is told by the verb, where it matters.
                Err(_) => Ok(CallerIdentity::Unnamed),
            }
        }
        .boxed()
    }

    fn stop(&self) {
        self.end_events();
    }
}
