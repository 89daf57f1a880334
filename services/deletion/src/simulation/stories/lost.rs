//! Holders that nobody finds: whoever may know of them is asked twice, with time in between, before people are told. No
//! reference lapses by that.

use kindex_model::deletion::Phase;

use super::calm;
use crate::notice::Notice;
use crate::object::Key;
use crate::simulation::{Bug, Play};

/// As if a single answer were believed, which may come too early; as if a reference lapsed with the last answer, or as
/// if a service that is silent had answered.
#[test]
fn a_holder_that_is_not_found_twice_is_reported_once_and_goes_on_holding() {
    all(Bug::None).expect("nothing is broken");
}

/// As if a holder were looked for by its name, which another one has by now.
#[test]
fn of_two_holders_that_had_one_name_the_first_is_reported_once_and_the_second_holds() {
    for divided in [false, true] {
        let mut play = calm(divided);
        let cluster = play.with("Cluster", "a", &[]);
        let budget = play.with("Budget", "a", &[("cluster", "a")]);
        play.settled();
        let first = play.world.servers.objects[&budget].reference();
        play.erase_by_force(&budget);
        play.with("Budget", "a", &[("cluster", "a")]);
        play.settled();
        let second = play.world.servers.objects[&budget].reference();
        assert_ne!(first, second);
        play.delete(&cluster);
        let at = play.at_service(&cluster);
        let reported = play.look_for(at, 300).expect("nothing is broken");
        let lost: Vec<_> = reported.iter().filter(|(_, notice)| is_loss(notice)).collect();
        let [(about, notice)] = lost.as_slice() else {
            panic!("one holder is lost: {reported:?}")
        };
        assert_eq!(*about, cluster);
        let names = |named: &str| notice.message.contains(named);
        assert!(names(&format!("{first} (not found)")), "{notice:?}");
        assert!(names(&budget.to_string()) && !names(&second), "{notice:?}");

        let found = &play.world.servers.objects[&cluster];
        assert!(
            found.has_finalizer(&first) && found.has_finalizer(&second),
            "references do not lapse"
        );
        let dropped = play.world.write(&cluster, None, None, |cluster| {
            cluster.finalizers.retain(|finalizer| *finalizer != first);
        });
        dropped.expect("it is there");
        let reported = play.look_for(at, 300).expect("nothing is broken");
        assert_eq!(losses(&reported), 0, "{reported:?}");
        assert!(!play.erased(&cluster), "the second one holds it");
        play.delete(&budget);
        play.settled();
        assert!(play.erased(&cluster));
        play.hold().expect("nothing is broken");
    }
}

/// All of these.
pub(in super::super) fn all(bug: Bug) -> Result<(), String> {
    for divided in [false, true] {
        erase_holder(bug, divided)?;
        store_late(bug, divided)?;
    }
    keep_silent(bug)
}

fn is_loss(notice: &Notice) -> bool {
    notice.reason == "HolderNotFound"
}

fn losses(reported: &[(Key, Notice)]) -> usize {
    reported.iter().filter(|(_, notice)| is_loss(notice)).count()
}

/// A cluster that is being deleted, a budget that holds it, and where the service of the cluster is.
fn deleted(play: &mut Play) -> (Key, Key, usize) {
    let cluster = play.with("Cluster", "a", &[]);
    let budget = play.with("Budget", "a", &[("cluster", "a")]);
    play.settled();
    play.delete(&cluster);
    let at = play.at_service(&cluster);
    (cluster, budget, at)
}

/// The same, once people were told of it.
fn reported(play: &mut Play, bug: Bug) -> Result<(Key, Key, usize), String> {
    let (cluster, budget, at) = deleted(play);
    play.bug = bug;
    let reported = play.look_for(at, 40)?;
    match reported.as_slice() {
        [(about, notice)] if *about == cluster && notice.message.ends_with(&budget.to_string()) => {
            Ok((cluster, budget, at))
        }
        _ => Err(format!(
            "{cluster} waits for {budget}, and people are told {reported:?}"
        )),
    }
}

/// The budget goes by force, and leaves its reference behind, which an operator drops in the end.
fn erase_holder(bug: Bug, divided: bool) -> Result<(), String> {
    let mut play = calm(divided);
    let (cluster, budget, at) = reported(&mut play, bug)?;
    let reference = play.world.servers.objects[&budget].reference();
    play.erase_by_force(&budget);
    if losses(&play.look_for(at, 30)?) > 0 {
        return Err(format!("{budget} is reported as lost after one answer"));
    }
    let times = losses(&play.look_for(at, 300)?);
    if times != 1 {
        return Err(format!("{budget} is reported as lost {times} times"));
    }
    // Whoever comes after a process that died asks twice as well, and says nothing that was said.
    play.crash(at);
    play.look_for(at, 120)?;
    let events = play.world.events_about(&cluster);
    if events.into_iter().filter(|notice| is_loss(notice)).count() != 1 {
        return Err(format!("there are several events of {budget}, which is lost"));
    }
    let found = play.world.servers.objects.get(&cluster);
    if found.is_none_or(|found| found.phase != Some(Phase::Deleting)) {
        return Err(format!("{cluster} goes on though the reference of {budget} is on it"));
    }
    let dropped = play.world.write(&cluster, None, None, |cluster| {
        cluster.finalizers.retain(|finalizer| *finalizer != reference);
    });
    dropped.expect("it is there");
    play.settle()?;
    match play.erased(&cluster) {
        true => play.hold(),
        false => Err(format!("{cluster} stays though nothing holds it any more")),
    }
}

/// The first answer comes before the row of the budget, which has left for the archive, can be read.
fn store_late(bug: Bug, divided: bool) -> Result<(), String> {
    let mut play = calm(divided);
    let (cluster, budget, at) = reported(&mut play, bug)?;
    let row = play.world.servers.objects[&budget].clone();
    play.erase_by_force(&budget);
    let before = losses(&play.look_for(at, 30)?);
    play.world.archives.add(row);
    match before + losses(&play.look_for(at, 300)?) {
        0 => play.hold(),
        _ => Err(format!("{budget} is reported to {cluster} as lost, and is archived")),
    }
}

/// The service of the budget does not answer for a while.
fn keep_silent(bug: Bug) -> Result<(), String> {
    let mut play = calm(true);
    let (cluster, budget, at) = deleted(&mut play);
    play.bug = bug;
    play.world.servers.down = Some(budget.kind.group.to_string());
    if losses(&play.look_for(at, 300)?) > 0 {
        return Err(format!("{budget} is reported as lost, and its service is silent"));
    }
    play.world.servers.down = None;
    let reported = play.look_for(at, 60)?;
    let is_named = |notice: &Notice| notice.message.ends_with(&budget.to_string());
    match reported
        .iter()
        .any(|(about, notice)| *about == cluster && is_named(notice))
    {
        true => play.hold(),
        false => Err(format!(
            "{cluster} waits for {budget}, and people are told {reported:?}"
        )),
    }
}
