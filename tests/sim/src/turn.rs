//! One turn of a history as a value. It holds everything that was drawn at random, so that a list of turns can be
//! replayed, also with some of them left out.

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
        /// Whether the answer stays in flight after the turn.
        hold: bool,
    },
    /// An answer arrives that was in flight.
    Arrive {
        /// The process.
        who: usize,
        /// Which answer.
        pick: usize,
    },
    /// A watch that a process requested is opened, or fails to open.
    OpenWatch {
        /// The process.
        who: usize,
        /// Why it fails, if it does.
        fault: Option<Fault>,
    },
    /// The watch delivers its next event.
    Event {
        /// The process.
        who: usize,
    },
    /// The watch goes back by so many events, and repeats them.
    Replay {
        /// The process.
        who: usize,
        /// How many.
        events: usize,
    },
    /// The watch delivers a bookmark.
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
    /// A request is carried out whose sender has given up.
    LateRequest {
        /// Which.
        pick: usize,
    },
    /// A transaction ends whose sender has given up.
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
        /// Bits: which of its requests are still carried out.
        effective: u32,
    },
    /// A process stops in an orderly way and restarts.
    Stop {
        /// The process.
        who: usize,
    },
    /// Etcd compacts its history.
    Compact,
    /// Etcd is backed up.
    BackUp,
    /// Etcd is restored from its backup.
    Restore,
    /// A process's wall clock is wrong by so much from now on.
    SetClock {
        /// The process.
        who: usize,
        /// In seconds.
        wrong_by_s: i64,
    },
    /// An outage begins.
    Outage {
        /// What.
        fault: Fault,
        /// For how long.
        ms: u64,
    },
}
