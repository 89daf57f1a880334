//! Targets that went while nobody looked.

use super::calm;
use crate::decide::{RefusalReason, Step};
use crate::object::Key;
use crate::simulation::{Bug, Controller, Play};

impl Play {
    /// Somebody deletes an object and takes off all that keeps it.
    pub(super) fn erase_by_force(&mut self, key: &Key) {
        let erased = self.world.write(key, None, None, |object| {
            (object.terminating, object.asked) = (true, true);
            object.finalizers.clear();
        });
        erased.expect("it is there");
    }
}

/// A project is deleted and erased by force while the service of its identity is down. Nothing follows from a target
/// that is missing: no reference lapses, so that nobody but an operator can erase a target under a living holder.
#[test]
fn a_holder_outlives_a_target_that_was_erased_while_its_service_was_down() {
    let mut play = calm(true);
    let project = play.with("Project", "a", &[]);
    let identity = play.with("Identity", "a", &[("project", "a")]);
    let network = play.with("Network", "a", &[("identity", "a")]);
    play.settled();
    play.erase_by_force(&project);
    for controller in &mut play.controllers {
        let group = controller.group().to_owned();
        *controller = Controller::new(&play.world, &group, Bug::None);
    }
    play.settled();
    for key in [&identity, &network] {
        let found = play.world.servers.objects.get(key).expect("it stays");
        assert!(!found.terminating && !found.requested, "{key}");
    }
    let Step::Rest(refused) = play.decided(&identity) else {
        panic!("it has nothing to do");
    };
    let said: Vec<_> = refused.iter().map(|one| (&one.target, one.why)).collect();
    assert_eq!(said, [(&project, RefusalReason::Absent)], "it is reported");
    play.delete(&identity);
    play.settled();
    assert!(
        play.erased(&network) && play.erased(&identity),
        "both release without error"
    );
}
