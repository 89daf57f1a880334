//! The frames of a watch: one JSON line an event, with its type and its object. Knows nothing of what the object is.

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

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

#[cfg(test)]
mod tests {
    use super::*;

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
