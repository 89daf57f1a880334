//! Watching: the events of `operations` as messages, one at the client's pace.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use kindex_kube_api::request::parameter;
use kindex_kube_api::watch::EventType;
use kindex_model::kind::Kind;
use kindex_serve::watches::WatchSlot;
use prost::Message;
use serde_json::Value;
use tonic::Status;

use super::deadline::Deadline;
use super::list;
use super::message::{WatchRequest, WatchResponse};
use super::object;
use super::reply::decode;
use super::status::{self, Violation, invalid};
use crate::operations::{Caller, Event, Operations, Refusal, WatchOptions};

/// Messages as they come; an error is the last of them.
pub(super) type Messages = BoxStream<'static, Result<Vec<u8>, Status>>;

pub(super) async fn watch(
    operations: &Arc<Operations>,
    caller: &Caller,
    kind: &'static Kind,
    request: Bytes,
    deadline: Deadline,
) -> Result<(Messages, WatchSlot), Refusal> {
    let request: WatchRequest = decode(request)?;
    let which = list::options(kind, &request.namespace, request.options.as_ref())?;
    let asked = request.options.unwrap_or_default();
    let timeout = asked.timeout_seconds.map(u64::try_from).transpose();
    let options = WatchOptions {
        bookmarks: asked.allow_watch_bookmarks,
        initial_events: asked.send_initial_events,
        timeout_seconds: timeout
            .map_err(|_| invalid(&[Violation::new(parameter::TIMEOUT_SECONDS, "is less than 0")]))?,
    };
    let domain = operations.registry().platform.group;
    let (events, slot) = operations.watch(caller, kind, &which, &options).await?;
    let messages = events.filter_map(move |event| {
        let message = event.map_err(broken).and_then(|event| message(kind, event, domain));
        std::future::ready(message.transpose())
    });
    Ok((deadline.ending(messages.boxed()), slot))
}

fn broken(error: io::Error) -> Status {
    Status::unavailable(format!("the watch broke off: {error}; list, and watch from there"))
}

/// The message of an event; none for an object that its message cannot hold.
fn message(kind: &Kind, event: Event, domain: &str) -> Result<Option<Vec<u8>>, Status> {
    let text = event.text();
    if event.r#type == EventType::Error {
        // A text that is no Status has no code.
        let status: Value = serde_json::from_str(text).unwrap_or_default();
        let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        return Err(status::of(
            &Refusal::from_status(code.unwrap_or(500), text.as_bytes()),
            domain,
        ));
    }
    match object::write(kind, text) {
        Ok((bytes, _)) => {
            let response = WatchResponse {
                r#type: event.r#type.to_string(),
                object: Some(bytes),
            };
            Ok(Some(response.encode_to_vec()))
        }
        Err(refusal) => {
            let (namespace, name) = object::place(text);
            tracing::warn!(kind = kind.name, namespace, name, %refusal, "An event is left out of a watch");
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::list::tests::KIND;
    use kindex_serve::watches::{WatchLimits, Watches};
    use tonic::Code;

    fn event(text: &str) -> Event {
        let watches = Watches::new(WatchLimits::default());
        Event::read(text.as_bytes().to_vec(), &watches).expect("an event")
    }

    #[test]
    fn an_error_of_the_cluster_is_a_status() {
        let expired =
            r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
        let status = message(&KIND, event(expired), "g").expect_err("the end of the watch");
        assert_eq!((status.code(), status.message()), (Code::OutOfRange, "too old"));
    }

    #[test]
    fn an_event_that_its_message_cannot_hold_ends_no_watch() {
        let added = r#"{"type":"ADDED","object":{"metadata":{"name":"a"},"spec":{"price":"high"}}}"#;
        assert!(message(&KIND, event(added), "g").expect("no error").is_none());
    }
}
