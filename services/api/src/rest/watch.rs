//! `GET ?watch=true`: events, one JSON line each, in the form that the client wants. The client's pace decides when
//! the next is read from the cluster.

use std::io;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt;
use kindex_cluster::request::{Query, Rendering};
use serde_json::{Value, json};

use super::render::Form;
use super::{Asked, Rest, exchange, read};
use crate::operations::{Event, Refusal, WatchOptions};
use kindex_runtime::kind::Kind;

pub(super) async fn watch(rest: &Rest, asked: &Asked) -> Result<Response, Refusal> {
    let which = read::options(asked)?;
    let timeout = asked.query.get("timeoutSeconds").map(str::parse).transpose();
    let options = WatchOptions {
        bookmarks: asked.query.is_on("allowWatchBookmarks"),
        initial_events: asked
            .query
            .get("sendInitialEvents")
            .map(|_| asked.query.is_on("sendInitialEvents")),
        timeout_seconds: timeout.map_err(|error| Refusal::bad_request(format!("timeoutSeconds: {error}")))?,
    };
    let events = rest
        .operations
        .watch(&asked.caller, asked.kind, &which, &options)
        .await?;
    let mut lines = Lines {
        kind: asked.kind,
        rendering: asked.head.rendering,
        query: asked.query.clone(),
        rest: rest.clone(),
        headed: false,
    };
    let lines = events.map(move |event| lines.line(event?));
    Ok(exchange::json(Body::from_stream(lines)))
}

struct Lines {
    kind: &'static Kind,
    rendering: Rendering,
    query: Query,
    rest: Rest,
    /// Whether a table has said what its columns are.
    headed: bool,
}

impl Lines {
    fn line(&mut self, event: Event) -> io::Result<Bytes> {
        let text = match (self.rendering, event.r#type.as_str()) {
            (Rendering::Json | Rendering::Yaml, _) | (_, "ERROR") => String::from(Box::<str>::from(event.object)),
            (Rendering::Table | Rendering::Metadata, kind) => {
                let object: Value = serde_json::from_str(event.object.get())?;
                self.shown(object, kind == "BOOKMARK").to_string()
            }
        };
        Ok(Bytes::from(format!(
            "{{\"type\":\"{}\",\"object\":{text}}}\n",
            event.r#type
        )))
    }

    fn shown(&mut self, object: Value, is_bookmark: bool) -> Value {
        let form = Form {
            kind: self.kind,
            rendering: self.rendering,
            query: &self.query,
            columns: &self.rest.columns,
        };
        let metadata = object["metadata"].clone();
        let mut shown = form.shown(object);
        if self.rendering == Rendering::Table {
            if is_bookmark {
                shown["rows"] = json!([]);
                shown["metadata"] = metadata;
            }
            if self.headed || is_bookmark {
                shown["columnDefinitions"] = Value::Null;
            }
            self.headed |= !is_bookmark;
        }
        shown
    }
}
