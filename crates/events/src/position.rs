//! A place in the events of a topic, as a text that clients keep and return. What it holds is known to the transport
//! that made it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The longest text that is read. One of NATS may name each of 1024 partitions.
const TEXT_BYTES_MAX: usize = 8192;

/// A place in the events of a topic. Opaque to clients: letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Position(Box<str>);

/// What the text holds.
#[derive(Deserialize, Serialize)]
struct Content<T> {
    /// The transport.
    via: String,
    topic: String,
    place: T,
}

/// Why a text is no position here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PositionError {
    /// No subscription came with it.
    #[error("{0:?} is not a position that came with an event")]
    Malformed(String),
    /// It is one of another topic.
    #[error("the position is one of {found}, and not of {wanted}")]
    OfAnotherTopic {
        /// Its topic.
        found: String,
        /// The topic that is subscribed to.
        wanted: String,
    },
    /// It is one of another transport.
    #[error("the position comes from {found}, and cannot be used with {wanted}")]
    OfAnotherTransport {
        /// Its transport.
        found: String,
        /// The one that it was given to.
        wanted: String,
    },
    /// The server that it was sent to does not take it, and says why.
    #[error("{0}")]
    Refused(String),
}

impl Position {
    /// The position of a transport's place in a topic.
    ///
    /// # Panics
    /// Where the place is not plain data.
    pub fn encode(via: &str, topic: &str, place: &impl Serialize) -> Self {
        let content = Content {
            via: via.to_owned(),
            topic: topic.to_owned(),
            place,
        };
        let text = serde_json::to_vec(&content).expect("a place is plain data");
        Self(URL_SAFE_NO_PAD.encode(text).into())
    }

    /// Reads what a client returned, as far as it can be known without the transport.
    ///
    /// # Errors
    /// [`PositionError::Malformed`].
    pub fn parse(text: &str) -> Result<Self, PositionError> {
        let position = Self(text.into());
        position.content::<serde_json::Value>().map(|_| position)
    }

    /// The place, for the transport that made it.
    ///
    /// # Errors
    /// A position of another topic or transport.
    pub fn decode<T: DeserializeOwned>(&self, via: &str, topic: &str) -> Result<T, PositionError> {
        let known = self.content::<serde_json::Value>()?;
        if known.topic != topic {
            return Err(PositionError::OfAnotherTopic {
                found: known.topic,
                wanted: topic.to_owned(),
            });
        }
        if known.via != via {
            return Err(PositionError::OfAnotherTransport {
                found: known.via,
                wanted: via.to_owned(),
            });
        }
        serde_json::from_value(known.place).map_err(|_| self.malformed())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn content<T: DeserializeOwned>(&self) -> Result<Content<T>, PositionError> {
        let text = Some(&self.0).filter(|text| text.len() <= TEXT_BYTES_MAX);
        let bytes = text.and_then(|text| URL_SAFE_NO_PAD.decode(text.as_bytes()).ok());
        let content = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        content.ok_or_else(|| self.malformed())
    }

    fn malformed(&self) -> PositionError {
        PositionError::Malformed(self.0.chars().take(64).collect())
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_by_who_made_it_and_for_its_topic_alone() {
        let position = Position::encode("outbox", "runs.g", &7_u64);
        assert_eq!(Position::parse(position.as_str()), Ok(position.clone()));
        assert_eq!(position.decode::<u64>("outbox", "runs.g"), Ok(7));
        let other_topic = position.decode::<u64>("outbox", "zones.g");
        assert_eq!(
            other_topic.map_err(|error| error.to_string()),
            Err("the position is one of runs.g, and not of zones.g".to_owned())
        );
        let other_transport = position.decode::<u64>("watch", "runs.g");
        assert!(matches!(other_transport, Err(PositionError::OfAnotherTransport { .. })));
        let other_place = position.decode::<String>("outbox", "runs.g");
        assert!(matches!(other_place, Err(PositionError::Malformed(_))));
    }

    #[test]
    fn what_is_no_position_is_refused() {
        let large = "e".repeat(TEXT_BYTES_MAX + 1);
        for wrong in ["", "7", "é", "e30", "bm9uc2Vuc2U", large.as_str()] {
            assert!(
                matches!(Position::parse(wrong), Err(PositionError::Malformed(_))),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_position_has_no_letter_that_a_header_or_an_address_would_escape() {
        let position = Position::encode("outbox", "é\n", &"a b&c=\0");
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        assert!(position.as_str().chars().all(is_plain), "{position}");
    }
}
