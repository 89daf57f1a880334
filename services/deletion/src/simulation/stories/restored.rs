//! A service that is restored from a backup while another one knows its project as deleted.

use super::calm;
use crate::object::Key;
use crate::simulation::{Bug, Play};

#[test]
fn nothing_is_deleted_with_a_project_that_was_restored_before_that_began() {
    before_it_is_deleted(Bug::None).expect("nothing is broken");
}

#[test]
fn nothing_is_deleted_with_a_project_while_its_service_is_doubted() {
    while_it_is_doubted(Bug::None).expect("nothing is broken");
}

/// A project in its first phase, of which the service of its identity has just heard, and where that service is.
fn deleted(play: &mut Play) -> (Key, Key, usize) {
    let project = play.with("Project", "a", &[]);
    let identity = play.with("Identity", "a", &[("project", "a")]);
    play.settled();
    let (of_project, of_identity) = (play.at_service(&project), play.at_service(&identity));
    play.delete(&project);
    play.work_until(of_project, |play| play.phase(&project).is_some());
    for _ in 0..play.world.servers.log[&project.kind].len() {
        play.controllers[of_identity].hear(&play.world, &project.kind, None, Bug::None);
    }
    (project, identity, of_identity)
}

fn is_deleted(play: &Play, key: &Key) -> bool {
    play.world
        .servers
        .objects
        .get(key)
        .is_none_or(|found| found.terminating)
}

/// The project is as it was before its deletion when the identity is about to go with it.
pub(in super::super) fn before_it_is_deleted(bug: Bug) -> Result<(), String> {
    let mut play = calm(true);
    let (project, identity, at) = deleted(&mut play);
    play.bug = bug;
    play.controllers[at].decide(0, bug);
    let mut backup = play.world.servers.objects[&project].clone();
    (backup.terminating, backup.asked, backup.phase) = (false, false, None);
    play.world.restore(backup);
    play.crash(play.at_service(&project));
    for _ in 0..4 {
        play.controllers[at].send(&mut play.world, 0, false, true, bug);
    }
    play.settle()?;
    match is_deleted(&play, &identity) || is_deleted(&play, &project) {
        true => Err(format!("{identity} is deleted, and its project was restored")),
        false => play.hold(),
    }
}

/// The events of the project's service are not to be trusted for a while.
pub(in super::super) fn while_it_is_doubted(bug: Bug) -> Result<(), String> {
    let mut play = calm(true);
    let (project, identity, at) = deleted(&mut play);
    play.bug = bug;
    play.controllers[at].doubt(&project.kind, bug);
    for _ in 0..4 {
        play.controllers[at].decide(0, bug);
        play.controllers[at].send(&mut play.world, 0, false, true, bug);
    }
    if is_deleted(&play, &identity) {
        return Err(format!(
            "{identity} is deleted on the word of a service that is doubted"
        ));
    }
    play.controllers[at].relist(&project.kind);
    play.settle()?;
    match play.erased(&identity) && play.erased(&project) {
        true => play.hold(),
        false => Err(format!("{identity} stays, though its project is deleted")),
    }
}
