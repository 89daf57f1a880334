//! For which of an object's holders a sweep sends requests, where the cluster refuses many of them: a sweep ends its
//! requests after some refusals, and the next one goes on behind these. Sends nothing itself.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kindex_kube_client::ClusterError;

use super::recent::Recent;
use crate::answers::RefusedHolders;
use crate::archive::Holder;

/// Requests of one sweep that are refused. A sweep comes again every few seconds, and what denies the change of one
/// holder, such as a webhook or a missing right, may deny thousands.
const REFUSED_MAX: usize = 64;
/// Of the refused holders of an object, those that people are shown before others.
pub(super) const NAMED_MAX: usize = 8;
/// Objects of which it is known where the next sweep begins. The one that makes room for another begins anew.
const POSITIONS_MAX: usize = 100_000;
/// Those of which it is also known whom they are shown to wait for, which takes more memory. For others, that may
/// change with each sweep.
const NAMES_MAX: usize = 1000;

/// How far the sweeps of an object have come that give each of its holders a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Round {
    /// Holders that had their turn in the sweeps before. Their number is enough: the archive lists them in about the
    /// same order each time, and whoever is passed over because others have gone has a turn in the next round.
    passed: usize,
    /// The first ones that were refused, by the names that people know. A sweep in which others are refused names the
    /// same ones, so that the object waits for the same all the time.
    named: BTreeSet<String>,
}

/// The rounds that are not over, by the uids of the objects. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Rounds(Arc<Mutex<Known>>);

/// What is known of rounds.
#[derive(Debug)]
struct Known {
    passed: Recent<usize>,
    named: Recent<BTreeSet<String>>,
}

impl Default for Rounds {
    fn default() -> Self {
        let known = Known {
            passed: Recent::new(POSITIONS_MAX),
            named: Recent::new(NAMES_MAX),
        };
        Self(Arc::new(Mutex::new(known)))
    }
}

impl Rounds {
    /// Where the next sweep for an object begins.
    pub(super) fn of(&self, uid: &str) -> Round {
        let known = self.lock();
        Round {
            passed: known.passed.get(uid).copied().unwrap_or_default(),
            named: known.named.get(uid).cloned().unwrap_or_default(),
        }
    }

    /// How far a sweep has come.
    pub(super) fn set(&self, uid: &str, round: Round) {
        if round.passed == 0 {
            self.forget(uid);
            return;
        }
        let mut known = self.lock();
        known.passed.set(uid, round.passed);
        known.named.set(uid, round.named);
    }

    /// An object waits for nobody any more, or its next sweep is over other holders.
    pub(super) fn forget(&self, uid: &str) {
        let mut known = self.lock();
        known.passed.remove(uid);
        known.named.remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the cluster refuses in one sweep, and whose turn it is.
///
/// # Guarantees
/// Each sweep gives at least one more holder its turn, or all that are left of the round. Every holder that the archive
/// lists at the same place each time has a turn in each round.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    round: Round,
    /// Holders that this sweep has come to.
    reached: usize,
    /// Those that get a request once all of their page are read: each of them may be refused.
    reserved: usize,
    /// The first holder whose turn is left to the next sweep.
    left: Option<usize>,
    refused: Option<RefusedHolders>,
}

impl Refusals {
    /// Those of a sweep that goes on with a round.
    pub(super) fn new(round: Round) -> Self {
        Self {
            round,
            ..Self::default()
        }
    }

    /// The turn of the next holder that the sweep comes to.
    pub(super) fn next_turn(&mut self) -> usize {
        self.reached += 1;
        self.reached - 1
    }

    /// Whether a holder had its turn in a sweep before, in this round: it is sent nothing.
    pub(super) fn is_past(&self, turn: usize) -> bool {
        turn < self.round.passed
    }

    /// Whether a holder may be sent a request.
    pub(super) fn may_send(&mut self, turn: usize) -> bool {
        if self.is_past(turn) {
            return false;
        }
        let is_left = self.count() + self.reserved >= REFUSED_MAX;
        if is_left {
            self.left = Some(self.left.map_or(turn, |left| left.min(turn)));
        }
        !is_left
    }

    /// Whether a holder may be sent a request once all of its page are read.
    pub(super) fn reserve(&mut self, turn: usize) -> bool {
        let has_turn = !self.is_past(turn);
        self.reserved += usize::from(has_turn);
        has_turn
    }

    /// Whether a holder may be sent the request that was reserved for it. One after the other, in the order of turns.
    pub(super) fn may_send_reserved(&mut self, turn: usize) -> bool {
        // Those after it have no turn before its own.
        let reserved = std::mem::take(&mut self.reserved);
        let may_send = self.may_send(turn);
        self.reserved = reserved.saturating_sub(1);
        may_send
    }

    /// A holder that cannot be changed keeps no other one waiting.
    ///
    /// # Errors
    /// Where it was not refused: what else fails may fail for all of them.
    pub(super) fn refuse(&mut self, holder: &Holder, error: ClusterError) -> Result<(), ClusterError> {
        let ClusterError::Refused(why) = error else {
            return Err(error);
        };
        tracing::debug!(%holder, why, "The cluster refuses a change of a holder");
        if self.round.named.len() < NAMED_MAX {
            self.round.named.insert(holder.to_string());
        }
        let refused = self.refused.get_or_insert_with(|| RefusedHolders {
            first: holder.to_string(),
            why,
            count: 0,
            leaves_others: false,
        });
        refused.count += 1;
        Ok(())
    }

    /// Whether a holder is shown before others, which may go.
    pub(super) fn names(&self, holder: &str) -> bool {
        self.round.named.contains(holder)
    }

    /// What was refused, and how far the round has come. `is_whole` says whether the sweep has read all holders.
    pub(super) fn end(mut self, is_whole: bool) -> (Option<RefusedHolders>, Round) {
        // Those that were reserved for might have been refused. If none was, there is no round: whoever was left comes
        // before the others in the next sweep, because these are gone by then.
        let left = self.left.filter(|_| self.refused.is_some() || self.round.passed > 0);
        if let Some(refused) = &mut self.refused {
            refused.leaves_others = left.is_some();
        }
        let round = match (left, is_whole) {
            (Some(left), _) => Round {
                passed: left,
                ..self.round
            },
            (None, true) => Round::default(),
            (None, false) => self.round,
        };
        (self.refused, round)
    }

    fn count(&self) -> usize {
        self.refused.as_ref().map_or(0, |refused| refused.count)
    }
}

#[cfg(test)]
mod tests;
