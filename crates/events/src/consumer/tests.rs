//! Subscriptions that are cut anywhere: what a consumer is given of them lacks nothing.

use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use futures::stream;

use super::*;
use crate::event::Message;
use crate::held::Existence;
use crate::sse;

const TOPIC: &str = "runs.example.com";

/// Where a subscription is cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    after_bytes: usize,
    /// As if the server had ended it.
    is_clean: bool,
}

/// A server that answers with these messages, and ends.
struct Recorded {
    messages: Vec<Message>,
    /// Of the subscriptions, as they come.
    cuts: Mutex<VecDeque<Cut>>,
}

#[async_trait]
impl Source for Recorded {
    async fn subscribe(&self, to: &Subscribe) -> Result<Subscription, SourceError> {
        let index_of = |from: &Position| {
            self.messages
                .iter()
                .position(|message| message.position() == Some(from))
        };
        let begin = match &to.from {
            Some(from) => index_of(from).expect("one of ours") + 1,
            None => 0,
        };
        let text: String = self.messages[begin..].iter().map(sse::write).collect();
        let cut = self.cuts.lock().expect("nobody panics with it").pop_front();
        let bytes = cut.map_or(text.len(), |cut| cut.after_bytes.min(text.len()));
        let mut read = sse::Reader::default().read(&text.as_bytes()[..bytes]);
        if cut.is_some_and(|cut| !cut.is_clean) {
            read.push(Err(SourceError::interrupted("reset")));
        }
        let subscription: Subscription = Box::pin(stream::iter(read));
        Ok(subscription)
    }
}

struct NothingHeld;

#[async_trait]
impl LookUp for NothingHeld {
    async fn look_up(&self, _: &Uid) -> Existence {
        Existence::Unknown
    }
}

fn messages() -> Vec<Message> {
    let position = |number: u64| Some(Position::encode("test", TOPIC, &number));
    let event = |uid: &str, erased| Event {
        resource_id: Uid::from(uid),
        deletion_timestamp: None,
        topic: TOPIC.to_owned(),
        namespace: "é".to_owned(),
        name: "a".to_owned(),
        erased,
    };
    vec![
        Message::Event(event("stays", false), None),
        Message::Event(event("goes", false), position(1)),
        Message::Event(event("went before", true), position(2)),
        Message::Replayed(position(3)),
        Message::Alive(None),
        Message::Event(event("comes", false), position(4)),
        Message::Event(event("goes", true), position(5)),
        Message::Alive(position(6)),
        Message::Event(event("comes", true), position(7)),
    ]
}

/// What a consumer is given until the last event.
async fn received(cuts: &[Cut]) -> Vec<Event> {
    let messages = messages();
    let last = messages.last().and_then(Message::event).cloned();
    let source = Recorded {
        messages,
        cuts: Mutex::new(cuts.iter().copied().collect()),
    };
    let mut consumer = Consumer::new(Arc::new(source), Arc::new(NothingHeld), TOPIC, [], Limits::default());
    let mut received = Vec::new();
    // A last event that is lost never comes.
    for _ in 0..50 {
        match consumer.next().await.expect("there are events") {
            Item::Event(event) => received.push(event),
            Item::Replayed { .. } | Item::Left(_) | Item::Cut(_) => {}
            Item::Stopped(why) => panic!("{why}"),
        }
        if received.last() == last.as_ref() {
            break;
        }
    }
    received
}

/// Whether these are all events up to a cut, and those after it, with so many of before the cut once more.
fn is_resumed(received: &[Event], all: &[Event], repeated: usize) -> bool {
    (repeated..=all.len()).any(|cut| received[..cut] == all[..cut] && received[cut..] == all[cut - repeated..])
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_cut_at_any_byte_lacks_no_event_and_no_tombstone() {
    let all: Vec<Event> = messages().iter().filter_map(Message::event).cloned().collect();
    assert_eq!(received(&[]).await, all);
    let bytes: usize = messages().iter().map(|message| sse::write(message).len()).sum();
    let cuts = (0..=bytes).flat_map(|after_bytes| [true, false].map(|is_clean| Cut { after_bytes, is_clean }));
    for cut in cuts {
        let received = received(&[cut]).await;
        // One event has no position. Until the next one it comes again.
        let repeated = received.len().checked_sub(all.len()).filter(|repeated| *repeated <= 1);
        let is_resumed = repeated.is_some_and(|repeated| is_resumed(&received, &all, repeated));
        assert!(is_resumed, "{cut:?}: {received:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_cut_again_and_again_lacks_no_event() {
    let all: Vec<Event> = messages().iter().filter_map(Message::event).cloned().collect();
    // Longer than the first two messages, so that each subscription comes further than the one before.
    let first: usize = messages()[..2].iter().map(|message| sse::write(message).len()).sum();
    for after_bytes in first..first * 2 {
        let cuts = [true, false, true, false].map(|is_clean| Cut { after_bytes, is_clean });
        assert_eq!(received(&cuts).await, all, "cut after {after_bytes} bytes");
    }
}
