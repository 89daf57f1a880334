//! References that somebody takes off by hand, and no holder has released.

use super::calm;
use crate::decide::{RefusalReason, Step};
use crate::object::Key;
use crate::simulation::Play;

impl Play {
    fn take_off_by_hand(&mut self, target: &Key, holder: &Key) {
        let reference = self.world.servers.objects[holder].reference();
        let written = self.world.write(target, None, None, |target| {
            target.finalizers.retain(|finalizer| *finalizer != reference);
        });
        written.expect("it is there");
    }

    fn is_held_by(&self, target: &Key, holder: &Key) -> bool {
        let reference = self.world.servers.objects[holder].reference();
        self.world.servers.objects[target].has_finalizer(&reference)
    }
}

/// A budget that keeps a cluster.
fn budget(play: &mut Play) -> [Key; 2] {
    let cluster = play.with("Cluster", "a", &[]);
    let budget = play.with("Budget", "a", &[("cluster", "a")]);
    play.settled();
    [budget, cluster]
}

/// As if a reference that is not there were released.
#[test]
fn what_was_taken_off_by_hand_is_placed_again_and_keeps_its_target() {
    for divided in [false, true] {
        let mut play = calm(divided);
        let [budget, cluster] = budget(&mut play);
        play.take_off_by_hand(&cluster, &budget);
        play.settled();
        assert!(play.is_held_by(&cluster, &budget), "{divided}");
        play.delete(&cluster);
        play.settled();
        assert!(play.is_held_by(&cluster, &budget), "{divided}: it waits");
        play.delete(&budget);
        play.settled();
        assert!(play.erased(&budget) && play.erased(&cluster), "{divided}");
    }
}

/// Kubernetes takes no new finalizer then. The holder stays, and says that its target is gone.
#[test]
fn what_is_taken_off_by_hand_while_its_target_is_deleted_takes_no_holder_along() {
    for divided in [false, true] {
        let mut play = calm(divided);
        let [budget, cluster] = budget(&mut play);
        play.delete(&cluster);
        play.settled();
        assert!(play.is_held_by(&cluster, &budget), "{divided}: it waits");
        play.take_off_by_hand(&cluster, &budget);
        play.settled();
        assert!(
            play.erased(&cluster) && !play.world.servers.objects[&budget].terminating,
            "{divided}"
        );
        let Step::Rest(refused) = play.decided(&budget) else {
            panic!("it rests");
        };
        let said: Vec<_> = refused.iter().map(|one| (&one.target, one.why)).collect();
        assert_eq!(said, [(&cluster, RefusalReason::Absent)], "{divided}");
    }
}
