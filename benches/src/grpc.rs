//! Clients of the gRPC services: a connection each, messages with just the fields that the load needs.

use std::time::{Duration, Instant};

use http::uri::PathAndQuery;
use kindex_model::kind::Kind;
use kube::Config;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic_prost::ProstCodec;

/// `Create<Kind>Request`, the object in its encoding.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Create {
    #[prost(bytes = "vec", tag = "1")]
    object: Vec<u8>,
}

impl Create {
    /// The request for an object, JSON.
    ///
    /// # Panics
    /// When the object is none of the kind.
    pub fn new(kind: &Kind, object: &str) -> Self {
        Self {
            object: (kind.encode)(object).proto.expect("an object of the kind"),
        }
    }
}

/// `Get<Kind>Request`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Get {
    /// Of the object.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Of the object.
    #[prost(string, tag = "2")]
    pub namespace: String,
}

/// The answers to both, the object in its encoding.
#[derive(Clone, PartialEq, prost::Message)]
struct Answer {
    #[prost(bytes = "vec", tag = "1")]
    object: Vec<u8>,
}

/// A client with a connection of its own, which it opens with the first call.
#[derive(Clone)]
pub struct Caller(Channel);

impl Caller {
    /// Of the server at that address.
    ///
    /// # Panics
    /// When the address is of no use.
    pub fn new(config: &Config) -> Self {
        let channel = Channel::builder(config.cluster_url.clone());
        Self(channel.connect_lazy())
    }

    /// Calls a method and reads the whole answer; how long that took.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn call<M: prost::Message + 'static>(&self, path: PathAndQuery, request: M) -> Duration {
        let begun = Instant::now();
        let mut grpc = Grpc::new(self.0.clone());
        grpc.ready().await.expect("a connection");
        let answer = grpc.unary(tonic::Request::new(request), path, ProstCodec::<M, Answer>::default());
        let answer = answer.await.expect("an answer").into_inner();
        assert!(!answer.object.is_empty(), "an object");
        begun.elapsed()
    }
}

/// Where a kind's method is: `Create` and `Get` are `CreateModel` and `GetModel` for models.
///
/// # Panics
/// When the kind's name is none for a path.
pub fn method(kind: &Kind, verb: &str) -> PathAndQuery {
    let Kind {
        group, version, name, ..
    } = kind;
    let path = format!("/{group}.{version}.{name}Service/{verb}{name}");
    path.parse().expect("a path")
}
