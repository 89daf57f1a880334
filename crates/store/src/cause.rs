//! Why a database cannot answer, and when the same call may succeed. Knows no engine and no error of a driver.

use std::fmt;

/// When the same call may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// After a pause: what prevents it may pass by itself.
    Later,
    /// Once an operator has changed something: the schema, the address or the file. A process that serves keeps trying
    /// until then. A command in a terminal fails at once and names what to change.
    AfterChange,
    /// Never: the call or its data is refused.
    Never,
}

/// Why a database cannot answer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The connection broke, or none can be opened.
    Connection,
    /// No answer came in time.
    Timeout,
    /// No connection of the pool came free in time.
    PoolTimeout,
    /// The store was closed.
    Closed,
    /// The server, or the account, has as many connections as it may have.
    TooManyConnections,
    /// This transaction was chosen as the victim of a deadlock.
    Deadlock,
    /// A row has changed since the snapshot of this transaction.
    Snapshot,
    /// The server rolled this transaction back before its commit.
    RolledBack,
    /// Another writer inserted the same row.
    Duplicate,
    /// Another transaction, or another process, holds a lock for long.
    LockWait,
    /// The server, or the file, only reads.
    ReadOnly,
    /// A node without its cluster, or not synchronized with it.
    NotReady,
    /// The statement or the commit was cancelled.
    Aborted,
    /// Memory, space or locks are used up.
    Resources,
    /// The file cannot be opened, read or written.
    Disk,
    /// The account is not known, or lacks a right.
    Access,
    /// A table is being altered.
    SchemaChange,
    /// The file is no database, or a damaged one.
    Damaged,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 18] = [
        Self::Connection,
        Self::Timeout,
        Self::PoolTimeout,
        Self::Closed,
        Self::TooManyConnections,
        Self::Deadlock,
        Self::Snapshot,
        Self::RolledBack,
        Self::Duplicate,
        Self::LockWait,
        Self::ReadOnly,
        Self::NotReady,
        Self::Aborted,
        Self::Resources,
        Self::Disk,
        Self::Access,
        Self::SchemaChange,
        Self::Damaged,
    ];

    /// One word for metrics and logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::PoolTimeout => "pool_timeout",
            Self::Closed => "closed",
            Self::TooManyConnections => "too_many_connections",
            Self::Deadlock => "deadlock",
            Self::Snapshot => "snapshot",
            Self::RolledBack => "rolled_back",
            Self::Duplicate => "duplicate",
            Self::LockWait => "lock_wait",
            Self::ReadOnly => "read_only",
            Self::NotReady => "not_ready",
            Self::Aborted => "aborted",
            Self::Resources => "resources",
            Self::Disk => "disk",
            Self::Access => "access",
            Self::SchemaChange => "schema_change",
            // Dashboards and alert rules of users know this word.
            Self::Damaged => "corrupt",
        }
    }

    /// When the same call may succeed. An account may be granted a right, or a password be rotated, while a call is
    /// repeated; no wait makes a database of a file that is not one.
    pub const fn retry(self) -> Retry {
        match self {
            Self::Connection
            | Self::Timeout
            | Self::PoolTimeout
            | Self::Closed
            | Self::TooManyConnections
            | Self::Deadlock
            | Self::Snapshot
            | Self::RolledBack
            | Self::Duplicate
            | Self::LockWait
            | Self::ReadOnly
            | Self::NotReady
            | Self::Aborted
            | Self::Resources
            | Self::Disk
            | Self::Access
            | Self::SchemaChange => Retry::Later,
            Self::Damaged => Retry::AfterChange,
        }
    }

    /// Whether it is an [`Outage`](crate::Outage), or a call that is [`Stalled`](crate::Stalled).
    pub const fn is_outage(self) -> bool {
        matches!(self, Self::Connection | Self::Timeout)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.label())
    }
}
