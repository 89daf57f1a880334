//! Where a subscription stands in the outbox, as its position says it. Pure.

use kindex_events::{Position, PositionError};
use kindex_model::object::Uid;
use kindex_store::{Mark, OutboxEntry};
use serde::{Deserialize, Serialize};

/// The transport, as positions name it.
pub(super) const VIA: &str = "outbox";

/// How far the outbox of a kind was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutboxPosition {
    /// All transactions up to here were sent, but for those that the replay is to show.
    pub(super) after: Mark,
    /// Of the next ones, what has this position or a smaller one.
    pub(super) past: kindex_store::Position,
    /// Nothing newer was sent. Where the database does not know it any more, something was sent that never happened in
    /// its history.
    pub(super) seen: Mark,
    /// The last object of the replay that was sent, while it goes on; empty before the first.
    pub(super) replayed: Option<Uid>,
}

/// The same as text.
#[derive(Deserialize, Serialize)]
struct Written {
    after: [u64; 2],
    past: u64,
    seen: [u64; 2],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replayed: Option<String>,
}

impl OutboxPosition {
    /// Before everything: a replay begins at this head.
    pub(super) fn beginning(head: Mark) -> Self {
        Self {
            replayed: Some(Uid::from("")),
            ..Self::at(head)
        }
    }

    /// After all up to a mark.
    pub(super) fn at(mark: Mark) -> Self {
        Self {
            after: mark,
            past: mark.position,
            seen: mark,
            replayed: None,
        }
    }

    pub(super) fn read(position: &Position, topic: &str) -> Result<Self, PositionError> {
        let written: Written = position.decode(VIA, topic)?;
        let mark = |[position, stamp]: [u64; 2]| Mark {
            position: kindex_store::Position(position),
            stamp,
        };
        Ok(Self {
            after: mark(written.after),
            past: kindex_store::Position(written.past),
            seen: mark(written.seen),
            replayed: written.replayed.map(|uid| Uid::from(uid.as_str())),
        })
    }

    pub(super) fn write(&self, topic: &str) -> Position {
        let mark = |mark: Mark| [mark.position.0, mark.stamp];
        let written = Written {
            after: mark(self.after),
            past: self.past.0,
            seen: mark(self.seen),
            replayed: self.replayed.as_ref().map(ToString::to_string),
        };
        Position::encode(VIA, topic, &written)
    }

    /// Whether this change was sent before.
    pub(super) fn has(&self, entry: &OutboxEntry) -> bool {
        entry.position <= self.past
    }
}

/// The later of two marks.
pub(super) fn later(one: Mark, other: Mark) -> Mark {
    if other.position > one.position { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let mark = |position, stamp| Mark {
            position: kindex_store::Position(position),
            stamp,
        };
        let place = OutboxPosition {
            after: mark(3, u64::MAX),
            past: kindex_store::Position(4),
            seen: mark(5, 1),
            replayed: Some(Uid::from("u")),
        };
        for place in [
            place,
            OutboxPosition::at(mark(7, 2)),
            OutboxPosition::beginning(Mark::default()),
        ] {
            let position = place.write("runs.g");
            assert_eq!(OutboxPosition::read(&position, "runs.g"), Ok(place.clone()));
            assert!(OutboxPosition::read(&position, "zones.g").is_err());
        }
    }
}
