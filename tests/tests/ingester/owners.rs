//! Final objects that own others: SQL and the cluster are asked what they own, again and again while there is
//! something, and after each newer observation.

use jiff::Timestamp;
use kindex_kube_client::{ClusterCause, ClusterError};
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::projection::content_hash;
use kindex_query::{Life, Revive};
use kindex_runtime::message::{Effect, EffectDone, Input, Outcome, Output, OwnedFailure, Ticket};
use kindex_runtime::settings::Settings;
use kindex_sim::thing::IMMUTABLE;
use kindex_store::{RowState, RowWrite, Written};

use super::bench::{Bench, START, Thing, away, effects_of, live, refused, restoring, thing, write_of};
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

/// The row of the object, which holds its version.
fn row(life: Life) -> RowState {
    RowState {
        hash: Some(content_hash(&leaving(IMMUTABLE).object())),
        life,
        ..live("a", 5)
    }
}

/// The row is read again, and then SQL is asked again what the object owns.
fn ask_again(bench: &mut Bench, read: &[Output], life: Life) {
    let asked = bench.rows(read, vec![row(life)]);
    assert!(is_asked(&asked) && write_of(&asked).is_none(), "{asked:?}");
}

/// Whether the object is read from the cluster, and nothing else is done.
fn is_looked_at(outputs: &[Output]) -> bool {
    matches!(effects_of(outputs)[..], [Effect::Get(_)]) && write_of(outputs).is_none()
}

/// A bench on which the object is looked at, because its row was archived in its version, and SQL shows that it owns
/// something live.
fn looking() -> Bench {
    let mut bench = Bench::watching_owners(Settings::default());
    let read = bench.applied(&leaving(IMMUTABLE));
    ask_again(&mut bench, &read, Life::Archived);
    let looks = done(&mut bench, EffectDone::OwnedFound(Ok(true)));
    assert!(is_looked_at(&looks), "{looks:?}");
    bench
}

/// The cluster has the object, and SQL still shows that it owns something live. Gives the write that reopens the row.
fn begin_reopening(bench: &mut Bench) -> Ticket {
    let read = done(bench, EffectDone::Got(Ok(Some(leaving(IMMUTABLE).object()))));
    ask_again(bench, &read, Life::Archived);
    let reopens = done(bench, EffectDone::OwnedFound(Ok(true)));
    let [Output::Write(ticket, writes)] = &reopens[..] else {
        panic!("{reopens:?}");
    };
    let [RowWrite::Store { life, revive, .. }] = writes[..] else {
        panic!("{writes:?}");
    };
    assert_eq!((life, revive), (Life::Live, Revive::From(Life::Archived)));
    *ticket
}

/// The cluster lacks the object, whose row was archived: nothing more is done.
fn end_without_a_write(bench: &mut Bench) {
    let read = done(bench, EffectDone::Got(Ok(None)));
    let ended = bench.rows(&read, vec![row(Life::Archived)]);
    assert!(effects_of(&ended).is_empty() && write_of(&ended).is_none(), "{ended:?}");
    assert_eq!(bench.controller.status().pending, 0);
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
        let read = next(&mut bench);
        ask_again(&mut bench, &read, Life::Live);
        assert!(bench.elapsed > since);
        assert_eq!(bench.controller.status().oldest_arrival, Some(start + since));
        assert!(done(&mut bench, EffectDone::OwnedFound(Ok(true))).is_empty());
    }
    let read = next(&mut bench);
    ask_again(&mut bench, &read, Life::Live);
    assert!(done(&mut bench, EffectDone::OwnedFound(Err(OwnedFailure::Store(away())))).is_empty());
    let read = next(&mut bench);
    ask_again(&mut bench, &read, Life::Live);
    let ticket = begin_archiving(&mut bench);
    let delete = bench.written(ticket, 1);
    assert!(matches!(effects_of(&delete)[..], [Effect::Delete(_)]), "{delete:?}");
}

/// As if an object that is still there could not be owned while the cluster is away.
#[test]
fn an_owner_stays_while_the_cluster_does_not_say_what_it_owns() {
    let mut bench = asking();
    let silence = ClusterError::Retryable {
        cause: ClusterCause::Timeout,
        retry_after: None,
        message: "no answer".to_owned(),
    };
    assert!(done(&mut bench, EffectDone::OwnedFound(Err(OwnedFailure::Cluster(silence)))).is_empty());
    let looks = next(&mut bench);
    assert!(is_looked_at(&looks), "{looks:?}");
    let read = done(&mut bench, EffectDone::Got(Ok(Some(leaving(IMMUTABLE).object()))));
    let asked = bench.no_rows(&read);
    assert!(is_asked(&asked) && write_of(&asked).is_none(), "{asked:?}");
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

/// As if an answer still counted for the other part of a batch that was refused.
#[test]
fn sql_is_asked_again_about_the_rest_of_a_refused_batch_once_the_database_is_back() {
    let mut bench = asking();
    let read = bench.applied(&thing("b", 6));
    let (ticket, _) = write_of(&bench.no_rows(&read)).expect("a write");
    let queued = bench.applied(&thing("c", 7));
    assert!(queued.is_empty(), "{queued:?}");
    let queued = done(&mut bench, EffectDone::OwnedFound(Ok(false)));
    assert!(queued.is_empty(), "{queued:?}");
    let read = bench.written(ticket, 1);
    let (ticket, writes) = write_of(&bench.no_rows(&read)).expect("both are stored");
    assert_eq!(writes, [(Uid::from("c"), 7), (Uid::from("a"), 5)]);
    let read = bench.step(Input::Written(ticket, Err(refused())));
    let (ticket, writes) = write_of(&bench.no_rows(&read)).expect("a part of them");
    assert_eq!(writes, [(Uid::from("c"), 7)]);
    let failed = bench.step(Input::Written(ticket, Err(away())));
    assert!(failed.is_empty(), "{failed:?}");
    let read = next(&mut bench);
    let again = bench.no_rows(&read);
    assert!(is_asked(&again) && write_of(&again).is_none(), "{again:?}");
}

/// As if the row of an owner that another ingester has archived, and maybe deleted, were reopened unseen.
#[test]
fn an_owner_that_is_archived_in_its_version_becomes_live_once_the_cluster_has_shown_it() {
    let mut bench = looking();
    let ticket = begin_reopening(&mut bench);
    assert!(bench.written(ticket, 1).is_empty(), "it waits");
    assert_eq!(bench.metrics.revived.get(), 1);

    let mut bench = looking();
    end_without_a_write(&mut bench);
    assert_eq!(bench.metrics.revived.get(), 0);
}

/// As if a look at the cluster from before an outage still counted after it.
#[test]
fn the_cluster_is_asked_again_for_an_owner_after_a_write_that_failed() {
    let mut bench = looking();
    let ticket = begin_reopening(&mut bench);
    let failed = bench.step(Input::Written(ticket, Err(away())));
    assert!(failed.is_empty(), "{failed:?}");
    let read = next(&mut bench);
    ask_again(&mut bench, &read, Life::Archived);
    let looks = done(&mut bench, EffectDone::OwnedFound(Ok(true)));
    assert!(is_looked_at(&looks), "{looks:?}");
}

/// As if a look at the cluster from before a wait still counted after it, once the row is what it was then.
#[test]
fn the_cluster_is_asked_again_for_an_owner_that_was_archived_once_more_while_it_waited() {
    let mut bench = looking();
    let ticket = begin_reopening(&mut bench);
    assert!(bench.written(ticket, 1).is_empty(), "it waits");
    let read = next(&mut bench);
    ask_again(&mut bench, &read, Life::Archived);
    let looks = done(&mut bench, EffectDone::OwnedFound(Ok(true)));
    assert!(is_looked_at(&looks), "{looks:?}");
}

/// As if a look at the cluster counted for as long as SQL gave no answer.
#[test]
fn the_cluster_is_asked_again_for_an_owner_after_a_question_that_failed() {
    let mut bench = looking();
    let read = done(&mut bench, EffectDone::Got(Ok(Some(leaving(IMMUTABLE).object()))));
    ask_again(&mut bench, &read, Life::Archived);
    assert!(done(&mut bench, EffectDone::OwnedFound(Err(OwnedFailure::Store(away())))).is_empty());
    let read = next(&mut bench);
    ask_again(&mut bench, &read, Life::Archived);
    let looks = done(&mut bench, EffectDone::OwnedFound(Ok(true)));
    assert!(is_looked_at(&looks), "{looks:?}");
}

/// As if an owner that another ingester has archived and deleted meanwhile were stored again and again.
#[test]
fn an_owner_that_has_left_before_its_write_is_looked_at_once() {
    let mut bench = asking();
    let stays = done(&mut bench, EffectDone::OwnedFound(Ok(true)));
    let (ticket, _) = life_of(&stays).expect("it is stored");
    let superseded = Outcome {
        written: Written::Superseded,
        problems: Vec::new(),
        replaced: Vec::new(),
    };
    let late = bench.step(Input::Written(ticket, Ok(vec![superseded])));
    assert!(late.is_empty(), "{late:?}");
    let read = next(&mut bench);
    ask_again(&mut bench, &read, Life::Archived);
    let looks = done(&mut bench, EffectDone::OwnedFound(Ok(true)));
    assert!(is_looked_at(&looks), "{looks:?}");
    end_without_a_write(&mut bench);
}

/// As if a kind that another ingester takes over waited here for a slow list.
#[test]
fn a_stop_waits_for_no_question() {
    let mut bench = asking();
    bench.step(Input::Stop);
    assert!(bench.controller.is_drained());
    let late = done(&mut bench, EffectDone::OwnedFound(Ok(false)));
    assert!(late.is_empty(), "{late:?}");
}

/// As if an answer could come once nothing is known any more of the object that it is about.
#[test]
fn a_restoration_waits_for_the_answer_to_a_question() {
    let mut bench = asking();
    bench.step(Input::WatchEnded);
    let waits = bench.step(Input::Probed(Ok(ResourceVersion(3))));
    assert!(waits.is_empty(), "{waits:?}");
    let goes_on = done(&mut bench, EffectDone::OwnedFound(Ok(false)));
    assert!(matches!(goes_on[..], [Output::Scan { .. }]), "{goes_on:?}");
    assert_eq!(bench.checkpoints.last(), Some(&restoring(3)));
}
