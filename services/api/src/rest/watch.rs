//! `GET ?watch=true`: events, one JSON line each, in the format that the client accepts. The next event is read from
//! the cluster when the client has taken the last.

use std::io;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use kindex_kube_api::request::{Query, Rendering, parameter};
use kindex_kube_api::table;
use kindex_kube_api::watch::{EventType, FRAME_END};
use kindex_serve::watches::Accounting;
use serde_json::Value;

use super::render::Form;
use super::{Inbound, Rest, exchange, read};
use crate::operations::{Event, Refusal, Resource, WatchOptions};
use crate::watched::watched;

pub(super) async fn watch(rest: &Rest, inbound: &Inbound) -> Result<Response, Refusal> {
    let which = read::options(inbound)?;
    let options = WatchOptions {
        bookmarks: inbound.query.is_on(parameter::ALLOW_WATCH_BOOKMARKS),
        initial_events: inbound
            .query
            .get(parameter::SEND_INITIAL_EVENTS)
            .map(|_| inbound.query.is_on(parameter::SEND_INITIAL_EVENTS)),
        timeout_seconds: inbound.query.timeout_seconds()?,
    };
    let (events, slot) = rest
        .operations
        .watch(&inbound.caller, inbound.resource, &which, &options)
        .await?;
    let mut lines = Lines {
        resource: inbound.resource,
        rendering: inbound.head.rendering,
        query: inbound.query.clone(),
        rest: rest.clone(),
        headed: false,
    };
    let lines = events.map(move |event| lines.line(event?)).map_ok(stream::iter);
    let pieces = lines.try_flatten();
    let response = exchange::json(Body::from_stream(pieces));
    Ok(watched(response, slot, Accounting::Counted))
}

/// From this size on a text is worth a piece of its own.
const LARGE_BYTES: usize = 16 * 1024;

struct Lines {
    resource: Resource,
    rendering: Rendering,
    query: Query,
    rest: Rest,
    /// Whether a table has said what its columns are.
    headed: bool,
}

impl Lines {
    /// The line of an event in pieces: one, where its text is small or was made for this watch alone, or the text that
    /// all watches hold between two others.
    fn line(&mut self, event: Event) -> io::Result<Vec<io::Result<Bytes>>> {
        let (head, tail) = (event.r#type.frame_start(), FRAME_END);
        let text = match (self.rendering, &event.r#type) {
            (Rendering::Json | Rendering::Yaml, _) | (_, EventType::Error) if event.object.len() >= LARGE_BYTES => {
                return Ok(vec![Ok(head.into()), Ok(event.object), Ok(tail.into())]);
            }
            (Rendering::Json | Rendering::Yaml, _) | (_, EventType::Error) => event.text().to_owned(),
            (Rendering::Table | Rendering::Metadata, kind) => {
                let object: Value = serde_json::from_slice(&event.object)?;
                self.shown(object, *kind == EventType::Bookmark).to_string()
            }
        };
        Ok(vec![Ok(Bytes::from(head + &text + tail))])
    }

    fn shown(&mut self, object: Value, is_bookmark: bool) -> Value {
        if is_bookmark && self.rendering == Rendering::Table {
            return table::of_bookmark(&object);
        }
        let form = Form {
            resource: self.resource,
            rendering: self.rendering,
            query: &self.query,
            columns: &self.rest.columns,
        };
        let mut shown = form.shown(object);
        if self.rendering == Rendering::Table {
            if self.headed {
                table::remove_columns(&mut shown);
            }
            self.headed = true;
        }
        shown
    }
}
