//! Moves of archived holders, as the API server makes them: it reads the holder, places the reference on the new
//! target, looks whether one of the three is being deleted, and writes the field in the version that was read. Nobody
//! follows that field. So it then places or releases the reference on both targets, until the fields still say the same
//! after the write. The process may die after each of these requests.

use kindex_model::settling::{Naming, SettlingStep, settling_step};

use super::Ended;
use crate::object::Key;
use crate::simulation::Bug;
use crate::simulation::world::{Refusal, World};

/// What is sent next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    /// The holder and both targets are read.
    Read,
    Place,
    /// They are read once more, right before the field is written.
    Check,
    Write,
    /// How far the holder is after that.
    Look,
    /// Whether the field was written, after a refusal.
    TakeBack,
    /// The version of the target that is settled.
    Version,
    /// Whether the holder names it.
    Naming,
    /// Its reference there is placed or released.
    Change,
}

/// A target on which the reference is placed or released, as the fields say.
#[derive(Clone, Debug)]
struct Settling {
    target: Key,
    /// What was written last.
    done: Option<SettlingStep>,
    /// In which the target was read before the holder was.
    version: Option<u64>,
    step: SettlingStep,
}

impl Settling {
    fn of(target: Key) -> Self {
        Self {
            target,
            done: None,
            version: None,
            step: SettlingStep::Finish,
        }
    }
}

/// A move under way.
#[derive(Clone, Debug)]
pub(in super::super) struct ArchivedMove {
    holder: Key,
    uid: String,
    reference: String,
    field: &'static str,
    to: Key,
    /// What the field named when the holder was read, and the version of that.
    from: Option<Key>,
    version: u64,
    /// Whether the reference may be on the new target, and the field was not written.
    is_placed: bool,
    next: Request,
    /// The next one last.
    settling: Vec<Settling>,
    ended: Ended,
}

impl ArchivedMove {
    /// Nothing has been read yet.
    pub(in super::super) fn new(world: &World, holder: &Key, field: &'static str, to: &Key) -> Self {
        let found = world.find_object(holder).expect("it is there").object;
        Self {
            holder: holder.clone(),
            reference: found.reference(),
            uid: found.uid,
            field,
            to: to.clone(),
            from: None,
            version: 0,
            is_placed: false,
            next: Request::Read,
            settling: Vec::new(),
            ended: Ended::Refused,
        }
    }

    /// Sends the next request; nothing as long as another one follows.
    pub(in super::super) fn send(&mut self, world: &mut World, bug: Bug) -> Option<Ended> {
        match self.next {
            Request::Read => self.read(world, bug),
            Request::Place => self.place(world, bug),
            Request::Check => {
                let targets = self.from.iter().chain([&self.to]);
                let is_going = targets
                    .filter_map(|target| world.find_object(target))
                    .any(|found| found.is_deleting);
                let may_change = !is_going && self.is_archived(world);
                self.go_on(if may_change { Request::Write } else { Request::Read })
            }
            Request::Write => match world.write_field(&self.uid, self.version, self.field, &self.to.name) {
                Ok(()) => {
                    (self.is_placed, self.ended) = (false, Ended::Moved);
                    self.go_on(Request::Look)
                }
                Err(_) => self.go_on(Request::Read),
            },
            Request::Look => {
                // The deletion of one that is being deleted releases what it names by then.
                let new = self.is_archived(world).then(|| self.to.clone());
                self.settling = self.from.iter().cloned().chain(new).map(Settling::of).collect();
                self.go_on(Request::Version)
            }
            Request::TakeBack => {
                let is_left = bug == Bug::MoveLeavesPlaced && !self.is_archived(world);
                if is_left || self.naming(world, &self.to) != Naming::Unnamed {
                    return Some(self.ended);
                }
                self.settling = vec![Settling::of(self.to.clone())];
                self.go_on(Request::Version)
            }
            Request::Version | Request::Naming | Request::Change => self.settle(world, bug),
        }
    }

    fn go_on(&mut self, next: Request) -> Option<Ended> {
        self.next = next;
        None
    }

    fn refused(&mut self) -> Option<Ended> {
        match self.is_placed {
            true => self.go_on(Request::TakeBack),
            false => Some(Ended::Refused),
        }
    }

    fn is_archived(&self, world: &World) -> bool {
        let found = world
            .find_object(&self.holder)
            .filter(|found| found.object.uid == self.uid);
        found.is_some_and(|found| found.is_archived())
    }

    fn read(&mut self, world: &World, bug: Bug) -> Option<Ended> {
        let Some(found) = world.find_object(&self.holder).filter(|_| self.is_archived(world)) else {
            return self.refused();
        };
        let named = found.object.named.get(self.field);
        self.from = named.map(|name| world.services.key(&self.to.kind.kind, name));
        self.version = found.object.version;
        if self.from.as_ref() == Some(&self.to) {
            self.ended = Ended::Moved;
            if bug == Bug::RepeatUnsettled {
                return Some(self.ended);
            }
            self.settling = vec![Settling::of(self.to.clone())];
            return self.go_on(Request::Version);
        }
        let former = self.from.as_ref().and_then(|from| world.find_object(from));
        let may_leave = former.is_none_or(|found| !found.is_deleting);
        let may_come = world.find_object(&self.to).is_some_and(|found| !found.is_deleting);
        match may_leave && may_come {
            true => self.go_on(Request::Place),
            false => self.refused(),
        }
    }

    fn place(&mut self, world: &mut World, bug: Bug) -> Option<Ended> {
        // An answer that does not come says nothing.
        self.is_placed = true;
        if let Some(from) = self.from.as_ref().filter(|_| bug == Bug::MoveOldFirst)
            && world.release_at(from, &self.reference, None).is_err()
        {
            return self.refused();
        }
        match world.renew_reference(&self.to, &self.reference) {
            Ok(()) => self.go_on(Request::Check),
            Err(_) => self.refused(),
        }
    }

    /// Whether the holder names a target, wherever it is.
    fn naming(&self, world: &World, target: &Key) -> Naming {
        let found = world
            .find_object(&self.holder)
            .filter(|found| found.object.uid == self.uid);
        let named = found.filter(|found| {
            world
                .services
                .edges(&found.object)
                .iter()
                .any(|edge| edge.target == *target)
        });
        match named {
            None => Naming::Unnamed,
            Some(found) if found.is_deleting => Naming::NamedByLeaving,
            Some(_) => Naming::Named,
        }
    }

    fn settle(&mut self, world: &mut World, bug: Bug) -> Option<Ended> {
        let Some(mut one) = self.settling.pop() else {
            return Some(self.ended);
        };
        let next = match self.next {
            Request::Version => match world.version_of(&one.target) {
                Ok(version) => {
                    one.version = version;
                    Some(Request::Naming)
                }
                Err(_) => None,
            },
            Request::Naming => {
                one.step = settling_step(self.naming(world, &one.target), one.done);
                (one.step != SettlingStep::Finish).then_some(Request::Change)
            }
            _ => self.change(world, &mut one, bug),
        };
        match next {
            Some(next) => {
                self.settling.push(one);
                self.go_on(next)
            }
            None if self.settling.is_empty() => Some(self.ended),
            None => self.go_on(Request::Version),
        }
    }

    /// Nothing where that target is through.
    fn change(&self, world: &mut World, one: &mut Settling, bug: Bug) -> Option<Request> {
        let version = one.version.filter(|_| bug != Bug::SettleAnyVersion);
        let changed = match one.step {
            SettlingStep::Place => {
                let is_late = !self.is_archived(world);
                let placed = world.renew_reference(&one.target, &self.reference);
                // The deletion of the holder may have released it before, and does so once. What is left at another
                // service goes when that deletes the target.
                let target = world.find_object(&one.target).filter(|_| is_late);
                let pair = target.map(|target| (self.uid.clone(), target.object.uid));
                world.judge.excused.extend(pair);
                placed
            }
            SettlingStep::Release => world.release_at(&one.target, &self.reference, version),
            SettlingStep::Finish => return None,
        };
        match changed {
            Ok(()) => one.done = Some(one.step),
            Err(Refusal::Conflict) if one.step == SettlingStep::Release => {}
            Err(_) => return None,
        }
        (bug != Bug::SettleUnread).then_some(Request::Version)
    }

    /// The process dies. What it has placed for nothing stays until somebody drops it, and so does the reference on the
    /// former target. And a reference may be lacking that another move has released meanwhile: on the new target, where
    /// it was about to be placed again, or on what this one has just released itself, where that has no version.
    pub(in super::super) fn die(self, world: &mut World) {
        let (mut left, mut lacking): (Vec<&Key>, Vec<&Key>) = (Vec::new(), Vec::new());
        if self.is_placed && self.settling.is_empty() {
            left.push(&self.to);
        }
        if self.next == Request::Look {
            left.extend(&self.from);
            lacking.push(&self.to);
        }
        for one in &self.settling {
            match one.done {
                None if self.ended == Ended::Moved && one.target == self.to => lacking.push(&one.target),
                None | Some(SettlingStep::Place) => left.push(&one.target),
                Some(_) if one.version.is_none() => lacking.push(&one.target),
                Some(_) => {}
            }
        }
        for target in left {
            let found = world
                .find_object(target)
                .map(|found| (self.uid.clone(), found.object.uid));
            world.judge.excused.extend(found);
        }
        for target in lacking {
            let found = world
                .find_object(target)
                .map(|found| (self.uid.clone(), found.object.uid));
            world.archives.may_lack.extend(found);
        }
    }
}
