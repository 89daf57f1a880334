//! One turn of a history as a value: everything that chance decides is in it, so that a
//! history is a list of turns, which can be played again with some left out.

use super::fault::Fault;
use super::user::UserAction;

/// One turn. Picks are taken modulo what there is to pick from; a turn that finds
/// nothing to do does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A user acts.
    User(UserAction),
    /// A request of a process is carried out, or fails.
    CarryOut {
        /// The process.
        who: usize,
        /// Which request.
        pick: usize,
        /// How it fails, if it does.
        fault: Option<Fault>,
        /// Whether the answer is still on its way when the turn ends.
        hold: bool,
    },
    /// An answer arrives that was on its way.
    Arrive {
        /// The process.
        who: usize,
        /// Which answer.
        pick: usize,
    },
    /// A watch that a process asked for is opened, or is not.
    OpenWatch {
        /// The process.
        who: usize,
        /// Why it is not.
        fault: Option<Fault>,
    },
    /// The watch tells its next event.
    Event {
        /// The process.
        who: usize,
    },
    /// The watch goes back by so many events, and tells them again.
    Replay {
        /// The process.
        who: usize,
        /// How many.
        events: usize,
    },
    /// The watch tells how far it is.
    Bookmark {
        /// The process.
        who: usize,
    },
    /// The watch ends.
    EndWatch {
        /// The process.
        who: usize,
        /// Whether it breaks.
        broken: bool,
    },
    /// A request arrives that its sender gave up.
    LateRequest {
        /// Which.
        pick: usize,
    },
    /// A transaction ends whose sender gave it up.
    EndTransaction {
        /// Whether it is committed.
        committed: bool,
    },
    /// Time passes.
    Pass {
        /// In milliseconds.
        ms: u64,
    },
    /// A process dies and starts again.
    Crash {
        /// The process.
        who: usize,
        /// Bits that say which of its requests still have their effect.
        effective: u32,
    },
    /// A process is asked to stop, and starts again when it has.
    Stop {
        /// The process.
        who: usize,
    },
    /// Etcd forgets the past.
    Compact,
    /// Etcd is backed up.
    BackUp,
    /// Etcd returns to its backup.
    Restore,
    /// A process's wall clock is wrong by so much from now on.
    SetClock {
        /// The process.
        who: usize,
        /// In seconds.
        wrong_by_s: i64,
    },
    /// Something is away for a while.
    Outage {
        /// What.
        fault: Fault,
        /// For how long.
        ms: u64,
    },
}
