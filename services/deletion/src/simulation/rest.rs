//! What must be true once nobody interferes any more: references are where fields say, and what is left of all that was
//! deleted is held by somebody who has a right to.

use std::time::Duration;

use kindex_model::deletion::Phase;
use kindex_model::reference_name::ReferenceName;

use super::Play;
use super::world::{Stored, World};
use crate::archive::is_deleted_with;
use crate::object::Key;

/// Rounds in which everybody does all they can, after which nothing changes any more.
const ROUNDS: usize = 400;

impl Play {
    /// Everybody does all they can, then an operator drops the references of holders that are gone.
    pub(super) fn rest(&mut self) -> Result<(), String> {
        self.world.servers.down = None;
        self.settle()?;
        self.left_behind()?;
        while self.drop_what_is_left_behind() {
            self.settle()?;
        }
        let objects: Vec<_> = self.world.servers.objects.values().cloned().collect();
        for object in &objects {
            let waits = object.terminating && self.waits_for_archive(object)?;
            self.is_right(object, waits)?;
        }
        self.world.tombstones_rest()
    }

    fn waits_for_archive(&mut self, object: &Stored) -> Result<bool, String> {
        match self.world.waits_for_archive(object) {
            // It is asked once nothing in the cluster is left.
            Err(_) if object.references().next().is_some() || has_namers(&self.world, object) => Ok(true),
            waits => waits,
        }
    }

    pub(super) fn settle(&mut self) -> Result<(), String> {
        for _ in 0..ROUNDS {
            let before = self.world.servers.version;
            self.round()?;
            let idle = self
                .controllers
                .iter()
                .all(|controller| controller.is_idle(&self.world));
            if before == self.world.servers.version && idle {
                return Ok(());
            }
        }
        Err("the controllers never rest".to_owned())
    }

    /// Everybody does what they can, once.
    pub(super) fn round(&mut self) -> Result<(), String> {
        let keys: Vec<_> = self.world.servers.objects.keys().cloned().collect();
        for key in &keys {
            self.world.others(key, true);
        }
        self.world.remove_outside();
        (0..self.controllers.len()).try_for_each(|at| self.drain_queue(at))
    }

    /// After a long time, one controller hears and does all it can.
    pub(super) fn drain_queue(&mut self, at: usize) -> Result<(), String> {
        self.controllers[at].wait(Duration::from_secs(3600));
        self.do_all(at)
    }

    /// One controller hears and does all it can at one time.
    pub(super) fn do_all(&mut self, at: usize) -> Result<(), String> {
        let strict = self.setting.strict();
        let bug = self.bug;
        let controller = &mut self.controllers[at];
        for kind in controller.kinds() {
            controller.hear_all(&self.world, &kind, bug);
        }
        for _ in 0..200 {
            controller.decide(0, bug);
            controller.send(&mut self.world, 0, false, strict, bug);
        }
        controller.walk_all(&mut self.world, bug);
        self.hold()
    }

    /// Only holders that were archived, or had no chance to release, may leave references behind, and a move may.
    fn left_behind(&self) -> Result<(), String> {
        for object in self.world.servers.objects.values() {
            for name in object.references() {
                let is_ours = name.group() == object.key.kind.group;
                if is_ours && self.world.archives.is_archived(name.uid()) {
                    return Err(format!("{} has {name}, whose holder is archived", object.key));
                }
                if !self.may_be_left(&object.uid, &name) && self.setting.strict() {
                    return Err(format!("{} has {name}, whose holder left it behind", object.key));
                }
            }
        }
        let orphaned = self.world.orphaned_rows();
        match orphaned.iter().find(|(target, name)| !self.may_be_left(target, name)) {
            Some((_, name)) if self.setting.strict() => Err(format!("{name} is a row, and its holder left it behind")),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether a reference on a target may be there although its holder is not.
    fn may_be_left(&self, target: &str, name: &ReferenceName) -> bool {
        let uid = name.uid();
        self.is_there(uid) || self.world.judge.vanished.contains(uid) || self.world.judge.is_excused(uid, target)
    }

    fn drop_what_is_left_behind(&mut self) -> bool {
        let before = self.world.servers.version;
        let keys: Vec<_> = self.world.servers.objects.keys().cloned().collect();
        for key in keys {
            let dropped: Vec<_> = self.world.servers.objects[&key]
                .references()
                .filter(|name| !self.is_there(name.uid()))
                .map(|name| name.to_string())
                .collect();
            if !dropped.is_empty() {
                let written = self.world.write(&key, None, None, |object| {
                    object.finalizers.retain(|finalizer| !dropped.contains(finalizer));
                });
                assert!(written.is_ok(), "everything answers");
            }
        }
        let uids = self.world.holders_elsewhere().map(ReferenceName::uid);
        let gone: Vec<String> = uids.filter(|uid| !self.is_there(uid)).map(ToOwned::to_owned).collect();
        for uid in gone {
            self.world.drop_rows_elsewhere(&uid);
        }
        before != self.world.servers.version
    }

    fn holder(&self, uid: &str) -> Option<&Stored> {
        self.world.servers.objects.values().find(|object| object.uid == uid)
    }

    /// Whether a holder is live, holds by the API alone, or is archived and holds what is of other services.
    fn is_there(&self, uid: &str) -> bool {
        let archives = &self.world.archives;
        (archives.across && archives.is_archived(uid))
            || self.world.api_holders.contains_key(uid)
            || self.holder(uid).is_some()
    }

    fn is_right(&self, object: &Stored, waits_for_archive: bool) -> Result<(), String> {
        match object.terminating {
            true => self.is_held(object, waits_for_archive),
            false if object.requested => Err(format!("{} was to be deleted", object.key)),
            false => self.is_placed(object),
        }
    }

    /// What is live has its references, and is not to go with a target.
    fn is_placed(&self, object: &Stored) -> Result<(), String> {
        for edge in self.world.services.edges(object) {
            if self.world.lacks_row(object, &edge.target) {
                return Err(format!(
                    "{} has no reference on {}, which is archived",
                    object.key, edge.target
                ));
            }
            let Some(target) = self
                .world
                .servers
                .objects
                .get(&edge.target)
                .filter(|_| edge.target != object.key)
            else {
                continue;
            };
            let has_reference = target.has_finalizer(&object.reference());
            if !target.terminating && !target.requested && !has_reference {
                return Err(format!("{} has no reference on {}", object.key, target.key));
            }
            let drains = target.phase >= Some(Phase::Draining);
            let takes = target.asked && target.phase.is_some() && (edge.cascades() || (edge.owned && drains));
            if takes && (has_reference || !self.world.has_former(object)) {
                return Err(format!("{} outlives {}", object.key, target.key));
            }
        }
        Ok(())
    }

    /// What is leaving the cluster is held by what is leaving itself, or by a live object that may stay.
    fn is_held(&self, object: &Stored, waits_for_archive: bool) -> Result<(), String> {
        let holders: Vec<_> = object.references().collect();
        if holders.is_empty() && !waits_for_archive && !has_namers(&self.world, object) {
            return Err(format!(
                "{} could go: {:?} {:?}",
                object.key, object.phase, object.finalizers
            ));
        }
        // What holds by the API alone may stay, whatever it holds.
        for name in holders
            .iter()
            .filter(|name| !self.world.api_holders.contains_key(name.uid()))
        {
            if self.world.archives.across && self.world.archives.is_archived(name.uid()) {
                self.may_stay_archived(object, name)?;
                continue;
            }
            let Some(holder) = self.holder(name.uid()) else {
                return Err(format!("{} is held by {name}, which was dropped", object.key));
            };
            let edges = self.world.services.edges(holder);
            let by = edges.iter().find(|edge| edge.target == object.key);
            let may_stay = match by {
                _ if holder.terminating || !object.asked => true,
                Some(edge) if edge.cascades() => false,
                Some(edge) if edge.owned => object.phase < Some(Phase::Draining),
                Some(_) => true,
                None => edges.iter().any(|edge| !self.holds_target(holder, &edge.target)),
            };
            if !may_stay {
                return Err(format!("{} holds {} and should not", holder.key, object.key));
            }
        }
        Ok(())
    }

    /// What is archived is deleted with what is of another service, or waits for others itself. What it does not name,
    /// it holds only if it was archived, changed or moved so: a plain change of an archived object releases nothing. Of
    /// two controllers, one may place a reference late and die before it has taken it back.
    fn may_stay_archived(&self, object: &Stored, name: &ReferenceName) -> Result<(), String> {
        let row = &self.world.archives.rows[name.uid()];
        let edges = self.world.services.edges(&row.object);
        let is_named = edges.iter().any(|edge| edge.target == object.key);
        if !is_named && self.setting.strict() && !self.world.judge.is_excused(name.uid(), &object.uid) {
            return Err(format!("{} holds {} and does not name it", row.object.key, object.key));
        }
        let goes = object.asked && is_deleted_with(&edges, &object.key, object.phase);
        match goes && !row.tombstone {
            true => Err(format!("{} holds {} and should not", row.object.key, object.key)),
            false => Ok(()),
        }
    }

    fn holds_target(&self, holder: &Stored, target: &Key) -> bool {
        let target = self.world.servers.objects.get(target);
        target.is_some_and(|target| target.has_finalizer(&holder.reference()))
    }
}

/// Whether somebody names it who goes with it, or is owned by it: it waits for these without their references as well.
fn has_namers(world: &World, object: &Stored) -> bool {
    let mut others = world.servers.objects.values().filter(|other| other.key != object.key);
    others.any(|other| {
        let edges = world
            .services
            .edges(other)
            .into_iter()
            .filter(|edge| edge.target == object.key);
        let (is_leaving, evicting) = (other.terminating, !object.asked);
        edges.into_iter().any(|edge| match is_leaving {
            true => edge.owned || edge.cascades(),
            false => edge.owned && evicting,
        })
    })
}
