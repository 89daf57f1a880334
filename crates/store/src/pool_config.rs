//! How many connections a store may have, and how long it waits for them. Knows no engine.

use std::time::Duration;

/// How a store uses connections. The first three are the reference's pool keys and defaults.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// `maxOpenConns`, at least 1. A SQLite file has one writer beside its readers; one in memory has one connection.
    pub max_open: u32,
    /// `maxIdleConns`: connections kept open while nobody uses them.
    pub max_idle: u32,
    /// `connMaxLifetime`; zero: no limit.
    pub max_lifetime: Duration,
    /// How long a call waits for a connection, a connect included. If the pool has room and could open none, one more
    /// connect says why, and if that succeeds, the call waits once more: each for as long again at most.
    pub acquire_timeout: Duration,
    /// How long a call may take once it has a connection: a server that hangs is an error. After a sixth of it the
    /// database is said not to answer.
    pub call_timeout: Duration,
    /// How much text the objects of one page may have together. A page has one object at least, and says where the next
    /// one goes on: five hundred of the largest are more than a server has.
    pub page_bytes: usize,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            max_open: 25,
            max_idle: 5,
            max_lifetime: Duration::from_secs(300),
            acquire_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_secs(60),
            page_bytes: 16 * 1024 * 1024,
        }
    }
}

impl PoolConfig {
    /// How long a call may go unanswered until the database is said not to answer.
    pub(super) fn late_after(call_timeout: Duration) -> Duration {
        call_timeout / 6
    }

    /// How long a statement waits for a lock: short enough that the database, which knows why,
    /// reports it before the call's time is over.
    pub(super) fn lock_wait(&self) -> Duration {
        self.call_timeout / 4
    }
}
