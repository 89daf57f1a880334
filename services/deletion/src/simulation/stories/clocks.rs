//! Clocks that are wrong: the time of a deletion says nothing of who goes first.

use jiff::Timestamp;

use super::{calm, project};
use crate::object::Key;
use crate::simulation::Play;

/// Behind every other clock, ahead of every other clock, and in between.
const TIMES: [Timestamp; 3] = [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX];

/// Every two of them.
fn two_times() -> impl Iterator<Item = (Timestamp, Timestamp)> {
    TIMES.into_iter().flat_map(|one| TIMES.map(|other| (one, other)))
}

impl Play {
    fn delete_at(&mut self, key: &Key, time: Timestamp) {
        let deleted = self.world.write(key, None, None, |object| {
            (object.terminating, object.asked, object.deleted_at) = (true, true, time);
        });
        deleted.expect("it is there");
    }

    /// As which one each of these was through, after all of them were deleted.
    fn ends<const N: usize>(&mut self, keys: &[Key; N], deleted: &[(usize, Timestamp)]) -> [usize; N] {
        let uids = keys.each_ref().map(|key| self.world.servers.objects[key].uid.clone());
        for (at, time) in deleted {
            self.delete_at(&keys[*at], *time);
        }
        self.settled();
        assert!(keys.iter().all(|key| self.erased(key)), "{deleted:?}");
        uids.each_ref().map(|uid| self.world.judge.ends[uid])
    }
}

#[test]
fn whatever_the_clocks_say_holders_go_before_their_targets() {
    for ((holder_at, target_at), divided) in two_times().flat_map(|times| [false, true].map(|divided| (times, divided)))
    {
        let mut play = calm(divided);
        let keys = project(&mut play);
        let [cluster, network, group, identity, project] = play.ends(&keys, &[(4, target_at), (0, holder_at)]);
        let in_order = cluster < network.min(group) && network.max(group) < identity && identity < project;
        assert!(in_order, "{holder_at} {target_at}");
    }
}

#[test]
fn whatever_the_clocks_say_an_owner_goes_after_what_it_owns() {
    for (owner_at, owned_at) in two_times() {
        let mut play = calm(false);
        let cluster = play.with("Cluster", "a", &[]);
        let server = play.with("Server", "a", &[("cluster", "a")]);
        play.settled();
        let [cluster, server] = play.ends(&[cluster, server], &[(0, owner_at), (1, owned_at)]);
        assert!(server < cluster, "{owner_at} {owned_at}");
    }
}
