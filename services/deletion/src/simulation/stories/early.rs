//! Deletions that come before anybody has decided on the object for the first time, or while that is under way.

use super::calm;

#[test]
fn what_is_deleted_before_anything_was_placed_for_it_goes_and_leaves_nothing_behind() {
    for steps in 0..24 {
        let mut play = calm(false);
        let project = play.with("Project", "a", &[]);
        play.settled();
        let identity = play.with("Identity", "a", &[("project", "a")]);
        for _ in 0..steps {
            play.little(0);
        }
        play.delete(&identity);
        play.settled();
        assert!(play.erased(&identity), "{steps}");
        let project = &play.world.servers.objects[&project];
        assert_eq!(project.references().count(), 0, "{steps}");
        assert!(!project.terminating, "{steps}");
    }
}

#[test]
fn what_has_placed_nothing_yet_goes_with_its_target_all_the_same() {
    for steps in 0..24 {
        let mut play = calm(false);
        let project = play.with("Project", "a", &[]);
        play.settled();
        let identity = play.with("Identity", "a", &[("project", "a")]);
        for _ in 0..steps {
            play.little(0);
        }
        play.delete(&project);
        play.settled();
        assert!(play.erased(&identity) && play.erased(&project), "{steps}");
    }
}
