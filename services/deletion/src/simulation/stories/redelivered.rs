//! Events that come once more: whoever has heard of a change dies before it has dealt with that, and whoever publishes
//! an end dies before that is noted.

use super::{calm, project};
use crate::object::Key;
use crate::simulation::world::Event;
use crate::simulation::{Bug, Play};

impl Play {
    /// Each process hears of everything, and then of all of it again.
    fn deliver_again(&mut self) {
        for controller in &mut self.controllers {
            for kind in controller.kinds() {
                controller.hear_all(&self.world, &kind, self.bug);
                let reports = self.world.servers.log.get(&kind).map_or(0, Vec::len);
                for back in (1..=reports).rev() {
                    controller.hear(&self.world, &kind, Some(back), self.bug);
                }
            }
        }
    }

    /// An event about an object is published. It has no more than the name: other services read the object.
    fn publish(&mut self, key: &Key) {
        let log = self.world.servers.log.entry(key.kind.clone()).or_default();
        log.push(Event::Archived(key.clone()));
    }
}

/// As if an event counted as a change of its own.
#[test]
fn an_event_that_comes_again_after_a_crash_changes_nothing() {
    for divided in [false, true] {
        for steps in 0..40 {
            let mut play = calm(divided);
            let keys = project(&mut play);
            let before = play.world.servers.version;
            play.delete(&keys[4]);
            let all = 0..play.controllers.len();
            for _ in 0..steps {
                all.clone().for_each(|at| play.little(at));
            }
            all.for_each(|at| play.crash(at));
            play.deliver_again();
            play.settled();
            for key in &keys {
                assert!(play.erased(key), "{divided}, {steps}: {key}");
                assert_eq!(play.needless_writes(key, before), 0, "{divided}, {steps}: {key}");
            }
            let through = play.world.servers.version;
            play.deliver_again();
            play.settled();
            assert_eq!(play.world.servers.version, through, "{divided}, {steps}");
        }
    }
}

/// As if an end were believed before its service shows it, or counted twice.
#[test]
fn an_end_that_is_published_before_it_comes_and_again_after_it_does_no_harm() {
    for is_archived in [false, true] {
        for steps in 0..40 {
            publish_again(is_archived, steps);
        }
    }
}

/// With a project, in the cluster or archived, goes an identity of another service, which is held itself. After any
/// number of steps of its deletion, its end is published, and published again once all processes have died.
fn publish_again(is_archived: bool, steps: usize) {
    let mut play = calm(true);
    play.world.archives.across = true;
    // The first ones did not know of this.
    play.controllers.clear();
    play.employ();
    let project = play.with("Project", "a", &[]);
    play.settled();
    let uid = play.world.servers.objects[&project].uid.clone();
    if is_archived {
        play.evict(&project);
    }
    let identity = play.with("Identity", "a", &[("project", "a")]);
    let network = play.with("Network", "a", &[("identity", "a")]);
    play.settled();
    let uids = [&network, &identity].map(|key| play.world.servers.objects[key].uid.clone());
    play.publish(&project);
    play.settled();
    assert!(
        !play.world.servers.objects[&identity].terminating,
        "the project is there"
    );
    match is_archived {
        true => play.world.drop_row(&uid),
        false => play.delete(&project),
    }
    let all = 0..play.controllers.len();
    for at in (0..steps).flat_map(|_| all.clone()) {
        play.little(at);
        play.controllers[at].walk(&mut play.world, 0, Bug::None);
    }
    play.publish(&project);
    all.for_each(|at| play.crash(at));
    play.publish(&project);
    play.rest().expect("nothing is broken");
    let ends = [&uids[0], &uids[1], &uid].map(|uid| play.world.judge.ends.get(uid));
    assert!(
        ends[0].is_some() && ends.is_sorted_by(|one, next| one < next),
        "{is_archived}, {steps}: {ends:?}"
    );
    let is_left = play.world.servers.objects.contains_key(&project) || play.world.archives.is_archived(&uid);
    assert!(
        !is_left && play.erased(&identity) && play.erased(&network),
        "{is_archived}, {steps}"
    );
    let through = play.world.servers.version;
    play.publish(&project);
    play.settled();
    assert_eq!(play.world.servers.version, through, "{is_archived}, {steps}");
}
