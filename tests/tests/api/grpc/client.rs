//! A client that knows no service at compile time: requests are JSON, made into messages by the descriptors.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use kindex_harness::wait::WAIT_MAX;
use kindex_model::kind::Kind;
use prost::Message;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, MethodDescriptor, SerializeOptions};
use serde_json::Value;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::MetadataMap;
use tonic::transport::{Certificate, Channel, ClientTlsConfig};
use tonic::{Request, Response, Status, Streaming};

use crate::api::stage::CERTIFICATE;

#[derive(Clone)]
pub(in crate::api) struct Client {
    channel: Channel,
    pub(super) pool: DescriptorPool,
    /// Sent with every call.
    pub(super) metadata: MetadataMap,
}

/// What is to be sent.
pub(super) enum Body<'a> {
    Json(&'a Value),
    Bytes(&'a [u8]),
}

impl Client {
    pub(in crate::api) async fn plain(address: SocketAddr) -> Self {
        let channel = Channel::from_shared(format!("http://{address}")).unwrap();
        Self::over(channel.connect().await.unwrap())
    }

    pub(super) async fn secure(address: SocketAddr) -> Self {
        let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(CERTIFICATE));
        let channel = Channel::from_shared(format!("https://{address}")).unwrap();
        Self::over(channel.tls_config(tls).unwrap().connect().await.unwrap())
    }

    fn over(channel: Channel) -> Self {
        Self {
            channel,
            pool: DescriptorPool::decode(kindex_generated::registry().descriptors).unwrap(),
            metadata: MetadataMap::new(),
        }
    }

    /// The same client, with a token.
    pub(in crate::api) fn with_token(&self, token: &str) -> Self {
        let mut client = self.clone();
        let value = format!("Bearer {token}").parse().unwrap();
        client.metadata.insert("authorization", value);
        client
    }

    /// The connection, for other services of the same port.
    pub(super) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// A call of a kind's service: `Create*` is `CreateModel` for models.
    pub(super) fn method(&self, kind: &Kind, call: &str) -> MethodDescriptor {
        let service = format!("{}.{}.{}Service", kind.group, kind.version, kind.name);
        let service = self.pool.get_service_by_name(&service).unwrap();
        let name = call.replace('*', kind.name);
        let mut methods = service.methods();
        methods.find(|method| method.name() == name).unwrap()
    }

    /// One answer, as JSON.
    pub(in crate::api) async fn call(&self, kind: &Kind, call: &str, request: Value) -> Result<Value, Status> {
        self.answered(kind, call, Body::Json(&request))
            .await
            .map(|(answer, _)| answer)
    }

    /// One answer, with what stands beside it.
    pub(super) async fn answered(
        &self,
        kind: &Kind,
        call: &str,
        body: Body<'_>,
    ) -> Result<(Value, MetadataMap), Status> {
        self.answered_by(&self.method(kind, call), body).await
    }

    /// One answer of a call of any service.
    pub(super) async fn answered_by(
        &self,
        method: &MethodDescriptor,
        body: Body<'_>,
    ) -> Result<(Value, MetadataMap), Status> {
        let request = self.request(method, body, None);
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await.unwrap();
        let answer = grpc.unary(request, path(method), Raw);
        let answer: Response<Bytes> = tokio::time::timeout(WAIT_MAX, answer).await.expect("an answer")?;
        let (metadata, bytes, _) = answer.into_parts();
        Ok((self.json(method, bytes), metadata))
    }

    /// A call whose client waits no longer than this.
    pub(super) async fn call_within(
        &self,
        kind: &Kind,
        call: &str,
        request: Value,
        grace: Duration,
    ) -> Result<Streaming<Bytes>, Status> {
        let method = self.method(kind, call);
        let request = self.request(&method, Body::Json(&request), Some(grace));
        self.streamed(&method, request).await
    }

    /// A stream of answers of a call of any service.
    pub(super) async fn stream(&self, method: &MethodDescriptor, body: Body<'_>) -> Result<Streaming<Bytes>, Status> {
        self.streamed(method, self.request(method, body, None)).await
    }

    async fn streamed(&self, method: &MethodDescriptor, request: Request<Vec<u8>>) -> Result<Streaming<Bytes>, Status> {
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await.unwrap();
        let streaming = grpc.server_streaming(request, path(method), Raw);
        let streaming = tokio::time::timeout(WAIT_MAX, streaming).await.expect("an answer")?;
        Ok(streaming.into_inner())
    }

    /// A stream of answers.
    pub(in crate::api) async fn watch(&self, kind: &Kind, request: Value) -> Result<Watch, Status> {
        Ok(Watch {
            stream: self.call_within(kind, "Watch*", request, WAIT_MAX).await?,
            method: self.method(kind, "Watch*"),
            client: self.clone(),
        })
    }

    /// A stream of answers, for as long as the client's metadata says.
    pub(super) async fn watch_as_sent(&self, kind: &Kind, request: Value) -> Result<Watch, Status> {
        let method = self.method(kind, "Watch*");
        let request = self.request(&method, Body::Json(&request), None);
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await.unwrap();
        let stream = grpc.server_streaming(request, path(&method), Raw).await?.into_inner();
        Ok(Watch {
            stream,
            method,
            client: self.clone(),
        })
    }

    fn request(&self, method: &MethodDescriptor, body: Body<'_>, grace: Option<Duration>) -> Request<Vec<u8>> {
        let bytes = match body {
            Body::Bytes(bytes) => bytes.to_vec(),
            Body::Json(json) => encoded(method, json),
        };
        let mut request = Request::new(bytes);
        *request.metadata_mut() = self.metadata.clone();
        if let Some(grace) = grace {
            request.set_timeout(grace);
        }
        request
    }

    /// An answer as JSON.
    pub(super) fn json(&self, method: &MethodDescriptor, bytes: Bytes) -> Value {
        let message = DynamicMessage::decode(method.output(), bytes).unwrap();
        let options = SerializeOptions::new().stringify_64_bit_integers(false);
        message
            .serialize_with_options(serde_json::value::Serializer, &options)
            .unwrap()
    }
}

/// A request in its encoding.
pub(super) fn encoded(method: &MethodDescriptor, json: &Value) -> Vec<u8> {
    let options = DeserializeOptions::new();
    let message = DynamicMessage::deserialize_with_options(method.input(), json, &options);
    message
        .unwrap_or_else(|error| panic!("{error}: {json}"))
        .encode_to_vec()
}

fn path(method: &MethodDescriptor) -> http::uri::PathAndQuery {
    let service = method.parent_service().full_name();
    format!("/{service}/{}", method.name()).parse().unwrap()
}

/// Events as they come.
pub(in crate::api) struct Watch {
    stream: Streaming<Bytes>,
    method: MethodDescriptor,
    client: Client,
}

impl Watch {
    /// The next; nothing at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Value>, Status> {
        let message = tokio::time::timeout(WAIT_MAX, self.stream.message())
            .await
            .expect("an event");
        Ok(message?.map(|bytes| self.client.json(&self.method, bytes)))
    }
}

/// Messages as bytes.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
