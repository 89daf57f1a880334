//! Holders that nobody here has seen: their own service, or the archive, says where they are.

use kindex_model::reference_name::ReferenceName;

use super::Controller;
use crate::decide::{FoundHolder, Step};
use crate::service::waiting::awaited_references;
use crate::simulation::Bug;
use crate::simulation::world::World;

impl Controller {
    /// Other services are to be asked for holders that an object waits for.
    pub(super) fn seek(&mut self, step: &Step) {
        let names = awaited_references(step).iter().map(|reference| &reference.name);
        let of_others = names.filter(|name| name.group() != self.group);
        self.knowledge
            .holders
            .seek(of_others.filter(|name| self.graph.find(name.uid()).is_none()), self.now);
    }

    /// Asks another service for the next holder. Whether it has answered.
    pub(in super::super) fn ask_for_holder(&mut self, world: &World, bug: Bug) -> bool {
        let Some(name) = self.knowledge.holders.next_due() else {
            return false;
        };
        let found = match world.find_holder(&name) {
            Ok(found) => found,
            Err(_) if bug == Bug::SilenceIsAbsence => None,
            Err(_) => {
                self.knowledge.holders.unanswered(&name);
                return false;
            }
        };
        self.wake(self.graph.targets(&name).cloned().collect());
        self.holder_answered(name, found, bug);
        true
    }

    /// What is answered about a holder.
    pub(super) fn holder_answered(&mut self, name: ReferenceName, found: Option<FoundHolder>, bug: Bug) {
        if bug == Bug::BelieveOneAnswer && found.is_none() {
            self.knowledge.holders.answered(name.clone(), None, self.now);
        }
        let targets: Vec<_> = self.graph.targets(&name).cloned().collect();
        if self.knowledge.holders.answered(name, found, self.now) {
            self.reports.waiting.look_again(&targets, self.now);
        }
    }
}
