//! Takes turns, and has the rules checked after each. Contains no randomness: turns are drawn in `draw`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::turn::Turn;
use super::user::UserAction;
use super::world::{World, log, panic_text};

/// How long a turn takes.
const TURN: Duration = Duration::from_millis(3);

impl World<'_> {
    /// Plays one turn, fires the timers that are due, and checks the rules.
    pub fn play(&mut self, turn: Turn) {
        self.catching_panics(|world| {
            let did = world.act(turn);
            if did {
                world.counts.steps += 1;
                world.pass(TURN);
            }
            did
        });
    }

    /// Runs `act` and checks the rules. A panic of production code counts as a broken rule.
    pub(crate) fn catching_panics(&mut self, act: impl FnOnce(&mut Self) -> bool) -> bool {
        let acted = catch_unwind(AssertUnwindSafe(|| {
            self.api.cluster().turn += 1;
            let did = act(self);
            self.restart_the_stopped();
            self.check();
            did
        }));
        acted.unwrap_or_else(|panic| {
            self.wrong.get_or_insert(panic_text(&*panic));
            false
        })
    }

    /// Whether anything happened.
    fn act(&mut self, turn: Turn) -> bool {
        match turn {
            Turn::User(action) => self.user(action),
            Turn::CarryOut { who, pick, fault, hold } => self.carry_out(who, pick, fault, hold),
            Turn::Arrive { who, pick } => self.arrive(who, pick),
            Turn::OpenWatch { who, fault } => self.open_watch(who, fault),
            Turn::Event { who } => self.event(who),
            Turn::Replay { who, events } => self.replay(who, events),
            Turn::Bookmark { who } => self.bookmark(who),
            Turn::EndWatch { who, broken } => self.end_watch(who, broken),
            Turn::LateRequest { pick } => self.late_request(pick),
            Turn::EndTransaction { committed } => self.end_transaction(committed),
            Turn::Pass { ms } => {
                self.pass(Duration::from_millis(ms));
                true
            }
            Turn::Crash { who, effective } => self.crash(who, effective),
            Turn::Stop { who } => self.stop(who),
            Turn::Compact => self.compact(),
            Turn::BackUp => {
                log!(self, "etcd is backed up");
                self.api.cluster().back_up();
                true
            }
            Turn::Restore => self.restore(),
            Turn::SetClock { who, wrong_by_s } => self.set_clock(who, wrong_by_s),
            Turn::Outage { fault, ms } => self.outage(fault, Duration::from_millis(ms)),
        }
    }

    fn user(&mut self, action: UserAction) -> bool {
        if self.restorations.is_under_way() {
            return false;
        }
        let mut cluster = self.api.cluster();
        let now = cluster.now;
        let did = action.perform(&mut cluster, now);
        let version = cluster.version;
        drop(cluster);
        if did {
            log!(self, "{action} → @{version}");
        }
        did
    }
}
