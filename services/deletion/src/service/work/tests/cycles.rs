//! Which objects are reported as a cycle, when, and for which of them the archive is asked.

use super::*;
use crate::cluster::outcome::Task;
use crate::decide::Seen;
use crate::notice::cycle_notice;
use crate::service::notices::{Due, Notices};
use crate::service::waiting::Overdue;

const UIDS: [&str; 3] = ["n0", "n1", "n2"];

fn at(number: usize) -> Key {
    key("Network", UIDS[number])
}

fn seen(number: usize) -> Seen {
    Seen {
        key: at(number),
        uid: UIDS[number].to_owned(),
    }
}

fn name(number: usize) -> ReferenceName {
    ReferenceName::new("Network", GROUP, UIDS[number]).expect("a name")
}

/// One that is deleted, held by these.
fn going(number: usize, version: u64, held_by: &[usize]) -> Object {
    Object {
        version: ResourceVersion(version),
        finalizers: vec!["x.example.com/deletion".to_owned()],
        references: held_by.iter().map(|holder| name(*holder)).collect(),
        phase: Some(Phase::Deleting),
        ..deleting(at(number), UIDS[number])
    }
}

fn is_live(object: Object) -> Object {
    Object {
        state: DeletionState::Live,
        phase: None,
        ..object
    }
}

/// Networks; what nothing holds in the cluster is held by an archived one.
struct Networks {
    work: Work,
    begun: Instant,
}

impl Networks {
    fn new(objects: Vec<Object>) -> Self {
        let setup = Setup {
            archives: true,
            ..Setup::default()
        };
        let mut work = Work::new(Vec::new(), setup, BLOCKED_AFTER);
        work.on_list(&at(0).kind, ResourceVersion(6), objects);
        Self {
            work,
            begun: Instant::now(),
        }
    }

    fn look(&mut self, seconds: u64) -> Vec<Overdue> {
        let now = self.begun + Duration::from_secs(seconds);
        self.work.ask_again(now);
        while let Some(task) = self.work.next(now) {
            self.work.ended(&task);
            self.take(&task, now);
            self.work.free(&task.object.key);
        }
        self.work.overdue(now, Timestamp::UNIX_EPOCH)
    }

    fn take(&mut self, task: &Task, now: Instant) {
        if task.step == Step::Sweep {
            held_by("archived".to_owned())(&mut self.work, task, now);
        } else {
            assert!(!task.object.is_leaving(), "{:?}", task.step);
        }
    }
}

fn said(overdue: &[Overdue]) -> Vec<(Key, &'static str, bool)> {
    let said = overdue.iter();
    said.map(|one| (one.object.key.clone(), one.notice.reason, one.may_be_cycle))
        .collect()
}

#[test]
fn the_archive_is_asked_for_a_cycle_only_where_an_archived_object_is_waited_for() {
    let blocked = |number, may_be_cycle| (at(number), "DeletionBlocked", may_be_cycle);
    let mut chain = Networks::new(vec![going(0, 1, &[1]), going(1, 2, &[])]);
    assert!(chain.look(0).is_empty());
    assert_eq!(said(&chain.look(30)), [blocked(0, true), blocked(1, true)]);
    assert!(chain.look(300).is_empty(), "once");
    let mut held = Networks::new(vec![going(0, 1, &[1]), is_live(going(1, 2, &[]))]);
    assert!(held.look(0).is_empty());
    assert_eq!(said(&held.look(30)), [blocked(0, false)]);
    let mut cycle = Networks::new(vec![going(0, 1, &[1]), going(1, 2, &[0, 2]), going(2, 3, &[])]);
    cycle.look(0);
    let with_path = |number| (at(number), "DeletionCycle", false);
    assert_eq!(said(&cycle.look(30)), [with_path(0), with_path(1), blocked(2, true)]);
}

/// As if a member that was reported before the cycle closed were never reported again.
#[test]
fn whoever_was_reported_before_a_cycle_closed_is_reported_once_more_with_its_path() {
    let mut networks = Networks::new(vec![going(0, 1, &[1]), going(1, 2, &[2]), is_live(going(2, 3, &[0]))]);
    networks.look(0);
    assert_eq!(networks.look(30).len(), 2);
    networks.work.seen(going(2, 10, &[0]), networks.begun);
    assert!(networks.look(31).is_empty());
    let reported = networks.look(61);
    let messages: Vec<_> = reported
        .iter()
        .map(|one| (&one.object.key, one.notice.clone()))
        .collect();
    let path = |begin: usize| {
        let mut path: Vec<_> = (0..3).map(at).collect();
        path.rotate_left(begin);
        cycle_notice(&path)
    };
    assert_eq!(messages, [(&at(2), path(2)), (&at(0), path(0)), (&at(1), path(1))]);
    assert!(networks.look(300).is_empty(), "once");
}

#[test]
fn of_a_path_that_the_archive_knows_only_those_are_reported_that_wait_on_it() {
    let archived = Seen {
        key: key("Network", "archived"),
        uid: "archived".to_owned(),
    };
    let mut networks = Networks::new(vec![going(0, 1, &[1]), going(1, 2, &[])]);
    networks.look(0);
    let path = [seen(0), seen(1), archived.clone()];
    assert!(
        networks.work.on_cycle(&path, Timestamp::UNIX_EPOCH).is_empty(),
        "nobody was reported yet"
    );
    networks.look(30);
    // Of an archived object with the name of a live one.
    let of_others = [archived.clone(), seen(0), archived.clone()];
    assert!(
        networks.work.on_cycle(&of_others, Timestamp::UNIX_EPOCH).is_empty(),
        "another one holds it"
    );
    let reported = networks.work.on_cycle(&path, Timestamp::UNIX_EPOCH);
    let with_path = |number| (at(number), "DeletionCycle", false);
    assert_eq!(said(&reported), [with_path(0), with_path(1)]);
    let message = |path: &[Key]| cycle_notice(path).message;
    assert_eq!(
        reported[0].notice.message,
        message(&[at(0), at(1), archived.key.clone()])
    );
    assert_eq!(
        reported[1].notice.message,
        message(&[at(1), archived.key.clone(), at(0)])
    );
    let from_archive = [archived, seen(0), seen(1)];
    assert!(
        networks.work.on_cycle(&from_archive, Timestamp::UNIX_EPOCH).is_empty(),
        "once"
    );
}

/// As if a name had one object: an archived one and one that was created after it may both be deleted.
#[test]
fn namesakes_are_told_apart_on_a_path_that_the_archive_knows() {
    let former = |number: usize| Seen {
        key: at(number),
        uid: "former".to_owned(),
    };
    let stage = || {
        let mut networks = Networks::new(vec![going(0, 1, &[1]), going(1, 2, &[])]);
        networks.look(0);
        networks.look(30);
        networks
    };
    let turned = |path: &[Seen]| said(&stage().work.on_cycle(path, Timestamp::UNIX_EPOCH));
    let is_found = |number| (at(number), "DeletionCycle", false);
    assert_eq!(
        turned(&[former(2), former(0), seen(1)]),
        [is_found(1)],
        "not the live one of the name"
    );
    assert!(
        turned(&[former(2), seen(0), former(1)]).is_empty(),
        "another one of the name holds it"
    );
    assert_eq!(
        turned(&[seen(0), seen(1), former(0)]),
        [is_found(0), is_found(1)],
        "held by a former one of a live name"
    );
}

#[test]
fn a_cycle_over_another_service_is_reported_once_its_service_says_that_it_is_one() {
    let holder = reference("y.example.com");
    let network = ReferenceName::new("Network", GROUP, "n").expect("a name");
    let nothing = |_: &mut Work, task: &Task, _| panic!("{:?}", task.step);
    let mut stage = Stage::new(std::slice::from_ref(&holder));
    stage
        .work
        .replayed(&KindName::new("y.example.com", "Cluster"), Vec::new());
    stage.look(0, &nothing);
    let answers = [
        (there(false, &[]), Some("DeletionBlocked")),
        (there(true, &[]), None),
        (there(true, std::slice::from_ref(&network)), Some("DeletionCycle")),
        (there(true, std::slice::from_ref(&network)), None),
    ];
    for (number, (answer, expected)) in (0_u64..).zip(answers) {
        let second = number * 30;
        assert_eq!(stage.work.next_holder(), Some(holder.clone()), "{number}");
        let now = stage.begun + Duration::from_secs(second);
        stage.work.found(holder.clone(), Some(answer), now);
        let reported: Vec<_> = [1, 2, 30]
            .iter()
            .flat_map(|more| stage.look(second + more, &nothing))
            .collect();
        let reasons: Vec<_> = reported.iter().map(|(reason, _)| *reason).collect();
        assert_eq!(reasons, expected.as_slice(), "{number}");
        if expected == Some("DeletionCycle") {
            let path = [super::network(), there(true, &[]).key];
            assert_eq!(reported[0].1, cycle_notice(&path).message);
        }
    }
}

/// As if only the first look counted: what another service deletes is reported by nobody here.
#[test]
fn a_cycle_over_an_object_that_is_followed_is_reported_though_it_closed_after_the_first_report() {
    let project = key_in("y.example.com", "Project", "p");
    let seen = |version, state, held_by: &[usize]| Object {
        version: ResourceVersion(version),
        state,
        references: held_by.iter().map(|holder| name(*holder)).collect(),
        ..deleting(project.clone(), "p")
    };
    let mut held = going(0, 1, &[]);
    held.references
        .insert(seen(1, DeletionState::Live, &[]).reference_name().expect("a name"));
    let mut networks = Networks::new(vec![held]);
    networks.work.setup.foreign.insert(project.kind.clone());
    networks.work.seen(seen(1, DeletionState::Live, &[0]), networks.begun);
    networks.look(0);
    assert_eq!(said(&networks.look(30)), [(at(0), "DeletionBlocked", false)]);
    networks
        .work
        .seen(seen(2, DeletionState::Deleting, &[0]), networks.begun);
    let reported = networks.look(31);
    assert_eq!(said(&reported), [(at(0), "DeletionCycle", false)]);
    assert_eq!(reported[0].notice, cycle_notice(&[at(0), project.clone()]));
    networks
        .work
        .seen(seen(3, DeletionState::Deleting, &[0]), networks.begun);
    assert!(networks.look(300).is_empty(), "once");
}

fn said_before(overdue: &[Overdue]) -> Vec<bool> {
    overdue.iter().map(|one| one.is_reported).collect()
}

/// As if a cycle were lost for good because the archive did not answer when it was asked for it.
#[test]
fn the_archive_is_asked_again_after_a_while_if_it_has_not_answered() {
    let mut networks = Networks::new(vec![going(0, 1, &[])]);
    let blocked = [(at(0), "DeletionBlocked", true)];
    networks.look(0);
    let first = networks.look(30);
    assert_eq!((said(&first), said_before(&first)), (blocked.to_vec(), vec![false]));
    let then = networks.begun + Duration::from_secs(30);
    networks.work.search_again([&at(0)], then);
    assert!(networks.look(59).is_empty());
    let second = networks.look(60);
    assert_eq!((said(&second), said_before(&second)), (blocked.to_vec(), vec![true]));
    assert!(networks.look(300).is_empty(), "once");
    networks.work.search_again([&at(0)], then);
    let turned = networks.work.on_cycle(&[seen(0)], Timestamp::UNIX_EPOCH);
    assert_eq!(said(&turned), [(at(0), "DeletionCycle", false)]);
    assert!(networks.look(301).is_empty(), "it is known to be on a cycle");
}

/// As if the archive were asked at the first report alone.
#[test]
fn the_archive_is_asked_again_once_another_service_deletes_what_waits_for_an_object() {
    let project = key_in("y.example.com", "Project", "p");
    let project_seen = |version, state| Object {
        version: ResourceVersion(version),
        state,
        references: BTreeSet::from([name(0)]),
        ..deleting(project.clone(), "p")
    };
    let mut networks = Networks::new(vec![going(0, 1, &[])]);
    networks.work.setup.foreign.insert(project.kind.clone());
    networks.work.seen(project_seen(1, DeletionState::Live), networks.begun);
    networks.look(0);
    assert_eq!(said_before(&networks.look(30)), [false]);
    networks
        .work
        .seen(project_seen(2, DeletionState::Deleting), networks.begun);
    let reported = networks.look(31);
    assert_eq!(said(&reported), [(at(0), "DeletionBlocked", true)]);
    assert_eq!(said_before(&reported), [true]);
    assert!(networks.look(300).is_empty(), "once");
}

/// As if the object with which a path begins counted as reported with it though another search for the same object was
/// due by then, which the archive does not answer.
#[test]
fn the_object_of_a_search_is_reported_with_the_path_whatever_else_is_to_be_said_of_it() {
    let mut networks = Networks::new(vec![going(0, 1, &[])]);
    let mut notices = Notices::default();
    networks.look(0);
    for overdue in networks.look(30) {
        notices.add_overdue(overdue);
    }
    let search = notices.begin_search().expect("it may be on a cycle");
    networks.work.search_again([&at(0)], networks.begun);
    for overdue in networks.look(31) {
        notices.add_overdue(overdue);
    }
    let found = [seen(0), seen(1)];
    for overdue in networks.work.on_cycle(&found, Timestamp::UNIX_EPOCH) {
        notices.add_overdue(overdue);
    }
    let path = cycle_notice(&[at(0), at(1)]);
    notices.end_search(search.object, Some(path.clone()));
    assert!(notices.begin_search().is_none(), "it is known");
    let Some((object, Due::Notice(notice))) = notices.begin() else {
        panic!("nothing is to be said");
    };
    assert_eq!((object.key, notice), (at(0), path));
    assert!(notices.begin().is_none(), "once");
    assert!(networks.look(300).is_empty(), "once");
}

/// As if only what is live were looked at again: those before and after the object may both be archived.
#[test]
fn what_may_be_archived_is_looked_at_again_once_another_service_deletes_an_object_that_waits_for_it() {
    let project = key_in("y.example.com", "Project", "p");
    let mut networks = Networks::new(vec![going(2, 3, &[0])]);
    networks.work.setup.foreign.insert(project.kind.clone());
    let mut looked_at = |version, state, held_by: &[usize]| {
        let seen = Object {
            version: ResourceVersion(version),
            state,
            references: held_by.iter().map(|holder| name(*holder)).collect(),
            ..deleting(project.clone(), "p")
        };
        networks.work.seen(seen, networks.begun);
        networks.work.archived_on_cycles().into_iter().collect::<Vec<_>>()
    };
    assert!(
        looked_at(1, DeletionState::Live, &[1]).is_empty(),
        "it waits for nobody"
    );
    assert_eq!(looked_at(2, DeletionState::Deleting, &[1]), ["n1"]);
    assert!(looked_at(3, DeletionState::Deleting, &[1]).is_empty(), "that is known");
    assert_eq!(
        looked_at(4, DeletionState::Deleting, &[1, 2]),
        ["n0", "n1"],
        "it waits for one in the cluster, and that one for another"
    );
    assert!(
        looked_at(5, DeletionState::Deleting, &[2]).is_empty(),
        "it waits for less"
    );
}
