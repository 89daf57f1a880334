//! Changes of a kind that were read together, as messages. Each text is made once for all subscriptions that send it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use kindex_events::{Event, Message, sse};
use kindex_model::kind::Kind;
use kindex_store::{Mark, OutboxEntry};

use super::outbox_position::{OutboxPosition, later};

/// A message on its way, with its text.
#[derive(Debug)]
pub struct Sent {
    /// The message.
    pub message: Message,
    frame: OnceLock<Bytes>,
}

impl Sent {
    pub(super) fn new(message: Message) -> Arc<Self> {
        Arc::new(Self {
            message,
            frame: OnceLock::new(),
        })
    }

    /// As a server-sent event.
    pub fn frame(&self) -> Bytes {
        let frame = self.frame.get_or_init(|| sse::write(&self.message).into());
        frame.clone()
    }
}

/// Changes from one mark to another.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) after: Mark,
    pub(super) until: Mark,
    changes: Vec<(OutboxEntry, Arc<Sent>)>,
}

impl Page {
    pub(super) fn new(kind: &Kind, after: Mark, entries: Vec<OutboxEntry>, until: Mark) -> Self {
        let topic = topic(kind);
        let changes = entries.into_iter().map(|entry| {
            let place = place_after(&entry, after, until);
            let sent = Sent::new(Message::Event(event(&topic, &entry), Some(place.write(&topic))));
            (entry, sent)
        });
        Self {
            after,
            until,
            changes: changes.collect(),
        }
    }

    /// How many changes there are.
    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    /// What a subscription at this place sends of it.
    pub(super) fn sent(&self, topic: &str, place: &OutboxPosition, deleting: bool) -> Vec<Arc<Sent>> {
        let wanted = self.changes.iter().filter(|(entry, sent)| {
            let passes = sent
                .message
                .event()
                .is_some_and(|event| !deleting || event.is_deleted());
            passes && !place.has(entry)
        });
        wanted
            .map(|(entry, sent)| match later(place.seen, self.until) == self.until {
                true => sent.clone(),
                // Its replay has shown something newer than this page.
                false => {
                    let seen = OutboxPosition {
                        seen: place.seen,
                        ..place_after(entry, self.after, self.until)
                    };
                    Sent::new(Message::Event(event(topic, entry), Some(seen.write(topic))))
                }
            })
            .collect()
    }
}

/// The place of who has this entry of a page.
fn place_after(entry: &OutboxEntry, after: Mark, until: Mark) -> OutboxPosition {
    match entry.position < until.position {
        true => OutboxPosition {
            after,
            past: entry.position,
            seen: until,
            replayed: None,
        },
        false => OutboxPosition::at(until),
    }
}

/// The topic of a kind.
pub(super) fn topic(kind: &Kind) -> String {
    format!("{}.{}", kind.plural, kind.group)
}

/// The event of an entry.
pub(super) fn event(topic: &str, entry: &OutboxEntry) -> Event {
    Event {
        resource_id: entry.uid.clone(),
        deletion_timestamp: entry.deletion_timestamp,
        topic: topic.to_owned(),
        namespace: entry.namespace.clone(),
        name: entry.name.clone(),
        erased: entry.erased,
    }
}

#[cfg(test)]
mod tests {
    use kindex_model::object::Uid;
    use kindex_store::Position;

    use super::*;
    use crate::operations::token::tests::KIND;

    fn mark(position: u64) -> Mark {
        Mark {
            position: Position(position),
            stamp: position * 10,
        }
    }

    fn entry(position: u64, erased: bool) -> OutboxEntry {
        OutboxEntry {
            uid: Uid::from(format!("u{position}").as_str()),
            namespace: "n".to_owned(),
            name: "a".to_owned(),
            position: Position(position),
            deletion_timestamp: None,
            erased,
        }
    }

    fn places(sent: &[Arc<Sent>]) -> Vec<OutboxPosition> {
        let positions = sent.iter().filter_map(|sent| sent.message.position());
        let places = positions.map(|position| OutboxPosition::read(position, &topic(&KIND)));
        places.collect::<Result<_, _>>().expect("positions of ours")
    }

    #[test]
    fn a_page_is_resumed_behind_each_of_its_changes() {
        let page = Page::new(
            &KIND,
            mark(2),
            vec![entry(3, false), entry(4, true), entry(5, false)],
            mark(5),
        );
        let all = page.sent(&topic(&KIND), &OutboxPosition::at(mark(2)), false);
        assert_eq!(all.len(), 3);
        for (number, place) in places(&all).iter().enumerate() {
            let rest = page.sent(&topic(&KIND), place, false);
            assert_eq!(rest.len(), 2 - number, "after {place:?}");
            assert_eq!(place.seen, mark(5));
        }
        assert_eq!(places(&all)[2], OutboxPosition::at(mark(5)));
        let deleted = page.sent(&topic(&KIND), &OutboxPosition::at(mark(2)), true);
        assert_eq!(deleted.len(), 1);
    }

    #[test]
    fn a_position_names_the_newest_that_its_client_has_seen() {
        let page = Page::new(&KIND, mark(2), vec![entry(3, false), entry(4, false)], mark(4));
        let replayed = OutboxPosition {
            seen: mark(9),
            ..OutboxPosition::at(mark(2))
        };
        let sent = page.sent(&topic(&KIND), &replayed, false);
        let seen: Vec<Mark> = places(&sent).iter().map(|place| place.seen).collect();
        assert_eq!(seen, [mark(9), mark(9)]);
    }

    #[test]
    fn a_text_is_made_once_for_all_who_send_it() {
        let page = Page::new(&KIND, mark(2), vec![entry(3, false)], mark(3));
        let frames = [0, 1].map(|_| page.sent(&topic(&KIND), &OutboxPosition::at(mark(2)), false)[0].frame());
        assert_eq!(frames[0].as_ptr(), frames[1].as_ptr());
    }
}
