//! The frames of a watch: one JSON line an event, with its type and its object. Knows nothing of what the object is,
//! unless it is that of a bookmark.

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum EventType {
    /// The object is there, and was not before.
    Added,
    /// The object is another.
    Modified,
    /// The object is gone.
    Deleted,
    /// Nothing up to a version is still to come.
    Bookmark,
    /// The watch ends, for the reason that the Status says.
    Error,
    /// What Kubernetes may invent one day.
    Other(String),
}

impl EventType {
    /// The word on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
            Self::Other(word) => word,
        }
    }

    /// What stands before the object of an event; [`FRAME_END`] follows it.
    pub fn frame_start(&self) -> String {
        format!("{{\"type\":\"{self}\",\"object\":")
    }
}

impl From<String> for EventType {
    fn from(word: String) -> Self {
        let known = [Self::Added, Self::Modified, Self::Deleted, Self::Bookmark, Self::Error];
        let found = known.into_iter().find(|known| known.as_str() == word);
        found.unwrap_or(Self::Other(word))
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What stands after the object of an event.
pub const FRAME_END: &str = "}\n";

/// An event as it came. A plain struct takes its fields in any order, and keeps the object's text in each.
#[derive(Debug, Deserialize)]
pub struct Frame<'a> {
    /// What happened.
    pub r#type: EventType,
    /// The exact text of the object.
    #[serde(borrow)]
    pub object: &'a RawValue,
}

/// The annotation of the bookmark after which the state is complete that a watch begins with.
/// <https://kubernetes.io/docs/reference/using-api/api-concepts/#streaming-lists>
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// The object of a bookmark: of a kind, and of the version up to which nothing is still to come.
pub fn bookmark(api_version: &str, kind: &str, version: &str, ends_initial_events: bool) -> Value {
    let mut metadata = json!({"resourceVersion": version});
    if ends_initial_events {
        metadata["annotations"] = json!({INITIAL_EVENTS_END: "true"});
    }
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bookmark_after_the_initial_events_says_that_they_end() {
        let [during, last] = [false, true].map(|ends| bookmark("g/v1", "Widget", "7", ends));
        let expected = json!({"apiVersion": "g/v1", "kind": "Widget", "metadata": {"resourceVersion": "7"}});
        assert_eq!(during, expected);
        let annotations = json!({"k8s.io/initial-events-end": "true"});
        assert_eq!(last["metadata"]["annotations"], annotations);
        assert_eq!(last["metadata"]["resourceVersion"], "7");
    }

    #[test]
    fn what_is_written_is_read_again() {
        for word in ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "INVENTED"] {
            let line = EventType::from(word.to_owned()).frame_start() + "{\"z\": 1e400}" + FRAME_END;
            let frame: Frame<'_> = serde_json::from_str(&line).unwrap();
            assert_eq!((frame.r#type.as_str(), frame.object.get()), (word, "{\"z\": 1e400}"));
            let is_other = matches!(frame.r#type, EventType::Other(_));
            assert_eq!(is_other, word == "INVENTED");
        }
    }
}
