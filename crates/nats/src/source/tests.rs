//! What is made of the messages of a consumer.

use super::*;
use crate::stream_position::{Part, TOMBSTONES_KEPT};

const TOPIC: &str = "runs.example.com";
/// When messages are read, in seconds since 1970.
const NOW: i64 = 300;

fn state() -> StreamState {
    StreamState {
        stream: "17".to_owned(),
        partitions: (0..4).collect(),
        last: 0,
        time: Timestamp::UNIX_EPOCH,
    }
}

fn reader() -> MessageReader {
    MessageReader {
        topic: TOPIC.to_owned(),
        deleting: false,
        place: StreamPosition::at_first(&state()),
        ready: VecDeque::new(),
        deliveries: 0,
    }
}

fn received(delivery: u64, sequence: u64) -> Received<'static> {
    Received {
        delivery,
        sequence,
        pending: 1,
        seconds: 0,
        payload: br#"{"resourceID":"u","topic":"runs.example.com"}"#,
    }
}

#[test]
fn a_message_that_is_delivered_again_is_told_once() {
    let mut reader = reader();
    for (delivery, sequence) in [(1, 5), (2, 7), (3, 5), (4, 7), (5, 8)] {
        assert_eq!(reader.take(&received(delivery, sequence), NOW), Ok(false), "{delivery}");
    }
    let events = reader.ready.iter().filter(|message| message.event().is_some());
    assert_eq!((events.count(), reader.place.sequence), (3, 8));
}

#[test]
fn a_delivery_that_is_missing_ends_the_subscription_where_it_was_before() {
    let mut reader = reader();
    assert_eq!(reader.take(&received(1, 5), NOW), Ok(false));
    let lost = reader.take(&received(3, 7), NOW);
    assert!(matches!(lost, Err(SourceError::Interrupted { .. })), "{lost:?}");
    assert_eq!(reader.place.sequence, 5);
}

#[test]
fn partitions_that_came_anew_are_read_up_to_where_the_others_are() {
    let mut reader = reader();
    reader.place.replay_end = None;
    reader.place.ahead = vec![Part {
        partitions: BTreeSet::from([7]),
        sequence: 6,
    }];
    assert_eq!(reader.take(&received(1, 5), NOW), Ok(false));
    assert_eq!(
        reader.take(&received(2, 9), NOW),
        Ok(true),
        "the consumer of all has it"
    );
    assert_eq!((reader.ready.len(), reader.place.sequence), (1, 5));
    reader.join();
    assert_eq!(reader.place.sequence, 6);
    assert_eq!(reader.take(&received(1, 9), NOW), Ok(false));
    let last = Received {
        pending: 0,
        ..received(1, 5)
    };
    let mut reader = MessageReader {
        place: StreamPosition {
            sequence: 0,
            ahead: vec![Part {
                partitions: BTreeSet::new(),
                sequence: 6,
            }],
            replay_end: Some(20),
            ..reader.place
        },
        ready: VecDeque::new(),
        deliveries: 0,
        ..reader
    };
    assert_eq!(
        reader.take(&last, NOW),
        Ok(true),
        "nothing more comes before the others"
    );
    let is_event = |message: &Message| message.event().is_some();
    assert!(
        reader.ready.iter().all(is_event),
        "the others may have more of the replay"
    );
}

/// As if an object that changes while others are replayed did not exist.
#[test]
fn a_replay_ends_where_nothing_is_left_to_deliver() {
    let mut reader = reader();
    reader.place.replay_end = Some(6);
    for (delivery, sequence) in [(1, 5), (2, 8)] {
        assert_eq!(reader.take(&received(delivery, sequence), NOW), Ok(false));
    }
    assert!(reader.ready.iter().all(|message| message.event().is_some()));
    let last = Received {
        pending: 0,
        ..received(3, 9)
    };
    assert_eq!(reader.take(&last, NOW), Ok(false));
    assert!(matches!(reader.ready.back(), Some(Message::Replayed(Some(_)))));
    assert_eq!(reader.ready.len(), 4);
}

#[test]
fn a_replay_of_old_objects_is_resumed_as_one_that_began_now() {
    let mut reader = reader();
    reader.place.seconds = 100;
    assert_eq!(reader.take(&received(1, 5), NOW), Ok(false));
    assert_eq!(reader.place.seconds, 100);
    let later = Received {
        seconds: 200,
        ..received(2, 6)
    };
    assert_eq!(reader.take(&later, NOW), Ok(false));
    assert_eq!(reader.place.seconds, 200);
}

/// As if a set of partitions could not change after a week without events.
#[test]
fn who_reads_a_quiet_stream_is_resumed_from_when_nothing_followed() {
    let mut reader = reader();
    let kept = TOMBSTONES_KEPT.as_secs();
    assert!(matches!(reader.nothing_follows(100), Ok(Message::Replayed(Some(_)))));
    let alive = reader.nothing_follows(kept + 100).expect("all is known");
    assert!(matches!(alive, Message::Alive(Some(_))), "{alive:?}");
    let position = alive.position().expect("it has one");
    let resumed = |seconds: i64| {
        let time = Timestamp::from_second(seconds).expect("a time");
        StreamPosition::resumed(position, TOPIC, &StreamState { time, ..state() })
    };
    assert_eq!(resumed(2 * kept + 100), Ok((reader.place.clone(), BTreeSet::new())));
    let gone = resumed(2 * kept + 101);
    assert!(matches!(gone, Err(SourceError::Gone(_))), "{gone:?}");
    assert!(reader.nothing_follows(200).is_ok());
    assert_eq!(reader.place.seconds, kept + 100, "a clock that was set back");
}

/// As if the age of a position mattered only where it is resumed, and not while its backlog is read.
#[test]
fn a_tombstone_that_may_have_expired_while_others_were_read_ends_the_subscription() {
    let mut reader = reader();
    let kept = TOMBSTONES_KEPT.as_secs();
    assert_eq!(reader.take(&received(1, 5), kept), Ok(false));
    let place = reader.place.clone();
    let late = reader.take(&received(2, 6), kept + 1);
    assert!(matches!(late, Err(SourceError::Gone(_))), "{late:?}");
    let late = reader.nothing_follows(kept + 1);
    assert!(matches!(late, Err(SourceError::Gone(_))), "{late:?}");
    assert_eq!(reader.place, place);
}

/// As if who begins at a position were up to date at the first message that the filter keeps back.
#[test]
fn nobody_is_up_to_date_before_the_last_message() {
    let mut reader = MessageReader {
        deleting: true,
        ..reader()
    };
    let last = Received {
        pending: 0,
        ..received(2, 6)
    };
    assert_eq!(reader.take(&received(1, 5), NOW), Ok(false));
    assert!(!reader.is_up_to_date(0), "amid a replay");
    assert_eq!(reader.take(&last, NOW), Ok(false));
    assert!(!reader.is_up_to_date(0), "its end is returned first");
    assert!(matches!(reader.ready.pop_front(), Some(Message::Replayed(_))));
    assert!(reader.is_up_to_date(0) && !reader.is_up_to_date(1));
    reader.place.ahead = vec![Part {
        partitions: BTreeSet::new(),
        sequence: 9,
    }];
    assert!(!reader.is_up_to_date(0), "behind others");
}
