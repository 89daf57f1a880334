//! Final objects that own others: SQL is asked what they own, again and again while it shows something, and after each
//! newer observation.

use jiff::Timestamp;
use kindex_model::object::Uid;
use kindex_model::projection::content_hash;
use kindex_query::Life;
use kindex_runtime::message::{Effect, EffectDone, Input, Output, Ticket};
use kindex_runtime::settings::Settings;
use kindex_sim::thing::IMMUTABLE;
use kindex_store::{RowState, RowWrite};

use super::bench::{Bench, START, Thing, away, effects_of, live, thing, write_of};
use super::leaving::{done, leaving};

/// What is done next, however many deadlines pass until then.
fn next(bench: &mut Bench) -> Vec<Output> {
    loop {
        let outputs = bench.wait();
        if !outputs.is_empty() {
            return outputs;
        }
    }
}

/// The write of the one row among these outputs.
fn life_of(outputs: &[Output]) -> Option<(Ticket, Life)> {
    match outputs {
        [Output::Write(ticket, writes)] => match writes[..] {
            [RowWrite::Store { life, .. }] => Some((*ticket, life)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether SQL is asked what the object owns, and nothing else has effects.
fn is_asked(outputs: &[Output]) -> bool {
    matches!(effects_of(outputs)[..], [Effect::FindOwned(_)])
}

/// A bench on which SQL is asked what a final object owns.
fn asking() -> Bench {
    let mut bench = Bench::watching_owners(Settings::default());
    let read = bench.applied(&leaving(IMMUTABLE));
    let asked = bench.no_rows(&read);
    assert!(is_asked(&asked) && write_of(&asked).is_none(), "{asked:?}");
    bench
}

/// SQL answers that the object owns nothing. Gives the write that archives it.
fn begin_archiving(bench: &mut Bench) -> Ticket {
    let archive = done(bench, EffectDone::OwnedFound(Ok(false)));
    let (ticket, life) = life_of(&archive).expect("it is stored");
    assert_eq!(life, Life::Archived);
    ticket
}

/// A newer version of the object, which is final as well. Nothing follows at once.
fn observe_newer(bench: &mut Bench) {
    let newer = Thing {
        version: 7,
        ..leaving(IMMUTABLE)
    };
    let outputs = bench.applied(&newer);
    assert!(outputs.is_empty(), "{outputs:?}");
}

/// The object may be archived, and waits while another one is written. Gives the ticket of that write.
fn archivable_behind_a_write(bench: &mut Bench) -> Ticket {
    let read = bench.applied(&thing("b", 6));
    let (ticket, _) = write_of(&bench.no_rows(&read)).expect("a write");
    let queued = done(bench, EffectDone::OwnedFound(Ok(false)));
    assert!(queued.is_empty(), "{queued:?}");
    ticket
}

/// As if an answer counted for ever, or an owner that waits were asked about no more, or were late all the while.
#[test]
fn a_final_owner_waits_and_asks_sql_again_until_what_it_owns_has_left() {
    let mut bench = asking();
    let stays = done(&mut bench, EffectDone::OwnedFound(Ok(true)));
    let (ticket, life) = life_of(&stays).expect("it is stored");
    assert_eq!(life, Life::Live);
    assert!(bench.written(ticket, 1).is_empty(), "it waits");
    let start = Timestamp::from_second(START).expect("in range");
    for _ in 0..2 {
        let since = bench.elapsed;
        assert_eq!(bench.controller.status().oldest_arrival, None, "it waits as it should");
        let asked = next(&mut bench);
        assert!(is_asked(&asked), "{asked:?}");
        assert!(bench.elapsed > since);
        assert_eq!(bench.controller.status().oldest_arrival, Some(start + since));
        assert!(done(&mut bench, EffectDone::OwnedFound(Ok(true))).is_empty());
    }
    let asked = next(&mut bench);
    assert!(is_asked(&asked), "{asked:?}");
    assert!(done(&mut bench, EffectDone::OwnedFound(Err(away()))).is_empty());
    let row = RowState {
        hash: Some(content_hash(&leaving(IMMUTABLE).object())),
        ..live("a", 5)
    };
    let read = next(&mut bench);
    let again = bench.rows(&read, vec![row]);
    assert!(is_asked(&again), "{again:?}");
    let ticket = begin_archiving(&mut bench);
    let delete = bench.written(ticket, 1);
    assert!(matches!(effects_of(&delete)[..], [Effect::Delete(_)]), "{delete:?}");
}

/// As if nothing could become live while the database is away.
#[test]
fn sql_is_asked_again_after_a_write_that_failed() {
    let mut bench = asking();
    let ticket = begin_archiving(&mut bench);
    let failed = bench.step(Input::Written(ticket, Err(away())));
    assert!(failed.is_empty(), "{failed:?}");
    let read = next(&mut bench);
    let again = bench.no_rows(&read);
    assert!(is_asked(&again) && write_of(&again).is_none(), "{again:?}");
}

/// As if an object that is archived owned nothing in any newer version.
#[test]
fn sql_is_asked_again_before_a_newer_version_follows_one_that_is_archived() {
    let mut bench = asking();
    let ticket = begin_archiving(&mut bench);
    observe_newer(&mut bench);
    let again = bench.written(ticket, 1);
    assert!(is_asked(&again) && write_of(&again).is_none(), "{again:?}");
}

/// As if an answer said something about a version that came after the question.
#[test]
fn an_answer_archives_no_version_that_came_after_the_question() {
    let mut bench = asking();
    observe_newer(&mut bench);
    let again = done(&mut bench, EffectDone::OwnedFound(Ok(false)));
    assert!(is_asked(&again) && write_of(&again).is_none(), "{again:?}");
    begin_archiving(&mut bench);
}

/// As if a question that a batch led to were sent only once something else happened.
#[test]
fn sql_is_asked_at_once_about_a_newer_version_that_waited_for_a_batch() {
    let mut bench = asking();
    let ticket = archivable_behind_a_write(&mut bench);
    observe_newer(&mut bench);
    let again = bench.written(ticket, 1);
    assert!(is_asked(&again) && write_of(&again).is_none(), "{again:?}");
}

/// As if an answer that waits in the queue still counted once the database is back.
#[test]
fn sql_is_asked_again_about_what_waited_while_the_database_was_away() {
    let mut bench = asking();
    let ticket = archivable_behind_a_write(&mut bench);
    let failed = bench.step(Input::Written(ticket, Err(away())));
    assert!(failed.is_empty(), "{failed:?}");
    let read = next(&mut bench);
    let again = bench.no_rows(&read);
    assert!(is_asked(&again), "{again:?}");
    let (_, writes) = write_of(&again).expect("the other one is stored");
    assert_eq!(writes, [(Uid::from("b"), 6)]);
}
