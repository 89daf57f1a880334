//! Objects that wait for each other in a cycle: such as own each other, and such as are archived in part.

use kindex_model::reference_name::ReferenceName;

use super::calm;
use crate::decide::Seen;
use crate::notice::cycle_notice;
use crate::object::Key;
use crate::simulation::Play;

#[test]
fn objects_that_own_each_other_wait_and_the_path_names_both() {
    let mut play = calm(false);
    let one = play.with("Tree", "a", &[("parent", "b")]);
    let other = play.with("Tree", "b", &[("parent", "a")]);
    play.settled();
    for key in [&one, &other] {
        play.delete(key);
    }
    play.settled();
    assert!(!play.erased(&one) && !play.erased(&other));
    let path = play.controllers[0]
        .graph
        .search_cycle(&one, |_| None)
        .cycle
        .expect("a cycle");
    assert_eq!(Seen::keys(&path), [one, other]);
}

/// One of them is deleted, and takes the others along. They all name each other still when an operator drops one of the
/// references: as if a name held what has no reference, so that nobody could end the wait.
#[test]
fn objects_of_a_cycle_go_once_any_of_their_references_is_dropped() {
    for dropped in 0..3 {
        let mut play = calm(false);
        let named = [("a", "b"), ("b", "c"), ("c", "a")];
        let trees = named.map(|(name, parent)| play.with("Tree", name, &[("parent", parent)]));
        play.settled();
        play.delete(&trees[0]);
        play.settled();
        let [a, b, c] = trees.clone();
        let path = play.controllers[0]
            .graph
            .search_cycle(&a, |_| None)
            .cycle
            .expect("a cycle");
        assert_eq!(Seen::keys(&path), [a, c, b]);

        let reference = play.world.servers.objects[&trees[dropped]].reference();
        let target = &trees[(dropped + 1) % 3];
        let written = play.world.write(target, None, None, |tree| {
            tree.finalizers.retain(|finalizer| *finalizer != reference);
        });
        written.expect("it is there");
        play.settled();
        for tree in &trees {
            assert!(play.erased(tree), "{tree} without {reference} on {target}");
        }
    }
}

/// A live network that a second one holds, which an archived one holds out of the archive. Once the first one is
/// deleted, it holds the archived one, as a fourth one does all the time.
struct Cycle {
    play: Play,
    networks: [Key; 3],
    uids: [String; 4],
}

impl Cycle {
    fn new() -> Self {
        let mut play = calm(false);
        let networks = ["a", "b", "c", "d"].map(|name| play.with("Network", name, &[]));
        play.settled();
        let uids = networks
            .each_ref()
            .map(|key| play.world.servers.objects[key].uid.clone());
        let second = play.world.servers.objects[&networks[1]].reference();
        for key in &networks[2..] {
            play.evict(key);
        }
        let held = play.world.write(&networks[0], None, None, |network| {
            network.finalizers.push(second.clone());
        });
        held.expect("it is there");
        let [a, b, c, _] = networks;
        let mut cycle = Self {
            play,
            networks: [a, b, c],
            uids,
        };
        cycle.place_row(1, 2);
        cycle.place_row(2, 3);
        cycle
    }

    fn place_row(&mut self, held: usize, holder: usize) {
        let group = &self.networks[0].kind.group;
        let name = ReferenceName::new("Network", group, &self.uids[holder]).expect("a name");
        let world = &mut self.play.world;
        world.archives.references.insert((self.uids[held].clone(), name));
        world.servers.version += 1;
    }

    fn delete(&mut self, at: usize) {
        match at {
            2 => self.play.delete_archived(&self.networks[at]),
            _ => self.play.delete(&self.networks[at]),
        }
        if at == 0 {
            self.place_row(2, 0);
        }
    }

    /// Time passes, in which all is reported. The walk reports the archived one on its own.
    fn look(&mut self) {
        self.play.look_for(0, 100).expect("nothing is broken");
        if let Some(path) = self.play.cycle_of(&self.networks[2]) {
            self.play.controllers[0].report_cycle(&path);
        }
        self.play.look_for(0, 20).expect("nothing is broken");
    }
}

#[test]
fn all_that_is_live_on_a_cycle_is_reported_with_its_path_whoever_is_deleted_last() {
    for last in 0..3 {
        let mut cycle = Cycle::new();
        for at in (0..3).filter(|at| *at != last) {
            cycle.delete(at);
        }
        cycle.look();
        for key in &cycle.networks[..2] {
            let events = cycle.play.world.events_about(key);
            let waits = *key != cycle.networks[last];
            assert_eq!(events.len(), usize::from(waits), "{last}: {key}: {events:?}");
            assert!(
                events.iter().all(|notice| notice.reason == "DeletionBlocked"),
                "{events:?}"
            );
        }
        cycle.delete(last);
        cycle.look();
        cycle.look();
        for at in 0..2 {
            let mut path = cycle.networks.to_vec();
            path.rotate_left(at);
            let events = cycle.play.world.events_about(&cycle.networks[at]);
            let with_path = events
                .iter()
                .filter(|notice| notice.message == cycle_notice(&path).message);
            assert_eq!(with_path.count(), 1, "{last}: {at}: {events:?}");
            assert!(events.len() <= 2, "{last}: {at}: {events:?}");
        }
    }
}

/// As if it were known of a cycle only what has been archived by then.
#[test]
fn all_that_is_live_on_a_cycle_is_reported_once_where_all_are_deleted_together() {
    let mut cycle = Cycle::new();
    (0..3).for_each(|at| cycle.delete(at));
    cycle.look();
    for at in 0..2 {
        let mut path = cycle.networks.to_vec();
        path.rotate_left(at);
        let events = cycle.play.world.events_about(&cycle.networks[at]);
        let messages: Vec<_> = events.iter().map(|notice| notice.message.as_str()).collect();
        assert_eq!(messages, [cycle_notice(&path).message]);
    }
}
