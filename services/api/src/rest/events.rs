//! Events over HTTP: `GET /api/v1/events/{topic}` as server-sent events, and the look-up of an object by uid below it.
//! The core group's events have no such paths: theirs are in namespaces.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt;
use kindex_events::sse;
use kindex_kube_api::request::{Query, Verb, unescaped};
use kindex_model::kind::Kind;
use kindex_serve::watches::Accounting;

use super::{Rest, exchange};
use crate::metrics::OperationVerb;
use crate::operations::{Caller, EventOptions, Operations, Refusal};
use crate::watched::watched;

/// What a client of server-sent events sends when it connects again.
const LAST_EVENT_ID: &str = "last-event-id";

/// What a path asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct About {
    topic: String,
    /// The object that is looked up; a subscription where there is none.
    uid: Option<String>,
}

/// What a path asks for, if it is about events of kinds.
pub(super) fn about(path: &str) -> Option<About> {
    let rest = path.strip_prefix("/api/v1/events/")?.trim_end_matches('/');
    let parts: Vec<String> = rest.split('/').map(unescaped).collect();
    match parts.as_slice() {
        [topic] | [topic, _] if topic.is_empty() => None,
        [topic] => Some(About {
            topic: topic.clone(),
            uid: None,
        }),
        [topic, uid] => Some(About {
            topic: topic.clone(),
            uid: Some(uid.clone()),
        }),
        _ => None,
    }
}

impl About {
    /// The name of the kind; empty for a topic that is none.
    pub(super) fn kind(&self, operations: &Operations) -> &'static str {
        operations
            .kind_of_topic(&self.topic)
            .map_or("", |kind: &Kind| kind.name)
    }

    /// What a request is counted as.
    pub(super) fn verb(&self) -> OperationVerb {
        match self.uid {
            None => OperationVerb::Events,
            Some(_) => Verb::Get.into(),
        }
    }
}

/// Answers a request for events.
pub(super) async fn answer(
    rest: &Rest,
    caller: &Caller,
    about: &About,
    method: &Method,
    headers: &HeaderMap,
    query: &Query,
) -> Result<Response, Refusal> {
    if method != Method::GET {
        return Err(Refusal::method_not_allowed());
    }
    let operations = &rest.operations;
    let kind = operations.kind_of_topic(&about.topic)?;
    if let Some(uid) = &about.uid {
        let event = operations.event_of(caller, kind, uid).await?;
        let text = serde_json::to_string(&event).expect("an event is plain data");
        return Ok(exchange::json(text));
    }
    let (messages, slot) = operations.events(caller, kind, &options(headers, query)?).await?;
    let frames = messages.map(|message| {
        Ok::<_, std::convert::Infallible>(match message {
            Ok(sent) => sent.frame(),
            Err(refusal) => Bytes::from(sse::write_error(&refusal.to_json())),
        })
    });
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(sse::MEDIA_TYPE));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(watched(response, slot, Accounting::Own))
}

/// Who connects again has come further than the address says.
fn options(headers: &HeaderMap, query: &Query) -> Result<EventOptions, Refusal> {
    let last = headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok());
    let from = last.filter(|last| !last.is_empty()).or_else(|| query.get("from"));
    Ok(EventOptions {
        from: from.unwrap_or_default().to_owned(),
        deleting: query.flag("deleting")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> Option<(String, Option<String>)> {
        about(path).map(|about| (about.topic, about.uid))
    }

    #[test]
    fn a_path_names_a_topic_and_perhaps_an_object() {
        let topic = "runs.g.example.com".to_owned();
        assert_eq!(read("/api/v1/events/runs.g.example.com"), Some((topic.clone(), None)));
        assert_eq!(
            read("/api/v1/events/runs%2Eg.example.com/"),
            Some((topic.clone(), None))
        );
        assert_eq!(
            read("/api/v1/events/runs.g.example.com/u"),
            Some((topic, Some("u".to_owned())))
        );
        for other in [
            "/api/v1/events",
            "/api/v1/events/",
            "/api/v1/events//u",
            "/api/v1/namespaces/n/events/e",
            "/api/v1/events/a/b/c",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn who_connects_again_goes_on_where_it_was_and_not_where_it_began() {
        let of = |last: &str, query: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(LAST_EVENT_ID, last.parse().expect("a value"));
            options(&headers, &Query::parse(query)).expect("options").from
        };
        assert_eq!(of("", "from=a"), "a");
        assert_eq!(of("b", "from=a"), "b");
    }

    #[test]
    fn deletions_alone_are_wanted_or_not() {
        let deleting = |query: &str| {
            let options = options(&HeaderMap::new(), &Query::parse(query));
            options.map(|options| options.deleting).map_err(|error| error.code)
        };
        assert_eq!(
            (deleting("deleting=1"), deleting("deleting=True")),
            (Ok(true), Ok(true))
        );
        assert_eq!((deleting("deleting=false"), deleting("")), (Ok(false), Ok(false)));
        assert_eq!(deleting("deleting=maybe"), Err(400));
    }
}
