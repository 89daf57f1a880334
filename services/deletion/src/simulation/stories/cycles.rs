//! Objects that own each other in a circle of two or three.

use super::calm;

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
    let path = play.controllers[0].graph.cycle(&one).expect("a cycle");
    assert_eq!(path, [one, other]);
}

/// One of them is deleted, and takes the others along. They all name each other still when an operator drops one of the
/// references: as if a name held what has no reference, so that nobody could end the wait.
#[test]
fn objects_of_a_circle_go_once_any_of_their_references_is_dropped() {
    for dropped in 0..3 {
        let mut play = calm(false);
        let named = [("a", "b"), ("b", "c"), ("c", "a")];
        let trees = named.map(|(name, parent)| play.with("Tree", name, &[("parent", parent)]));
        play.settled();
        play.delete(&trees[0]);
        play.settled();
        let [a, b, c] = trees.clone();
        let path = play.controllers[0].graph.cycle(&a).expect("a cycle");
        assert_eq!(path, [a, c, b]);

        let reference = play.world.objects[&trees[dropped]].reference();
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
