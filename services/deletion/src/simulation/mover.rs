//! Moves: whoever lets a holder name another target reads the holder, places the reference on the new target by a write
//! in any case, and then writes the field in the version that was read. It may stop after each of these.

mod archived;

use super::world::{Field, Refusal, World};
use super::{Bug, Play};
use crate::object::Key;

pub(super) use archived::ArchivedMove;

/// A move under way.
#[derive(Clone, Debug)]
pub(super) struct Move {
    holder: Key,
    reference: String,
    uid: String,
    /// In which the holder was read.
    version: u64,
    field: &'static str,
    to: Key,
    /// Whether the new target has the reference.
    placed: bool,
}

/// How a move ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Moved,
    Refused,
}

impl Move {
    /// Begins with what is there; nothing where the holder or one of the targets is missing or going.
    pub(super) fn begin(world: &World, holder: &Key, field: &'static Field, name: &str) -> Option<Self> {
        let to = world.services.key(field.target, name);
        let found = world.servers.objects.get(holder)?;
        let old = found
            .named
            .get(field.name)
            .map(|old| world.services.key(field.target, old));
        let is_going = |key: &Key| {
            world
                .servers
                .objects
                .get(key)
                .is_none_or(|it| it.terminating || it.requested)
        };
        let old_goes = old
            .as_ref()
            .is_some_and(|old| world.servers.objects.contains_key(old) && is_going(old));
        if is_going(holder) || is_going(&to) || old_goes || old.as_ref() == Some(&to) || to == *holder {
            return None;
        }
        Some(Self {
            holder: holder.clone(),
            reference: found.reference(),
            uid: found.uid.clone(),
            version: found.version,
            field: field.name,
            to,
            placed: false,
        })
    }

    /// Sends the next request; nothing as long as another one follows.
    pub(super) fn send(&mut self, world: &mut World, judged: bool, bug: Bug) -> Option<Ended> {
        let refused = |_: Refusal| Some(Ended::Refused);
        if !self.placed && bug != Bug::MoveBeforePlacing {
            let reference = self.reference.clone();
            let read = world.servers.objects.get(&self.to).map(|to| to.version);
            let held = world
                .servers
                .objects
                .get(&self.to)
                .is_some_and(|to| to.has_finalizer(&reference));
            if held && bug == Bug::MoveWithoutWriting {
                self.placed = true;
                return None;
            }
            let going = |it: &super::world::Stored| it.terminating || it.requested;
            if world.servers.objects.get(&self.to).is_none_or(going) {
                return Some(Ended::Refused);
            }
            let written = world.write(&self.to, None, read, |to| {
                if !to.has_finalizer(&reference) {
                    to.finalizers.push(reference);
                }
            });
            self.placed = true;
            return written.map_or_else(refused, |_| None);
        }
        let written = world.write(&self.holder, Some(&self.uid), Some(self.version), |holder| {
            holder.named.insert(self.field, self.to.name.to_string());
        });
        match written {
            Err(refusal) => refused(refusal),
            Ok(_) => {
                let to = world.servers.objects.get(&self.to);
                if judged && to.is_none_or(|to| !to.has_finalizer(&self.reference)) {
                    world.judge.broken(format!(
                        "{} moved to {} without a reference on it",
                        self.holder, self.to
                    ));
                }
                Some(Ended::Moved)
            }
        }
    }
}

impl Play {
    /// A move begins, goes on or is given up.
    pub(super) fn go_on_moving(&mut self, key: &Key, field: Option<&'static Field>, name: &str, choice: usize) {
        if let Some(field) = field
            && self.moves.len() < 3
            && let Some(begun) = Move::begin(&self.world, key, field, name)
        {
            return self.moves.push(begun);
        }
        if self.moves.is_empty() {
            return;
        }
        let at = choice % self.moves.len();
        let mut one = self.moves.swap_remove(at);
        if choice.is_multiple_of(11) {
            return;
        }
        let to = self.world.servers.objects.get(&one.to).filter(|_| !one.placed);
        let placed = to.map(|to| (one.uid.clone(), to.uid.clone()));
        if one.send(&mut self.world, !self.setting.meddling, self.bug).is_none() {
            // The holder may go before its controller has heard of this, also where its field has named it meanwhile.
            self.world.judge.excused.extend(placed);
            self.moves.push(one);
        }
    }
}
