//! An answer before it becomes an HTTP response.

use std::pin::Pin;

use bytes::Bytes;
use futures::Stream;
use kindex_kube_api::media;
use kindex_kube_api::request::Rendering;
use kindex_kube_api::status::{Outcome, Status};
use kindex_serve::watches::WatchSlot;
use serde_json::Value;

/// The content of an answer.
pub(crate) enum Body {
    /// All of it.
    Whole(Bytes),
    /// Pieces of a watch as they come; the client's pace decides when the next is made.
    Watch(WatchSlot, Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

/// An answer.
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) content_type: &'static str,
    pub(crate) warnings: Vec<String>,
    /// When to ask again, of who was rejected.
    pub(crate) retry_after_seconds: Option<u32>,
    pub(crate) body: Body,
}

impl Reply {
    /// JSON text.
    pub(crate) fn json(code: u16, text: impl Into<Bytes>) -> Self {
        Self {
            code,
            content_type: media::JSON,
            warnings: Vec::new(),
            retry_after_seconds: None,
            body: Body::Whole(text.into()),
        }
    }

    /// A JSON value.
    pub(crate) fn value(code: u16, value: &Value) -> Self {
        Self::json(code, value.to_string())
    }

    /// YAML text.
    pub(crate) fn yaml(code: u16, text: String) -> Self {
        Self {
            content_type: media::YAML,
            ..Self::json(code, text)
        }
    }

    /// Plain text.
    pub(crate) fn text(code: u16, text: &'static str) -> Self {
        Self {
            content_type: "text/plain; charset=utf-8",
            ..Self::json(code, text)
        }
    }

    /// JSON values, one a line, as they come.
    pub(crate) fn lines(slot: WatchSlot, pieces: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self {
            body: Body::Watch(slot, Box::pin(pieces)),
            ..Self::json(200, Bytes::new())
        }
    }

    /// A refusal in the form that the client wants.
    pub(crate) fn refusal(status: &Status, rendering: Option<Rendering>) -> Self {
        let reply = Self::from(status);
        match rendering {
            Some(Rendering::Yaml) => match serde_saphyr::to_string(&status) {
                Ok(text) => Self {
                    retry_after_seconds: reply.retry_after_seconds,
                    ..Self::yaml(status.http_code(), text)
                },
                Err(_) => reply,
            },
            Some(Rendering::Json | Rendering::Table | Rendering::Metadata) | None => reply,
        }
    }

    /// Adds a warning before all others.
    pub(crate) fn warn_first(mut self, warning: &str) -> Self {
        self.warnings.insert(0, warning.to_owned());
        self
    }

    /// Adds warnings for the person at the client.
    pub(crate) fn warn(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.warnings.extend(warnings);
        self
    }
}

impl From<&Status> for Reply {
    fn from(status: &Status) -> Self {
        if status.is_plain {
            return Self {
                content_type: "text/plain; charset=utf-8",
                ..Self::json(status.http_code(), format!("{}\n", status.message))
            };
        }
        let seconds = status.details.as_ref().and_then(|details| details.retry_after_seconds);
        Self {
            retry_after_seconds: seconds.filter(|_| status.outcome() == Outcome::TooManyRequests),
            ..Self::json(status.http_code(), status.to_json())
        }
    }
}
