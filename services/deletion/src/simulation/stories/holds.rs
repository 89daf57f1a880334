//! References on what is archived.

use super::calm;
use crate::simulation::Bug;
use crate::simulation::world::names;

#[test]
fn the_reference_of_a_holder_that_went_before_it_was_placed_is_taken_back() {
    late(Bug::None).expect("nothing is broken");
}

/// A network goes between the decision of a slow controller to let it hold an archived identity, and the write.
pub(in super::super) fn late(bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    play.setting.twofold = true;
    play.controllers.clear();
    play.employ();
    let identity = play.with("Identity", "a", &[]);
    play.evict(&identity);
    let network = play.with("Network", "a", &[("identity", "a")]);
    let own = names(&network.kind.group).finalizer.clone();
    let written = play
        .world
        .write(&network, None, None, |object| object.finalizers.push(own));
    written.expect("it is there");
    play.controllers[0].hear_all(&play.world, &network.kind, bug);
    // On what it knows of the identity too.
    for _ in 0..2 {
        play.controllers[0].decide(0, bug);
    }
    play.delete(&network);
    for _ in 0..4 {
        play.drain_queue(1)?;
        if play.world.servers.objects.contains_key(&network) {
            play.world.others(&network, true);
        }
    }
    if !play.erased(&network) {
        return Err(format!("{network} does not go"));
    }
    play.controllers[0].send(&mut play.world, 0, false, true, bug);
    if play.world.orphaned_rows().is_empty() {
        return Err("the slow controller places it".to_owned());
    }
    play.controllers[0].send(&mut play.world, 0, false, true, bug);
    match play.world.orphaned_rows().first() {
        None => play.hold(),
        Some((_, name)) => Err(format!("{identity} has {name}, whose holder is gone")),
    }
}
