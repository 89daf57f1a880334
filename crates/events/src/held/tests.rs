//! What follows from a replay, over an API in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::*;
use crate::event::Event;

const TOPIC: &str = "runs.g";
const LIMITS: Limits = Limits::DEFAULT;

/// What the API says; gone where nothing is written.
#[derive(Default)]
struct Api {
    known: BTreeMap<Uid, Existence>,
    asked: RefCell<Vec<Uid>>,
}

impl Api {
    fn new<const N: usize>(known: [(Uid, Existence); N]) -> Self {
        Self {
            known: known.into(),
            ..Self::default()
        }
    }

    /// What is returned next of these, for which they are looked up.
    fn confirm(&self, absent: &mut Absent, limits: &Limits) -> Result<(Vec<Uid>, Vec<Uid>), Stop> {
        loop {
            if let Some(Confirmed { gone, unknown }) = absent.confirmed(TOPIC, limits)? {
                return Ok((gone, unknown));
            }
            let uid = absent.to_look_up().expect("not all is known").clone();
            self.asked.borrow_mut().push(uid.clone());
            absent.answered(&uid, self.known.get(&uid).copied().unwrap_or(Existence::Gone));
        }
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
    let mut held = HeldUids::new((0..held).map(uid));
    held.begin(beginning);
    for number in replayed {
        assert!(held.take(&event(number)).is_none());
    }
    held.take(&Message::Replayed(None)).expect("it has ended")
}

#[test]
fn an_absence_counts_once_the_api_confirms_it() {
    let mut api = Api::new([(uid(3), Existence::Exists), (uid(4), Existence::Unknown)]);
    let mut absent = absent(6, Beginning::Fresh, [0, 1]);
    let mut confirm = |api: &Api| api.confirm(&mut absent, &LIMITS).expect("within the limits");
    assert_eq!(confirm(&api), (vec![uid(2)], vec![uid(4), uid(5)]), "no answer");
    assert_eq!(confirm(&api), (vec![uid(5)], vec![uid(4)]), "more is known");
    assert_eq!(
        api.asked.take(),
        [2, 3, 4, 5].map(uid),
        "each of them, and nothing that was replayed"
    );
    api.known.insert(uid(4), Existence::Gone);
    assert_eq!(confirm(&api), (vec![uid(4)], Vec::new()), "asked once more");
    assert_eq!(api.asked.take(), [uid(4)]);
}

/// As if a part could be deleted before it is known that there is too much.
#[test]
fn nothing_is_gone_while_it_may_be_too_much_with_what_is_not_known() {
    let limits = Limits { few: 2, ..LIMITS };
    for (last, end) in [
        (Existence::Exists, Ok((vec![uid(1)], vec![uid(2)]))),
        (Existence::Gone, Err(3)),
    ] {
        let mut api = Api::new([(uid(2), Existence::Unknown), (uid(3), last)]);
        let mut absent = absent(4, Beginning::Fresh, [0]);
        let first = api.confirm(&mut absent, &limits);
        assert_eq!(first, Ok((Vec::new(), vec![uid(2), uid(3)])), "three of four");
        if last == Existence::Gone {
            api.known.remove(&uid(2));
        }
        let next = api.confirm(&mut absent, &limits).map_err(|stop| match stop {
            Stop::TooMany { gone, .. } => gone,
            other => panic!("{other}"),
        });
        assert_eq!(next, end);
    }
}

#[test]
fn what_an_earlier_replay_lacked_and_is_not_known_is_looked_up_with_the_next_one() {
    for (beginning, is_stopped) in [(Beginning::Fresh, false), (Beginning::AfterGone, true)] {
        let allowed = Limits {
            after_gone: true,
            ..LIMITS
        };
        let api = Api::new([(uid(2), Existence::Unknown)]);
        let mut earlier = absent(3, beginning, [0, 1]);
        assert_eq!(api.confirm(&mut earlier, &allowed), Ok((Vec::new(), vec![uid(2)])));
        let mut later = absent(2, Beginning::Fresh, [0]);
        later.absorb(earlier);
        let confirmed = Api::default().confirm(&mut later, &LIMITS);
        match is_stopped {
            true => assert!(
                matches!(confirmed, Err(Stop::Restored { absent: 2, .. })),
                "{confirmed:?}"
            ),
            false => assert_eq!(confirmed, Ok((vec![uid(1), uid(2)], Vec::new()))),
        }
    }
}

/// As if what was kept back, because it might have been too much with the rest, were forgotten.
#[test]
fn what_an_earlier_replay_lacked_and_was_not_returned_is_looked_up_with_the_next_one() {
    let few = Limits {
        percent: 0,
        few: 1,
        ..LIMITS
    };
    let api = Api::new([(uid(2), Existence::Unknown)]);
    let mut earlier = absent(3, Beginning::Fresh, [0]);
    assert_eq!(api.confirm(&mut earlier, &few), Ok((Vec::new(), vec![uid(2)])));
    let mut later = absent(1, Beginning::Fresh, [0]);
    later.absorb(earlier);
    let confirmed = Api::default().confirm(&mut later, &LIMITS);
    assert_eq!(confirmed, Ok((vec![uid(1), uid(2)], Vec::new())));
}

#[test]
fn a_replay_that_deletes_more_than_the_limits_allow_deletes_nothing() {
    let confirm = |held, replayed, limits: Limits| {
        let confirmed = Api::default().confirm(&mut absent(held, Beginning::Fresh, replayed), &limits);
        confirmed.map(|(gone, _)| gone.len()).map_err(|stop| stop.to_string())
    };
    let limits = Limits {
        objects: 20,
        percent: 10,
        few: 2,
        after_gone: false,
    };
    assert_eq!(confirm(3, 0..1, limits), Ok(2), "few, whatever their share is");
    assert_eq!(confirm(100, 0..90, limits), Ok(10));
    let share = confirm(100, 0..89, limits).expect_err("more than a tenth");
    assert!(
        share.starts_with("11 of 100 objects of runs.g that are held are gone, first 0089"),
        "{share}"
    );
    assert!(share.ends_with("are deleted at once: nothing is deleted"), "{share}");
    assert_eq!(confirm(1000, 0..980, limits), Ok(20));
    assert!(confirm(1000, 0..979, limits).is_err(), "more than 20");
}

#[test]
fn an_empty_replay_deletes_nothing_and_looks_nothing_up() {
    let api = Api::default();
    let confirmed = api.confirm(&mut absent(1, Beginning::Fresh, []), &LIMITS);
    assert!(matches!(confirmed, Err(Stop::Empty { held: 1, .. })), "{confirmed:?}");
    assert!(api.asked.take().is_empty());
    let nothing_held = api.confirm(&mut absent(0, Beginning::Fresh, []), &LIMITS);
    assert_eq!(nothing_held, Ok((Vec::new(), Vec::new())));
}

#[test]
fn a_replay_of_a_database_that_may_be_restored_deletes_nothing_until_somebody_allows_it() {
    let replay = || absent(3, Beginning::AfterGone, [0, 1]);
    let stopped = Api::default().confirm(&mut replay(), &LIMITS);
    assert!(
        matches!(stopped, Err(Stop::Restored { absent: 1, held: 3, .. })),
        "{stopped:?}"
    );
    let allowed = Limits {
        after_gone: true,
        ..LIMITS
    };
    let confirmed = Api::default().confirm(&mut replay(), &allowed);
    assert_eq!(confirmed, Ok((vec![uid(2)], Vec::new())));
    let whole = Api::default().confirm(&mut absent(2, Beginning::AfterGone, [0, 1]), &LIMITS);
    assert_eq!(whole, Ok((Vec::new(), Vec::new())));
    for (existence, stops) in [(Existence::Exists, false), (Existence::Unknown, true)] {
        let confirmed = Api::new([(uid(2), existence)]).confirm(&mut replay(), &LIMITS);
        assert_eq!(confirmed.is_err(), stops, "{existence:?}: {confirmed:?}");
    }
}

#[test]
fn a_replay_that_was_not_seen_from_beginning_to_end_says_nothing() {
    let mut held = HeldUids::new((0..3).map(uid));
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
    let mut held = HeldUids::new([uid(0)]);
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

/// Up to 99 in partition 0, from 100 on in partition 1.
fn assignment<const P: usize, const A: usize>(partitions: [u32; P], added: [u32; A]) -> PartitionAssignment {
    PartitionAssignment {
        partition_of: Box::new(|of: &Uid| u32::from(*of >= uid(100))),
        partitions: partitions.into(),
        added: added.into(),
        from: None,
    }
}

/// What is absent where a subscription to these partitions began, and these are replayed of the 200 that are held.
fn absent_of_200(beginning: Beginning, replayed: impl IntoIterator<Item = usize>) -> (HeldUids, Absent) {
    let mut held = HeldUids::new((0..200).map(uid));
    held.keep(&assignment([0, 1], [0, 1]));
    held.begin(beginning);
    for number in replayed {
        assert!(held.take(&event(number)).is_none());
    }
    let absent = held.take(&Message::Replayed(None)).expect("it has ended");
    (held, absent)
}

/// As if the objects of partitions that have left still counted.
#[test]
fn what_is_absent_is_compared_with_what_is_left_of_the_partitions() {
    let (mut held, mut absent) = absent_of_200(Beginning::Fresh, 15..200);
    absent.leave(held.keep(&assignment([0], [])).len());
    absent.retain(&held);
    let confirmed = Api::default().confirm(&mut absent, &LIMITS);
    assert!(
        matches!(confirmed, Err(Stop::TooMany { held: 100, .. })),
        "{confirmed:?}"
    );
}

/// As if what is deleted meanwhile had never been held.
#[test]
fn what_is_absent_is_compared_with_what_was_held_when_the_replay_ended() {
    let (mut held, mut absent) = absent_of_200(Beginning::Fresh, 15..200);
    (50..200).for_each(|number| held.remove(&uid(number)));
    absent.retain(&held);
    let (gone, _) = Api::default().confirm(&mut absent, &LIMITS).expect("15 of 200");
    assert_eq!(gone.len(), 15);
}

/// As if what is looked up were trusted, because its replay was of all that was stopped when it ended.
#[test]
fn what_was_stopped_is_not_gone_because_a_part_of_it_leaves_during_the_look_ups() {
    let allowed = Limits {
        after_gone: true,
        ..LIMITS
    };
    let some = || (6..100).chain(105..200);
    for leaves in [false, true] {
        let (mut held, mut absent) = absent_of_200(Beginning::Fresh, some());
        let few = Limits { percent: 5, ..allowed };
        assert!(Api::default().confirm(&mut absent, &few).is_err(), "11 of 200");
        held.stopped();
        held.lost();
        held.begin(Beginning::AfterGone);
        some().for_each(|number| assert!(held.take(&event(number)).is_none()));
        let mut absent = held.take(&Message::Replayed(None)).expect("it has ended");
        if leaves {
            absent.leave(held.keep(&assignment([0], [])).len());
            absent.retain(&held);
        }
        let confirmed = Api::default().confirm(&mut absent, &allowed);
        let is_stopped = matches!(confirmed, Err(Stop::Restored { absent: 6, .. }));
        assert_eq!(is_stopped, leaves, "{confirmed:?}");
    }
}

/// As if what left before it was replayed could not be restored.
#[test]
fn a_partition_that_leaves_a_replay_after_a_lost_position_is_trusted_no_more_than_that() {
    let mut held = HeldUids::new((0..200).map(uid));
    held.keep(&assignment([0, 1], [0, 1]));
    held.begin(Beginning::AfterGone);
    held.keep(&assignment([0], []));
    let absent = held.take(&Message::Replayed(None)).expect("it has ended");
    held.confirmed(&absent);
    held.keep(&assignment([0, 1], [1]));
    let absent = held.take(&Message::Replayed(None)).expect("it has ended");
    assert_eq!(absent.beginning, Beginning::AfterGone);
}

/// As if a stop were over for all partitions at once, or never in a set that has become smaller.
#[test]
fn a_partition_is_trusted_again_once_a_replay_of_it_ends_without_a_stop() {
    let (mut held, _) = absent_of_200(Beginning::Fresh, 0..200);
    held.stopped();
    held.keep(&assignment([0], []));
    held.keep(&assignment([0], [0]));
    (0..100).for_each(|number| assert!(held.take(&event(number)).is_none()));
    let absent = held.take(&Message::Replayed(None)).expect("it has ended");
    held.confirmed(&absent);
    for (partition, beginning) in [(0, Beginning::Fresh), (1, Beginning::AfterStop)] {
        held.keep(&assignment([0, 1], [partition]));
        let absent = held.take(&Message::Replayed(None)).expect("it has ended");
        assert_eq!(absent.beginning, beginning, "of partition {partition}");
    }
}
