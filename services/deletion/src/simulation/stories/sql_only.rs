//! Objects of SQL-only kinds among objects of the cluster and archived ones.

use std::collections::BTreeSet;
use std::time::Duration;

use super::calm;
use crate::object::Key;
use crate::simulation::Play;

impl Play {
    /// The only controller and those beside it work until something is written. Whether something was.
    fn next_effect(&mut self) -> bool {
        let before = self.world.servers.version;
        for _ in 0..200 {
            let keys: Vec<Key> = self.world.servers.objects.keys().cloned().collect();
            for key in &keys {
                self.world.others(key, true);
            }
            if self.world.servers.version == before {
                self.controllers[0].wait(Duration::from_secs(1));
                self.little(0);
            }
            self.hold().expect("nothing is broken");
            if self.world.servers.version > before {
                return true;
            }
        }
        false
    }
}

/// An identity that is only in SQL, of a project in the cluster. Of its networks, one is in the cluster and one is
/// archived.
struct Between {
    play: Play,
    project: Key,
    identity: Key,
    network: Key,
    /// Those of the identity, of its network in the cluster, and of the archived one.
    uids: [String; 3],
}

impl Between {
    /// The identity is deleted, or its project.
    fn deleted(with_project: bool) -> Self {
        let mut play = calm(false);
        play.world.services.sql_only_kinds = BTreeSet::from(["Identity"]);
        let project = play.with("Project", "a", &[]);
        let identity = play.with("Identity", "a", &[("project", "a")]);
        let [archived, network] = ["a", "b"].map(|name| play.with("Network", name, &[("identity", "a")]));
        play.settled();
        let uids = [&identity, &network, &archived].map(|key| play.world.servers.objects[key].uid.clone());
        play.evict(&archived);
        let rows = play
            .world
            .archives
            .references
            .iter()
            .filter(|(held, _)| *held == uids[0]);
        assert_eq!(rows.count(), 1, "the archived network holds it by a row");
        play.delete(if with_project { &project } else { &identity });
        Self {
            play,
            project,
            identity,
            network,
            uids,
        }
    }

    /// All that follows has gone in its order, and nothing else has.
    fn judge(mut self, with_project: bool) {
        self.play.settled();
        let play = &self.play;
        assert!(play.erased(&self.identity) && play.erased(&self.network));
        let ends = self.uids.each_ref().map(|uid| play.world.judge.ends.get(uid));
        let [identity, network, archived] = ends;
        assert!(network.is_some() && network < identity, "{ends:?}");
        assert!(archived.is_some() && archived < identity, "{ends:?}");
        assert!(play.world.archives.references.is_empty());
        assert_eq!(play.erased(&self.project), with_project);
        if let Some(project) = play.world.servers.objects.get(&self.project) {
            assert!(!project.terminating && project.references().count() == 0);
        }
    }
}

/// As if it did not wait for a holder on the other side, or a process that dies left out something.
#[test]
fn an_sql_only_object_goes_after_its_live_and_archived_holders_whenever_the_process_dies() {
    for with_project in [false, true] {
        for effects in 0..30 {
            let mut once = Between::deleted(with_project);
            for _ in 0..effects {
                once.play.next_effect();
            }
            once.play.crash(0);
            once.judge(with_project);
        }
        let (mut often, mut crashes) = (Between::deleted(with_project), 0);
        while often.play.next_effect() {
            often.play.crash(0);
            crashes += 1;
            assert!(crashes < 100, "it goes on for ever");
        }
        assert!(crashes > 5, "it dies after each of the writes");
        often.judge(with_project);
    }
}

/// As if the Deleting annotation was left to an ingester, or what is deleted waited for one.
#[test]
fn an_sql_only_object_goes_without_an_ingester() {
    let mut play = calm(false);
    play.world.services.sql_only_kinds = BTreeSet::from(["Project"]);
    let bare = play.with("Project", "a", &[]);
    play.delete(&bare);
    assert!(play.erased(&bare), "it has no finalizer");
    let asked = play.with("Project", "b", &[]);
    play.settled();
    assert_eq!(
        play.world.servers.objects[&asked].finalizers.len(),
        1,
        "it has the deletion finalizer"
    );
    let written = play.world.write(&asked, None, None, |object| {
        (object.requested, object.asked) = (true, true);
    });
    written.expect("it is there");
    play.settled();
    assert!(play.erased(&asked));
}
