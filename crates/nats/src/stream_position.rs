//! Where a subscription stands in a stream, as its positions hold it. Pure.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kindex_events::{Position, SourceError};
use serde::{Deserialize, Serialize};

use crate::partitions::ranges;

/// The transport in positions.
const VIA: &str = "nats";
/// How long tombstones are kept at least. Behind an older position one may be missing.
pub(crate) const TOMBSTONES_KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);
/// By how much the clocks of the server and of all who read may differ. Tombstones are kept for as much longer.
pub(crate) const CLOCK_SKEW_MAX: SignedDuration = SignedDuration::from_hours(1);

/// How many places a position has at most: with more of them, its positions would be longer than what is read.
const PARTS_MAX: usize = 16;

/// How far one life of a stream was read. Partitions that came anew are read up to where the others are, and then all
/// of them together.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct StreamPosition {
    /// When the stream was made, in nanoseconds as text: the next one of its name is another.
    pub(crate) stream: String,
    /// The partitions that are read.
    #[serde(with = "ranges")]
    pub(crate) partitions: BTreeSet<u32>,
    /// The last message of them that was seen.
    pub(crate) sequence: u64,
    /// Partitions that were read further, the nearest first: they join the others there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ahead: Vec<Part>,
    /// The last message when the replay began, while that goes on: until nothing is left to deliver, since what changes
    /// meanwhile comes after this message.
    pub(crate) replay_end: Option<u64>,
    /// Since when no deletion is missing that came after what was seen: when the server had the last message, when it
    /// was asked and had none after that, or when the replay began. In seconds since 1970.
    pub(crate) seconds: i64,
}

/// Partitions that are not read now.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Part {
    #[serde(with = "ranges")]
    pub(crate) partitions: BTreeSet<u32>,
    /// The last message of them that was seen.
    pub(crate) sequence: u64,
}

/// A stream as it is when a subscription begins.
#[derive(Clone, Debug)]
pub(crate) struct StreamState {
    pub(crate) stream: String,
    /// Those that are wanted of it.
    pub(crate) partitions: BTreeSet<u32>,
    pub(crate) last: u64,
    pub(crate) time: Timestamp,
}

impl StreamPosition {
    /// Before the first message of a replay.
    pub(crate) fn at_first(state: &StreamState) -> Self {
        Self {
            stream: state.stream.clone(),
            partitions: state.partitions.clone(),
            sequence: 0,
            ahead: Vec::new(),
            replay_end: Some(state.last),
            seconds: state.time.as_second(),
        }
    }

    /// Reads a position. With the partitions that it has not: they are read from the beginning.
    ///
    /// # Errors
    /// One that is of another topic or transport, or is not known any more.
    pub(crate) fn resumed(
        position: &Position,
        topic: &str,
        state: &StreamState,
    ) -> Result<(Self, BTreeSet<u32>), SourceError> {
        let mut place: Self = position.decode(VIA, topic)?;
        let now = state.time.as_second();
        if place.stream != state.stream || place.furthest() > state.last {
            return Err(SourceError::gone("the stream was made anew"));
        }
        if place.seconds > now + CLOCK_SKEW_MAX.as_secs() {
            return Err(SourceError::gone("its time is yet to come, so a clock is wrong"));
        }
        place.check_age(now)?;
        let added = place.turn_to(state);
        Ok((place, added))
    }

    /// Whether all tombstones behind the place are still there at this time. A backlog may take longer to read than is
    /// left of the seven days, so this is asked with each message.
    ///
    /// # Errors
    /// The place is not known any more.
    pub(crate) fn check_age(&self, now: i64) -> Result<(), SourceError> {
        match self.seconds < now - TOMBSTONES_KEPT.as_secs() {
            true => Err(SourceError::gone("it is older than seven days")),
            false => Ok(()),
        }
    }

    /// Goes on with the partitions that are wanted, and returns those that were not read so far.
    fn turn_to(&mut self, state: &StreamState) -> BTreeSet<u32> {
        let furthest = self.furthest();
        let first = Part {
            partitions: std::mem::take(&mut self.partitions),
            sequence: self.sequence,
        };
        let mut read: Vec<Part> = std::iter::once(first).chain(self.ahead.drain(..)).collect();
        let known: BTreeSet<u32> = read.iter().flat_map(|part| &part.partitions).copied().collect();
        let added = &state.partitions - &known;
        for part in &mut read {
            part.partitions.retain(|number| state.partitions.contains(number));
        }
        read.retain(|part| !part.partitions.is_empty());
        if !added.is_empty() {
            if read.is_empty() {
                self.seconds = state.time.as_second();
            }
            let partitions = added.clone();
            read.insert(
                0,
                Part {
                    partitions,
                    sequence: 0,
                },
            );
            self.replay_end = Some(state.last);
        }
        // Of those that were read least, some is sent again.
        while read.len() > PARTS_MAX {
            let next = read.remove(1);
            read[0].partitions.extend(next.partitions);
        }
        let mut read = read.into_iter();
        // Where nothing is wanted, nothing is read again either.
        let first = read.next().unwrap_or(Part {
            partitions: BTreeSet::new(),
            sequence: furthest,
        });
        self.partitions = first.partitions;
        self.sequence = first.sequence;
        self.ahead = read.collect();
        added
    }

    fn furthest(&self) -> u64 {
        let ahead = self.ahead.iter().map(|part| part.sequence);
        ahead.fold(self.sequence, u64::max)
    }

    /// Up to where the partitions that are read are behind others.
    pub(crate) fn behind(&self) -> Option<u64> {
        self.ahead.first().map(|ahead| ahead.sequence)
    }

    /// All was seen up to where others are: from there they are read together.
    pub(crate) fn join(&mut self) {
        if !self.ahead.is_empty() {
            let joined = self.ahead.remove(0);
            self.partitions.extend(joined.partitions);
            self.sequence = joined.sequence;
        }
    }

    pub(crate) fn position(&self, topic: &str) -> Position {
        Position::encode(VIA, topic, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partitions::PARTITIONS_MAX;

    const TOPIC: &str = "runs.example.com";

    fn state() -> StreamState {
        StreamState {
            stream: "17".to_owned(),
            partitions: BTreeSet::from([0, 1]),
            last: 100,
            time: Timestamp::from_second(10_000_000).expect("a time"),
        }
    }

    fn place() -> StreamPosition {
        StreamPosition {
            sequence: 90,
            replay_end: None,
            ..StreamPosition::at_first(&state())
        }
    }

    fn resumed(place: &StreamPosition) -> Result<StreamPosition, SourceError> {
        StreamPosition::resumed(&place.position(TOPIC), TOPIC, &state()).map(|(place, _)| place)
    }

    /// A place where these partitions are wanted, and those that are replayed.
    fn with_partitions<const N: usize>(
        place: &StreamPosition,
        partitions: [u32; N],
    ) -> (StreamPosition, BTreeSet<u32>) {
        let state = StreamState {
            partitions: partitions.into(),
            ..state()
        };
        let position = place.position(TOPIC);
        StreamPosition::resumed(&position, TOPIC, &state).expect("it is known")
    }

    fn ahead<const N: usize>(partitions: [u32; N], sequence: u64) -> Part {
        Part {
            partitions: partitions.into(),
            sequence,
        }
    }

    #[test]
    fn a_place_in_the_stream_is_resumed() {
        assert_eq!(resumed(&place()), Ok(place()));
        for time in [state().time - TOMBSTONES_KEPT, state().time + CLOCK_SKEW_MAX] {
            let place = StreamPosition {
                seconds: time.as_second(),
                ..place()
            };
            assert_eq!(resumed(&place), Ok(place.clone()));
        }
    }

    #[test]
    fn a_place_behind_which_a_tombstone_may_be_missing_is_gone() {
        let oldest = state().time - TOMBSTONES_KEPT;
        for wrong in [
            StreamPosition {
                stream: "16".to_owned(),
                ..place()
            },
            StreamPosition {
                sequence: 101,
                ..place()
            },
            StreamPosition {
                ahead: vec![ahead([2], 101)],
                ..place()
            },
            StreamPosition {
                sequence: u64::MAX,
                ahead: vec![ahead([2], 90)],
                ..place()
            },
            StreamPosition {
                seconds: oldest.as_second() - 1,
                ..place()
            },
            StreamPosition {
                seconds: (state().time + CLOCK_SKEW_MAX).as_second() + 1,
                ..place()
            },
        ] {
            assert!(matches!(resumed(&wrong), Err(SourceError::Gone(_))), "{wrong:?}");
        }
    }

    #[test]
    fn a_set_that_shrinks_goes_on_where_it_was() {
        let (shrunk, added) = with_partitions(&place(), [1]);
        let wanted = StreamPosition {
            partitions: BTreeSet::from([1]),
            ..place()
        };
        assert_eq!((shrunk, added), (wanted, BTreeSet::new()));
        let (empty, added) = with_partitions(&place(), []);
        assert_eq!((empty.sequence, &empty.partitions), (90, &added), "nothing is wanted");
        let (again, added) = with_partitions(&empty, [1]);
        assert_eq!((again.sequence, again.replay_end), (0, Some(100)));
        assert_eq!(added, BTreeSet::from([1]));
    }

    #[test]
    fn what_came_anew_is_read_from_the_beginning_up_to_where_the_others_are() {
        // The others stay as old as they are.
        let old = StreamPosition {
            seconds: state().time.as_second() - 1,
            ..place()
        };
        let (grown, added) = with_partitions(&old, [0, 1, 2]);
        assert_eq!(added, BTreeSet::from([2]));
        let mut wanted = StreamPosition {
            partitions: added,
            sequence: 0,
            ahead: vec![ahead([0, 1], 90)],
            replay_end: Some(100),
            ..old
        };
        assert_eq!(grown, wanted);
        // Changed once more before they have met, with one that leaves.
        wanted.sequence = 40;
        let (mut again, added) = with_partitions(&wanted, [1, 2, 3]);
        assert_eq!((again.behind(), added), (Some(40), BTreeSet::from([3])));
        assert_eq!(again.ahead, [ahead([2], 40), ahead([1], 90)]);
        again.join();
        assert_eq!((again.sequence, &again.partitions), (40, &BTreeSet::from([2, 3])));
        again.join();
        assert_eq!((again.sequence, again.behind()), (90, None));
        assert_eq!(again.partitions, BTreeSet::from([1, 2, 3]));
    }

    #[test]
    fn a_set_of_which_nothing_stays_is_a_replay() {
        let old = StreamPosition {
            seconds: state().time.as_second() - 1,
            ..place()
        };
        let (swapped, added) = with_partitions(&old, [2]);
        let wanted = StreamState {
            partitions: added,
            ..state()
        };
        assert_eq!(swapped, StreamPosition::at_first(&wanted));
    }

    #[test]
    fn a_position_with_each_partition_in_as_many_places_as_there_may_be_can_be_read() {
        let part = |number: u32| Part {
            partitions: (number..PARTITIONS_MAX).step_by(PARTS_MAX).collect(),
            sequence: u64::MAX - u64::from(PARTITIONS_MAX) + u64::from(number),
        };
        let mut parts = (0..).map(part).take(PARTS_MAX);
        let first = parts.next().expect("there are some");
        let place = StreamPosition {
            partitions: first.partitions,
            sequence: first.sequence,
            ahead: parts.collect(),
            replay_end: Some(u64::MAX),
            ..place()
        };
        let wanted = StreamState {
            partitions: (0..PARTITIONS_MAX).collect(),
            last: u64::MAX,
            ..state()
        };
        let read = StreamPosition::resumed(&place.position(TOPIC), TOPIC, &wanted);
        assert_eq!(read, Ok((place, BTreeSet::new())));
    }

    /// As if each partition that comes before the others have joined made positions longer.
    #[test]
    fn a_set_that_grows_again_and_again_has_few_places_and_lacks_no_partition() {
        let mut place = place();
        for count in 3..200 {
            let wanted = StreamState {
                partitions: (0..count).collect(),
                ..state()
            };
            let turned = StreamPosition::resumed(&place.position(TOPIC), TOPIC, &wanted);
            let (grown, added) = turned.expect("it can be read");
            assert_eq!(added, BTreeSet::from([count - 1]));
            let mut met = grown.clone();
            let mut sequences = vec![met.sequence];
            while met.behind().is_some() {
                met.join();
                sequences.push(met.sequence);
            }
            assert!(sequences.is_sorted() && sequences.len() <= PARTS_MAX, "{sequences:?}");
            assert_eq!((met.sequence, met.partitions), (90, wanted.partitions));
            // A message comes in between.
            place = StreamPosition {
                sequence: grown.sequence + 1,
                ..grown
            };
        }
    }
}
