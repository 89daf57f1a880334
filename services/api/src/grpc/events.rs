//! `kindex.events.v1`: events as a stream, and the event of one object. What they say is known to `operations`.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use http::HeaderMap;
use kindex_events::{Event, Message};
use kindex_kube_api::request::Verb;
use tonic::{Request, Response, Status};

use super::{Deadline, NAME_MAX_BYTES, status};
use crate::identity;
use crate::metrics::{Operation, OperationVerb};
use crate::operations::{Caller, EventOptions, Operations, Refusal};

use v1::events_server::{Events as Calls, EventsServer};
use v1::{GetRequest, GetResponse, SubscribeRequest, SubscribeResponse, subscribe_response};

/// Messages and the server.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub(super) mod v1 {
    tonic::include_proto!("kindex.events.v1");
}

/// The full name of the service.
pub(super) const NAME: &str = "kindex.events.v1.Events";

/// The service over these operations.
pub(super) fn service(operations: Arc<Operations>) -> EventsServer<Served> {
    EventsServer::new(Served { operations }).max_decoding_message_size(NAME_MAX_BYTES)
}

/// The server of events.
pub(super) struct Served {
    operations: Arc<Operations>,
}

/// Who asks, and how long they wait.
fn context<T>(request: &Request<T>) -> Result<(Caller, Deadline), Status> {
    let headers: &HeaderMap = request.metadata().as_ref();
    let deadline = Deadline::read(headers)?;
    let deadline = request.extensions().get().copied().unwrap_or(deadline);
    Ok((identity::caller(headers), deadline))
}

impl Served {
    /// Waits for an answer as long as the client does, and takes note of who is refused.
    async fn done<T>(
        &self,
        caller: &Caller,
        deadline: Deadline,
        answer: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Status> {
        let answered = deadline.bound(answer).await?;
        let code = answered.as_ref().map_or_else(|refusal| refusal.code, |_| 200);
        if matches!(code, 401 | 403) {
            let user = self.operations.known(caller);
            tracing::info!(target: "kindex_api::audit", user, method = "gRPC", service = NAME, code, "answered");
        }
        let group = self.operations.registry().platform.group;
        answered.map_err(|refusal| status::of(&refusal, group))
    }
}

#[tonic::async_trait]
impl Calls for Served {
    type SubscribeStream = BoxStream<'static, Result<SubscribeResponse, Status>>;

    async fn subscribe(&self, request: Request<SubscribeRequest>) -> Result<Response<Self::SubscribeStream>, Status> {
        let (caller, deadline) = context(&request)?;
        let SubscribeRequest { topic, from, deleting } = request.into_inner();
        let group = self.operations.registry().platform.group;
        let begin = async {
            let kind = self.operations.kind_of_topic(&topic)?;
            let options = EventOptions { from, deleting };
            let (messages, slot) = self.operations.events(&caller, kind, &options).await?;
            Ok((kind, messages, slot))
        };
        let (kind, messages, slot) = self.done(&caller, deadline, begin).await?;
        let messages = messages.map(move |message| match message {
            Ok(sent) => Ok(response(&sent.message)),
            Err(refusal) => Err(status::of(&refusal, group)),
        });
        let mut response = Response::new(deadline.ending(messages.boxed()));
        response.extensions_mut().insert(slot);
        response.extensions_mut().insert(Operation {
            verb: OperationVerb::Events,
            kind: kind.name,
        });
        Ok(response)
    }

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        let (caller, deadline) = context(&request)?;
        let GetRequest { topic, resource_id } = request.into_inner();
        let answer = async {
            let kind = self.operations.kind_of_topic(&topic)?;
            let event = self.operations.event_of(&caller, kind, &resource_id).await?;
            Ok((kind, event))
        };
        let (kind, event) = self.done(&caller, deadline, answer).await?;
        let event = Some(event_of(&event));
        let mut response = Response::new(GetResponse { event });
        response.extensions_mut().insert(Operation {
            verb: Verb::Get.into(),
            kind: kind.name,
        });
        Ok(response)
    }
}

fn response(message: &Message) -> SubscribeResponse {
    let position = message.position().map(ToString::to_string);
    SubscribeResponse {
        position: position.unwrap_or_default(),
        message: match message {
            Message::Event(event, _) => Some(subscribe_response::Message::Event(event_of(event))),
            Message::Replayed(_) => Some(subscribe_response::Message::Replayed(v1::Replayed {})),
            Message::Alive(_) => None,
        },
    }
}

fn event_of(event: &Event) -> v1::Event {
    let time = event.deletion_timestamp.map(|time| prost_types::Timestamp {
        seconds: time.as_second(),
        nanos: time.subsec_nanosecond(),
    });
    v1::Event {
        resource_id: event.resource_id.to_string(),
        deletion_timestamp: time,
        topic: event.topic.clone(),
        namespace: event.namespace.clone(),
        name: event.name.clone(),
        erased: event.erased,
    }
}
