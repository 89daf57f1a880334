//! Deletions of archived objects that others hold, live and archived ones.

use std::collections::BTreeMap;

use kindex_model::deletion::Phase;
use kindex_model::reference_name::ReferenceName;

use super::calm;
use crate::decide::Seen;
use crate::object::Key;
use crate::simulation::{Bug, Play};

/// All of these.
pub(in super::super) fn all(bug: Bug) -> Result<(), String> {
    delete_with_holders(bug)?;
    keep_the_name(bug)?;
    change_while_read(bug)?;
    change_before(bug)?;
    keep_what_is_owned(bug)?;
    wait_for_each_other(bug)?;
    record_late(bug)?;
    clean_up_what_is_deleted_with_it(bug)?;
    clean_up_over_crashes(bug)
}

#[test]
fn an_archived_object_goes_last_and_takes_along_what_cascades() {
    all(Bug::None).expect("nothing is broken");
}

#[test]
fn archived_objects_that_wait_for_each_other_go_once_one_of_their_references_is_released() {
    wait_for_each_other(Bug::None).expect("nothing is broken");
}

#[test]
fn an_archived_object_goes_once_what_it_has_outside_is_gone_whenever_the_process_dies() {
    clean_up_what_is_deleted_with_it(Bug::None).expect("nothing is broken");
    clean_up_over_crashes(Bug::None).expect("nothing is broken");
}

impl Play {
    fn uid_of_archived(&self, key: &Key) -> Option<String> {
        let mut rows = self.world.archives.rows.values().filter(|row| !row.deleted);
        rows.find(|row| row.object.key == *key)
            .map(|row| row.object.uid.clone())
    }

    fn archived(&mut self, kind: &str, name: &str, named: &[(&'static str, &str)]) -> Key {
        let key = self.with(kind, name, named);
        self.settled();
        self.evict(&key);
        key
    }

    /// A user deletes an archived object.
    pub(super) fn delete_archived(&mut self, key: &Key) {
        let uid = self.uid_of_archived(key).expect("it is archived");
        let mut archived = self.world.archives.rows.iter().filter(|(_, row)| !row.deleted);
        let at = archived.position(|(other, _)| *other == uid).expect("it is there");
        self.world.drop_archived(at);
    }

    /// A live object holds all that is archived and that it names.
    fn hold_all(&mut self) {
        for choice in 0..8 {
            self.world.hold_archived(choice);
        }
    }

    fn is_archived(&self, key: &Key) -> bool {
        self.uid_of_archived(key).is_some()
    }

    fn phase_of_archived(&self, key: &Key) -> Option<Phase> {
        let uid = self.uid_of_archived(key)?;
        self.world.archives.rows[&uid].object.phase
    }

    /// Somebody places the reference of an archived object on another one by hand. The row.
    fn place_by_hand(&mut self, target: &Key, holder: &Key) -> (String, ReferenceName) {
        let [target, holder] = [target, holder].map(|key| self.uid_of_archived(key).expect("it is archived"));
        let holder = self.world.archives.rows[&holder].object.reference();
        let row = (target, ReferenceName::of_finalizer(&holder).expect("a reference"));
        self.world.archives.references.insert(row.clone());
        self.world.servers.version += 1;
        row
    }

    /// The cycle that a tombstone is on.
    pub(super) fn cycle_of(&mut self, key: &Key) -> Option<Vec<Seen>> {
        let seen = Seen {
            key: key.clone(),
            uid: self.uid_of_archived(key)?,
        };
        self.controllers[0].cycle_of(&mut self.world, seen)
    }

    /// So many requests of a walk.
    fn requests(&mut self, at: usize, number: usize) {
        for _ in 0..number {
            self.controllers[at].walk(&mut self.world, 0, self.bug);
        }
    }
}

fn demand(is_so: bool, what: &str) -> Result<(), String> {
    match is_so {
        true => Ok(()),
        false => Err(what.to_owned()),
    }
}

/// An archived network with a live cluster, and an archived one that a budget holds. Their identity is live.
fn delete_with_holders(bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    let identity = play.with("Identity", "a", &[]);
    let network = play.with("Network", "a", &[("identity", "a")]);
    let kept = play.archived("Cluster", "a", &[("network", "a")]);
    play.evict(&network);
    let budget = play.with("Budget", "a", &[("cluster", "a")]);
    let cluster = play.with("Cluster", "b", &[("network", "a")]);
    play.settled();
    play.hold_all();
    play.bug = bug;
    play.delete_archived(&network);
    play.settle()?;
    demand(play.erased(&cluster), "the live cluster goes with its network")?;
    demand(
        play.is_archived(&kept) && play.is_archived(&network),
        "the budget holds the cluster",
    )?;
    let waits = play.phase_of_archived(&network) == Some(Phase::Deleting);
    demand(waits, "the network waits in its first phase")?;
    demand(
        play.phase_of_archived(&kept) == Some(Phase::Deleting),
        "the cluster waits too",
    )?;
    play.delete(&budget);
    play.settle()?;
    demand(
        !play.is_archived(&kept) && !play.is_archived(&network),
        "both go after it",
    )?;
    demand(
        play.world.archives.references.is_empty(),
        "nobody holds anything any more",
    )?;
    demand(!play.erased(&identity), "nobody has deleted the identity")?;
    play.hold()
}

/// Another network takes the name of an archived one that is deleted then: its cluster stays.
fn keep_the_name(bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    let network = play.with("Network", "a", &[]);
    let old = play.archived("Cluster", "a", &[("network", "a")]);
    play.evict(&network);
    play.with("Network", "a", &[]);
    let cluster = play.with("Cluster", "b", &[("network", "a")]);
    play.settled();
    play.bug = bug;
    play.delete_archived(&network);
    play.settle()?;
    demand(!play.erased(&cluster), "the cluster is on the new network")?;
    demand(play.is_archived(&old), "which of the two it used is not known")?;
    play.hold()
}

/// An archived network that a live cluster holds, and another one.
fn two_networks(play: &mut Play) -> (Key, Key) {
    let network = play.archived("Network", "a", &[]);
    play.with("Network", "b", &[]);
    let cluster = play.with("Cluster", "a", &[("network", "a")]);
    play.settled();
    play.hold_all();
    (network, cluster)
}

fn use_network(play: &mut Play, cluster: &Key, network: &str) {
    let written = play.world.write(cluster, None, None, |cluster| {
        cluster.named = BTreeMap::from([("network", network.to_owned())]);
    });
    written.expect("it is there");
}

/// Somebody lets a cluster use another network while its own one is deleted.
fn change_while_read(bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    let (network, cluster) = two_networks(&mut play);
    play.bug = bug;
    play.delete_archived(&network);
    while play.phase_of_archived(&network).is_none() && bug != Bug::LeaveTombstones {
        play.requests(0, 1);
        play.hold()?;
    }
    // It begins, asks for the name, reads the holders, and then the live ones.
    play.requests(0, 4);
    use_network(&mut play, &cluster, "b");
    play.settle()?;
    demand(!play.erased(&cluster), "it uses the network no more")?;
    play.hold()
}

/// A cluster uses another network before its own one is deleted. A controller is about to release that when the cluster
/// uses it again, and then the other one for good.
fn change_before(bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    let (network, cluster) = two_networks(&mut play);
    use_network(&mut play, &cluster, "b");
    play.settled();
    play.bug = bug;
    play.delete_archived(&network);
    // It begins, asks for the name, reads the holders, and then the live ones.
    play.requests(0, 4);
    use_network(&mut play, &cluster, "a");
    play.requests(0, 3);
    play.hold()?;
    use_network(&mut play, &cluster, "b");
    play.settle()?;
    demand(!play.is_archived(&network), "nobody uses the network any more")?;
    demand(!play.erased(&cluster), "the cluster is on the other one")?;
    play.hold()
}

/// A server of an archived cluster goes when that drains, and not while a budget holds the cluster.
fn keep_what_is_owned(bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    let cluster = play.with("Cluster", "a", &[]);
    play.settled();
    let server = play.archived("Server", "a", &[("cluster", "a")]);
    let budget = play.archived("Budget", "a", &[("cluster", "a")]);
    play.evict(&cluster);
    play.bug = bug;
    play.delete_archived(&cluster);
    play.settle()?;
    demand(play.is_archived(&server), "the cluster does not drain yet")?;
    play.delete_archived(&budget);
    play.settle()?;
    demand(!play.is_archived(&server) && !play.is_archived(&cluster), "all go")?;
    play.hold()
}

/// Three archived networks hold each other, and a fourth one only waits for them. All are deleted, and go once one of
/// the references is released.
fn wait_for_each_other(bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    let networks = ["a", "b", "c"].map(|name| play.archived("Network", name, &[]));
    let [a, b, c] = &networks;
    play.place_by_hand(a, b);
    play.place_by_hand(b, c);
    let closing = play.place_by_hand(c, a);
    let waits = play.archived("Network", "d", &[]);
    play.place_by_hand(&waits, a);
    play.bug = bug;
    for key in networks.iter().chain([&waits]) {
        play.delete_archived(key);
    }
    play.settle()?;
    let path = play.cycle_of(a);
    demand(
        path.is_some_and(|path| Seen::keys(&path) == networks),
        "the path names all three",
    )?;
    demand(play.cycle_of(&waits).is_none(), "the fourth one holds none of them")?;
    play.world.archives.references.remove(&closing);
    play.world.servers.version += 1;
    play.settle()?;
    let mut left = networks.iter().chain([&waits]);
    demand(!left.any(|key| play.is_archived(key)), "all go")?;
    play.hold()
}

/// Of two controllers, one records the first phase when the other one is further already.
fn record_late(bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    play.setting.twofold = true;
    play.controllers.clear();
    play.employ();
    let cluster = play.with("Cluster", "a", &[]);
    play.settled();
    play.archived("Server", "a", &[("cluster", "a")]);
    let budget = play.archived("Budget", "a", &[("cluster", "a")]);
    play.evict(&cluster);
    play.bug = bug;
    play.delete_archived(&cluster);
    // It begins, and all that is left to do is to record the phase.
    play.requests(0, 5);
    play.delete_archived(&budget);
    play.drain_queue(1)?;
    play.requests(0, 1);
    play.hold()?;
    play.settle()?;
    demand(!play.is_archived(&cluster), "it goes in the end")
}

/// An archived cluster of an archived network, with machines outside. The cluster is deleted with it, and the network
/// waits for it as long as a machine is there.
fn clean_up_what_is_deleted_with_it(bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    let network = play.with("Network", "a", &[]);
    let cluster = play.archived("Cluster", "a", &[("network", "a")]);
    play.evict(&network);
    play.bug = bug;
    play.delete_archived(&network);
    for _ in 0..8 {
        // Nobody lets machines go meanwhile.
        play.drain_queue(0)?;
    }
    demand(
        play.is_archived(&cluster) && play.is_archived(&network),
        "machines are left",
    )?;
    let drains = play.phase_of_archived(&cluster) == Some(Phase::Draining);
    demand(drains, "the cluster drains")?;
    play.settle()?;
    demand(!play.is_archived(&cluster) && !play.is_archived(&network), "both go")?;
    play.hold()
}

/// A process dies after each request for a cluster that nobody holds: also between the call of its cleanup and what is
/// made of the answer.
fn clean_up_over_crashes(bug: Bug) -> Result<(), String> {
    for requests in 0..20 {
        let mut play = calm(false);
        let cluster = play.archived("Cluster", "a", &[]);
        play.bug = bug;
        play.delete_archived(&cluster);
        demand(play.is_archived(&cluster), "it is cleaned up before")?;
        play.requests(0, requests);
        play.hold()?;
        play.crash(0);
        play.settle()?;
        demand(!play.is_archived(&cluster), "it goes in the end")?;
        play.hold()?;
    }
    Ok(())
}
