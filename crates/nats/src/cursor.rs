//! Where a subscription stands in a stream, as its positions hold it. Pure.

use jiff::{SignedDuration, Timestamp};
use kindex_events::{Position, SourceError};
use serde::{Deserialize, Serialize};

/// The transport in positions.
const VIA: &str = "nats";
/// How long tombstones are kept. Behind an older position one may be missing.
pub(crate) const TOMBSTONES_KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);

/// How far one life of a stream was read.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Cursor {
    /// When the stream was made, in nanoseconds as text: the next one of its name is another.
    pub(crate) stream: String,
    /// The partitions that were read up to here.
    pub(crate) partitions: String,
    /// The last message that was seen.
    pub(crate) sequence: u64,
    /// The last message of the replay, while that goes on.
    pub(crate) replay_end: Option<u64>,
    /// When the server had it, in seconds since 1970.
    pub(crate) seconds: i64,
}

/// A stream as it is when a subscription begins.
#[derive(Clone, Debug)]
pub(crate) struct StreamState {
    pub(crate) stream: String,
    pub(crate) partitions: String,
    pub(crate) last: u64,
    pub(crate) time: Timestamp,
}

impl Cursor {
    /// Before the first message of a replay.
    pub(crate) fn at_first(state: &StreamState) -> Self {
        Self {
            stream: state.stream.clone(),
            partitions: state.partitions.clone(),
            sequence: 0,
            replay_end: Some(state.last),
            seconds: state.time.as_second(),
        }
    }

    /// Reads a position.
    ///
    /// # Errors
    /// One that is of another topic or transport, or is not known any more.
    pub(crate) fn resumed(position: &Position, topic: &str, state: &StreamState) -> Result<Self, SourceError> {
        let place: Self = position.decode(VIA, topic)?;
        let gone = |why: &str| Err(SourceError::gone(why));
        let kept_since = state.time.as_second() - TOMBSTONES_KEPT.as_secs();
        if place.stream != state.stream || place.sequence > state.last {
            return gone("the stream was made anew");
        }
        if place.partitions != state.partitions {
            return gone("it is one of other partitions");
        }
        if place.seconds < kept_since {
            return gone("it is older than seven days");
        }
        Ok(place)
    }

    pub(crate) fn position(&self, topic: &str) -> Position {
        Position::encode(VIA, topic, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPIC: &str = "runs.example.com";

    fn state() -> StreamState {
        StreamState {
            stream: "17".to_owned(),
            partitions: "all".to_owned(),
            last: 100,
            time: Timestamp::from_second(10_000_000).expect("a time"),
        }
    }

    fn place() -> Cursor {
        Cursor {
            sequence: 90,
            replay_end: None,
            ..Cursor::at_first(&state())
        }
    }

    fn resumed(place: &Cursor) -> Result<Cursor, SourceError> {
        Cursor::resumed(&place.position(TOPIC), TOPIC, &state())
    }

    #[test]
    fn a_place_in_the_stream_is_resumed() {
        assert_eq!(resumed(&place()), Ok(place()));
        let oldest = state().time - TOMBSTONES_KEPT;
        let place = Cursor {
            seconds: oldest.as_second(),
            ..place()
        };
        assert_eq!(resumed(&place), Ok(place.clone()));
    }

    #[test]
    fn a_place_behind_which_a_tombstone_may_be_missing_is_gone() {
        let oldest = state().time - TOMBSTONES_KEPT;
        for wrong in [
            Cursor {
                stream: "16".to_owned(),
                ..place()
            },
            Cursor {
                sequence: 101,
                ..place()
            },
            Cursor {
                partitions: "0,1".to_owned(),
                ..place()
            },
            Cursor {
                seconds: oldest.as_second() - 1,
                ..place()
            },
        ] {
            assert!(matches!(resumed(&wrong), Err(SourceError::Gone(_))), "{wrong:?}");
        }
    }
}
