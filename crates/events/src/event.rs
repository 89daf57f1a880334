//! What is sent: the event of an object, and the messages of a subscription.

use jiff::Timestamp;
use kindex_model::object::Uid;
use serde::{Deserialize, Serialize};

use crate::position::Position;

/// Something happened to an object: its identity, and what events are routed and filtered by. Its state is read from
/// the API.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Event {
    /// `metadata.uid`.
    #[serde(rename = "resourceID", with = "uid")]
    pub resource_id: Uid,
    /// When somebody deleted it.
    #[serde(rename = "deletionTimestamp", default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Timestamp>,
    /// Plural and group of its kind: `networks.region.example.com`.
    pub topic: String,
    /// Its namespace; empty for kinds of the whole cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Whether it is gone for good: the last event of an object.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
}

impl Event {
    /// Whether it is deleted: it waits for what holds it, or is gone.
    pub fn is_deleted(&self) -> bool {
        self.erased || self.deletion_timestamp.is_some()
    }
}

/// One message of a subscription. With each comes the position after it, if the subscription can be resumed there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Something happened to an object, or it exists.
    Event(Event, Option<Position>),
    /// All that existed when the subscription began has been sent; what follows are changes.
    Replayed(Option<Position>),
    /// Nothing happened, or nothing that the filter lets pass; the transport works.
    Alive(Option<Position>),
}

impl Message {
    /// Where the subscription can be resumed after this message.
    pub fn position(&self) -> Option<&Position> {
        match self {
            Self::Event(_, position) | Self::Replayed(position) | Self::Alive(position) => position.as_ref(),
        }
    }

    /// The event.
    pub fn event(&self) -> Option<&Event> {
        match self {
            Self::Event(event, _) => Some(event),
            Self::Replayed(_) | Self::Alive(_) => None,
        }
    }
}

/// A uid as JSON.
mod uid {
    use super::Uid;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(uid: &Uid, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&uid.0)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uid, D::Error> {
        String::deserialize(deserializer).map(|text| Uid::from(text.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_its_id_and_its_deletion_in_the_words_of_the_specification() {
        let live = Event {
            resource_id: Uid::from("u"),
            deletion_timestamp: None,
            topic: "networks.region.example.com".to_owned(),
            namespace: String::new(),
            name: "blue".to_owned(),
            erased: false,
        };
        let text = serde_json::to_string(&live).expect("plain data");
        assert_eq!(
            text,
            r#"{"resourceID":"u","topic":"networks.region.example.com","name":"blue"}"#
        );
        assert!(!live.is_deleted());
        let erased = Event {
            deletion_timestamp: "2026-11-24T12:00:00Z".parse().ok(),
            erased: true,
            ..live
        };
        let text = serde_json::to_string(&erased).expect("plain data");
        assert!(text.contains(r#""deletionTimestamp":"2026-11-24T12:00:00Z""#), "{text}");
        assert!(text.ends_with(r#""erased":true}"#), "{text}");
        assert_eq!(serde_json::from_str::<Event>(&text).expect("an event"), erased);
        assert!(erased.is_deleted());
    }
}
