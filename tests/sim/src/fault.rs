//! The faults, and why some of them cannot happen in some steps.

use super::step::{Class, Step};

/// One sort of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The request never reaches the cluster.
    Lost,
    /// The cluster carries out the request, and the answer is lost.
    Unanswered,
    /// The sender gives up, and later the request arrives.
    Late,
    /// 429: try again later, and not before.
    Throttled,
    /// 500: the server failed, and nothing happened.
    ServerError,
    /// 409: the object was changed in between.
    Conflict,
    /// 410: the version or the list is no longer kept.
    Expired,
    /// The cluster is away for a while.
    ClusterAway,
    /// The connection breaks, and the transaction is rolled back.
    DisconnectBefore,
    /// The transaction is committed, and the connection breaks before the answer.
    DisconnectAfter,
    /// The sender gives up, and later the transaction is committed or rolled back.
    SlowCommit,
    /// The database chose the transaction as the victim of a deadlock.
    Deadlock,
    /// The database refuses the text.
    Refused,
    /// The disk is full for a while: reads go on.
    DiskFull,
    /// The database is away for a while.
    DatabaseAway,
    /// The process dies before its request is carried out.
    CrashBefore,
    /// The process dies after its request was carried out.
    CrashAfter,
    /// The process stops in an orderly way and restarts.
    Stop,
    /// The watch breaks with an error.
    WatchBreaks,
    /// The watch ends without an error.
    WatchEnds,
    /// The watch repeats old events.
    Replay,
    /// Etcd compacts its history.
    Compaction,
    /// The cluster is restored from a backup.
    Restoration,
    /// The wall clock jumps, forward or back.
    ClockJump,
    /// Another ingester changes something.
    Overlap,
}

impl Fault {
    /// All sorts, in order.
    pub const ALL: [Self; 25] = [
        Self::Lost,
        Self::Unanswered,
        Self::Late,
        Self::Throttled,
        Self::ServerError,
        Self::Conflict,
        Self::Expired,
        Self::ClusterAway,
        Self::DisconnectBefore,
        Self::DisconnectAfter,
        Self::SlowCommit,
        Self::Deadlock,
        Self::Refused,
        Self::DiskFull,
        Self::DatabaseAway,
        Self::CrashBefore,
        Self::CrashAfter,
        Self::Stop,
        Self::WatchBreaks,
        Self::WatchEnds,
        Self::Replay,
        Self::Compaction,
        Self::Restoration,
        Self::ClockJump,
        Self::Overlap,
    ];

    /// Why this fault cannot happen in this step; `None` if it can.
    pub fn impossible(self, step: Step) -> Option<&'static str> {
        let class = step.class();
        match self {
            Self::Lost | Self::Throttled | Self::ServerError | Self::ClusterAway => no_cluster_request(class),
            Self::Unanswered => no_cluster_request(class)
                .or((step == Step::OpenWatch).then_some("an opening without an answer is one that was lost")),
            Self::Late | Self::Conflict => {
                no_cluster_request(class).or((class == Class::ClusterRead).then_some("it changes nothing"))
            }
            Self::Expired => match step {
                Step::List | Step::OpenWatch | Step::Watch => None,
                _ => Some("it names no version of the past"),
            },
            Self::DisconnectBefore | Self::DatabaseAway => no_database_request(class),
            Self::DisconnectAfter | Self::SlowCommit | Self::Deadlock | Self::DiskFull => {
                no_database_request(class).or((class == Class::DatabaseRead).then_some("it commits nothing"))
            }
            Self::Refused => (step != Step::Write).then_some("it puts no object into a table that could refuse it"),
            Self::CrashBefore => (step == Step::Watch).then_some("an open watch has been answered"),
            Self::CrashAfter => match step {
                Step::OpenWatch => Some("an opening that has been answered is an open watch"),
                Step::Pause => Some("nothing is asked"),
                _ => None,
            },
            Self::WatchBreaks | Self::WatchEnds | Self::Replay => match step {
                Step::Load | Step::Probe | Step::List | Step::PageRows | Step::Scan | Step::OpenWatch => {
                    Some("no watch is open then")
                }
                _ => None,
            },
            Self::Stop | Self::Compaction | Self::Restoration | Self::ClockJump | Self::Overlap => None,
        }
    }

    /// Why this fault happens in this step too rarely for a run to require it.
    pub fn rare(self, step: Step) -> Option<&'static str> {
        match (self, step) {
            (Self::WatchBreaks | Self::WatchEnds | Self::Replay, Step::Rewind) => {
                Some("rows are rewound before a watch is opened, but for one that another ingester writes late")
            }
            _ => None,
        }
    }

    /// Whether a seed may give a request this fault by itself; the others come from their
    /// circumstances.
    pub fn is_of_a_request(self) -> bool {
        match self {
            Self::Lost
            | Self::Unanswered
            | Self::Late
            | Self::Throttled
            | Self::ServerError
            | Self::Conflict
            | Self::Expired
            | Self::DisconnectBefore
            | Self::DisconnectAfter
            | Self::SlowCommit
            | Self::Deadlock => true,
            Self::ClusterAway
            | Self::Refused
            | Self::DiskFull
            | Self::DatabaseAway
            | Self::CrashBefore
            | Self::CrashAfter
            | Self::Stop
            | Self::WatchBreaks
            | Self::WatchEnds
            | Self::Replay
            | Self::Compaction
            | Self::Restoration
            | Self::ClockJump
            | Self::Overlap => false,
        }
    }
}

fn no_cluster_request(class: Class) -> Option<&'static str> {
    match class {
        Class::ClusterRead | Class::ClusterWrite => None,
        Class::DatabaseRead | Class::DatabaseWrite => Some("it asks nothing of the cluster"),
        Class::Stream => Some("an open watch breaks, ends or expires"),
        Class::Idle => Some("nothing is asked"),
    }
}

fn no_database_request(class: Class) -> Option<&'static str> {
    match class {
        Class::DatabaseRead | Class::DatabaseWrite => None,
        Class::ClusterRead | Class::ClusterWrite | Class::Stream => Some("it asks nothing of the database"),
        Class::Idle => Some("nothing is asked"),
    }
}
