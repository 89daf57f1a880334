//! What follows from a replay, over an API in memory.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::*;
use crate::event::Event;

const TOPIC: &str = "runs.g";
const LIMITS: Limits = Limits::DEFAULT;

/// What the API says; gone where nothing is written.
#[derive(Default)]
struct Api {
    known: BTreeMap<Uid, Existence>,
    asked: Mutex<Vec<Uid>>,
}

#[async_trait]
impl LookUp for Api {
    async fn look_up(&self, uid: &Uid) -> Existence {
        self.asked.lock().expect("no panic").push(uid.clone());
        self.known.get(uid).copied().unwrap_or(Existence::Gone)
    }
}

fn uid(number: usize) -> Uid {
    Uid::from(format!("{number:04}").as_str())
}

fn event(number: usize) -> Message {
    let event = Event {
        resource_id: uid(number),
        deletion_timestamp: None,
        topic: TOPIC.to_owned(),
        namespace: String::new(),
        name: String::new(),
        erased: false,
    };
    Message::Event(event, None)
}

/// What is absent of so many that are held where these are replayed.
fn absent(held: usize, beginning: Beginning, replayed: impl IntoIterator<Item = usize>) -> Absent {
    let mut held = Held::new((0..held).map(uid));
    held.begin(beginning);
    for number in replayed {
        assert!(held.take(&event(number)).is_none());
    }
    held.take(&Message::Replayed(None)).expect("it has ended")
}

#[tokio::test]
async fn an_absence_counts_once_the_api_confirms_it() {
    let api = Api {
        known: BTreeMap::from([(uid(3), Existence::Exists), (uid(4), Existence::Unknown)]),
        ..Api::default()
    };
    let gone = absent(6, Beginning::Fresh, [0, 1]).confirm(TOPIC, &LIMITS, &api).await;
    assert_eq!(gone, Ok(vec![uid(2), uid(5)]));
    let asked = api.asked.lock().expect("no panic").clone();
    assert_eq!(
        asked,
        [2, 3, 4, 5].map(uid),
        "each of them, and nothing that was replayed"
    );
}

#[tokio::test]
async fn a_replay_that_deletes_more_than_the_limits_allow_deletes_nothing() {
    let confirm = async |held, replayed, limits: Limits| {
        let api = Api::default();
        let confirmed = absent(held, Beginning::Fresh, replayed)
            .confirm(TOPIC, &limits, &api)
            .await;
        confirmed.map(|gone| gone.len()).map_err(|stop| stop.to_string())
    };
    let limits = Limits {
        objects: 20,
        percent: 10,
        few: 2,
        after_gone: false,
    };
    assert_eq!(confirm(3, 0..1, limits).await, Ok(2), "few, whatever their share is");
    assert_eq!(confirm(100, 0..90, limits).await, Ok(10));
    let share = confirm(100, 0..89, limits).await.expect_err("more than a tenth");
    assert!(
        share.starts_with("11 of 100 objects of runs.g that are held are gone, first 0089"),
        "{share}"
    );
    assert!(share.ends_with("are deleted at once: nothing is deleted"), "{share}");
    assert_eq!(confirm(1000, 0..980, limits).await, Ok(20));
    assert!(confirm(1000, 0..979, limits).await.is_err(), "more than 20");
}

#[tokio::test]
async fn an_empty_replay_deletes_nothing_and_looks_nothing_up() {
    let api = Api::default();
    let confirmed = absent(1, Beginning::Fresh, []).confirm(TOPIC, &LIMITS, &api).await;
    assert!(matches!(confirmed, Err(Stop::Empty { held: 1, .. })), "{confirmed:?}");
    assert!(api.asked.lock().expect("no panic").is_empty());
    let nothing_held = absent(0, Beginning::Fresh, []).confirm(TOPIC, &LIMITS, &api).await;
    assert_eq!(nothing_held, Ok(Vec::new()));
}

#[tokio::test]
async fn a_replay_of_a_database_that_may_be_restored_deletes_nothing_until_somebody_allows_it() {
    let replay = || absent(3, Beginning::AfterGone, [0, 1]);
    let stopped = replay().confirm(TOPIC, &LIMITS, &Api::default()).await;
    assert!(
        matches!(stopped, Err(Stop::Restored { absent: 1, held: 3, .. })),
        "{stopped:?}"
    );
    let allowed = Limits {
        after_gone: true,
        ..LIMITS
    };
    assert_eq!(
        replay().confirm(TOPIC, &allowed, &Api::default()).await,
        Ok(vec![uid(2)])
    );
    let mut whole = absent(2, Beginning::AfterGone, [0, 1]);
    assert_eq!(whole.confirm(TOPIC, &LIMITS, &Api::default()).await, Ok(Vec::new()));
    for (existence, stops) in [(Existence::Exists, false), (Existence::Unknown, true)] {
        let api = Api {
            known: BTreeMap::from([(uid(2), existence)]),
            ..Api::default()
        };
        let confirmed = replay().confirm(TOPIC, &LIMITS, &api).await;
        assert_eq!(confirmed.is_err(), stops, "{existence:?}: {confirmed:?}");
    }
}

#[test]
fn a_replay_that_was_not_seen_from_beginning_to_end_says_nothing() {
    let mut held = Held::new((0..3).map(uid));
    assert!(held.take(&event(0)).is_none());
    assert!(
        held.take(&Message::Replayed(None)).is_none(),
        "its beginning was not seen"
    );
    held.begin(Beginning::Fresh);
    held.take(&event(0));
    // Cut off, and begun again.
    held.begin(Beginning::Fresh);
    held.take(&event(1));
    let absent = held.take(&Message::Replayed(None)).expect("it has ended");
    assert_eq!(
        absent.uids,
        BTreeSet::from([uid(0), uid(2)]),
        "those of the second replay"
    );
    assert!(held.take(&Message::Replayed(None)).is_none(), "it ends once");
}

#[test]
fn what_is_held_since_the_replay_began_is_not_absent() {
    let mut held = Held::new([uid(0)]);
    held.begin(Beginning::Fresh);
    held.add(uid(1));
    held.take(&event(0));
    let absent = held.take(&Message::Replayed(None)).expect("it has ended");
    assert!(absent.uids.is_empty(), "{absent:?}");
    held.begin(Beginning::Fresh);
    held.remove(&uid(1));
    let absent = held.take(&Message::Replayed(None)).expect("it has ended");
    assert_eq!(
        absent.uids,
        BTreeSet::from([uid(0)]),
        "and what is held no more is not either"
    );
}
