//! Why the same call may succeed later. Knows no status and no error of the client library.

use std::fmt;

/// Why there is no answer now, or none that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterCause {
    /// The connection broke, or none can be opened.
    Connection,
    /// No answer came in time, or the server says so of its own storage.
    Timeout,
    /// 404 without the name of an object: the page of a proxy, or a kind that may not be served.
    NotFound,
    /// 429: the server has too much to do.
    TooManyRequests,
    /// 401: the server does not know who asks.
    Authentication,
    /// The server, or what stands before it, has failed.
    ServerError,
    /// A refusal from which nothing follows for the object that was asked about.
    Unclear,
    /// The server closed a watch at once.
    WatchClosed,
    /// The other service whose object this is does not answer.
    Unavailable,
    /// The archive that the caller reads beside the cluster answers with an error.
    Archive,
    /// That archive is away.
    ArchiveAway,
}

impl ClusterCause {
    /// One word for metrics and logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::NotFound => "not_found",
            Self::TooManyRequests => "too_many_requests",
            Self::Authentication => "authentication",
            Self::ServerError => "server_error",
            Self::Unclear => "unclear",
            Self::WatchClosed => "watch_closed",
            Self::Unavailable => "unavailable",
            Self::Archive => "archive",
            Self::ArchiveAway => "database",
        }
    }
}

impl fmt::Display for ClusterCause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.label())
    }
}
