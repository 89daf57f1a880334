//! References that are placed for holders which have released what they held.

use super::calm;
use crate::simulation::Bug;
use crate::simulation::world::names;

#[test]
fn the_reference_of_a_holder_that_was_freed_before_it_was_placed_is_taken_back() {
    place(Bug::None).expect("nothing is broken");
}

/// An identity is freed between the decision of a slow controller to let it hold a project of another service, and the
/// write. Its ingester has not removed its own finalizer yet.
pub(in super::super) fn place(bug: Bug) -> Result<(), String> {
    let mut play = calm(true);
    play.setting.twofold = true;
    play.controllers.clear();
    play.employ();
    let project = play.with("Project", "a", &[]);
    let identity = play.with("Identity", "a", &[("project", "a")]);
    let own = &names(&identity.kind.group).finalizer;
    let written = play
        .world
        .write(&identity, None, None, |object| object.finalizers.push(own.clone()));
    written.expect("it is there");
    let of_region = |at: &usize| play.controllers[*at].group() == identity.kind.group;
    let at = (0..play.controllers.len()).find(of_region).expect("a controller");
    for kind in [&project.kind, &identity.kind] {
        play.controllers[at].hear_all(&play.world, kind, bug);
    }
    play.controllers[at].decide(0, bug);
    let freed = play.world.write(&identity, None, None, |object| {
        (object.terminating, object.asked) = (true, true);
        object.finalizers.retain(|finalizer| finalizer != own);
    });
    let reference = freed.expect("it is there").reference();
    let has_reference = |play: &crate::simulation::Play| play.world.servers.objects[&project].has_finalizer(&reference);
    play.controllers[at].send(&mut play.world, 0, false, true, bug);
    if !has_reference(&play) {
        return Err("the slow controller places it".to_owned());
    }
    play.controllers[at].send(&mut play.world, 0, false, true, bug);
    match has_reference(&play) {
        false => play.hold(),
        true => Err(format!("{project} has {reference}, whose holder was freed")),
    }
}
