//! A project that is deleted with all that is below it, where a request of a process is its last one, or gets no
//! answer: each one in turn, before it and after it.

use std::time::Duration;

use super::{calm, project};
use crate::object::Key;
use crate::simulation::Play;

/// More requests than the deletion takes.
const REQUESTS_MAX: usize = 2000;
/// A deletion of five objects takes more.
const REQUESTS_MIN: usize = 20;
/// Turns of each process within which everything is due that is to be asked again.
const TURNS: usize = 200;
/// Whether the answer to the last request is lost, or the process that sent it dies.
const FAILURES: [(bool, bool); 2] = [(false, true), (true, false)];

/// A project that is deleted, beside another one.
struct Deletion {
    play: Play,
    /// The cluster, the network, the server group, the identity and the project, with their uids.
    objects: [(Key, String); 5],
    other: Key,
    /// The version before the project was deleted.
    before: u64,
    /// Processes take turns.
    turn: usize,
}

impl Deletion {
    fn of_project(divided: bool) -> Self {
        let mut play = calm(divided);
        let other = play.with("Project", "b", &[]);
        let objects = project(&mut play).map(|key| {
            let uid = play.world.servers.objects[&key].uid.clone();
            (key, uid)
        });
        let before = play.world.servers.version;
        play.delete(&objects[4].0);
        Self {
            play,
            objects,
            other,
            before,
            turn: 0,
        }
    }

    /// The processes work until one of them has sent a request. Which one; nothing once none has any to send. Each has
    /// heard of everything before it decides: what a service releases a second time, its own API would not write.
    fn next_request(&mut self, lost: bool) -> Option<usize> {
        for _ in 0..TURNS * self.play.controllers.len() {
            let Play {
                world,
                controllers,
                bug,
                ..
            } = &mut self.play;
            let keys: Vec<Key> = world.servers.objects.keys().cloned().collect();
            keys.iter().for_each(|key| world.others(key, true));
            world.remove_outside();
            let at = self.turn % controllers.len();
            self.turn += 1;
            let controller = &mut controllers[at];
            controller.wait(Duration::from_secs(1));
            for kind in controller.kinds() {
                controller.hear_all(world, &kind, *bug);
            }
            controller.decide(0, *bug);
            if controller.has_requests() {
                controller.send(world, 0, lost, true, *bug);
                self.play.hold().expect("nothing is broken");
                return Some(at);
            }
        }
        None
    }

    /// So many requests are sent. Of the last one, the answer may be lost, and the process that sent it may die; before
    /// the first one, all of them.
    fn fail_after(&mut self, sent: usize, lost: bool, dies: bool) {
        let mut last = None;
        for number in 1..=sent {
            last = self.next_request(lost && number == sent);
        }
        if dies {
            let all = 0..self.play.controllers.len();
            let dying = last.map_or(all, |at| at..at + 1);
            dying.for_each(|at| self.play.crash(at));
        }
    }

    /// All have gone in their order, no write has changed nothing, and the other project is as it was.
    fn judge(mut self, when: &str) {
        self.play.settled();
        let world = &self.play.world;
        let [cluster, network, group, identity, project] =
            self.objects.each_ref().map(|(_, uid)| world.judge.ends.get(uid));
        assert!(
            cluster.is_some() && cluster < network.min(group),
            "{when}: {:?}",
            world.judge.ends
        );
        assert!(
            network.max(group) < identity && identity < project,
            "{when}: {:?}",
            world.judge.ends
        );
        let left: Vec<&Key> = world.servers.objects.keys().collect();
        assert_eq!(left, [&self.other], "{when}");
        let other = &world.servers.objects[&self.other];
        assert!(
            !other.terminating && other.version <= self.before,
            "{when}: nobody writes to it"
        );
        assert!(world.archives.references.is_empty(), "{when}");
        for (key, _) in &self.objects {
            assert_eq!(self.play.needless_writes(key, self.before), 0, "{when}: {key}");
        }
    }
}

/// As if a process left out what it does not know of, or did once more what was done.
#[test]
fn a_project_goes_in_its_order_whichever_request_is_the_last_one_of_its_process() {
    for divided in [false, true] {
        let (mut steady, mut requests) = (Deletion::of_project(divided), 0);
        while steady.next_request(false).is_some() {
            requests += 1;
            assert!(requests < REQUESTS_MAX, "it goes on for ever");
        }
        assert!(requests >= REQUESTS_MIN, "{requests} requests");
        steady.judge("nothing fails");
        for sent in 0..=requests {
            for (lost, dies) in FAILURES {
                let mut failing = Deletion::of_project(divided);
                failing.fail_after(sent, lost, dies);
                failing.judge(&format!("after {sent} of {requests}, lost: {lost}, dies: {dies}"));
            }
        }
    }
}

/// As if the next process relied on what the one before had read.
#[test]
fn a_project_goes_in_its_order_where_each_process_dies_after_its_first_write() {
    for divided in [false, true] {
        let (mut often, mut requests) = (Deletion::of_project(divided), 0);
        let mut written = often.play.world.servers.version;
        while let Some(at) = often.next_request(false) {
            // One that only reads would be sent again and again.
            if often.play.world.servers.version > written {
                often.play.crash(at);
                written = often.play.world.servers.version;
            }
            requests += 1;
            assert!(requests < REQUESTS_MAX, "it goes on for ever");
        }
        often.judge("each process dies");
    }
}
