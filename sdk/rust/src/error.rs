//! What a caller is told.

use std::time::Duration;

/// What the service refused for good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct Refusal {
    /// The reason, such as `RUN_TERMINAL`; where the service gives none, the code of gRPC.
    pub reason: String,
    /// What is wrong, and what to do.
    pub message: String,
}

/// Why a call did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The address of the service.
    #[error("the address {address:?} is wrong: {why}; name it as http://host:50051 or https://host:50051")]
    Address {
        /// As it was given.
        address: String,
        /// What is wrong.
        why: String,
    },
    /// The key.
    #[error("the API key has characters that a header cannot carry")]
    Key,
    /// The certificate authorities.
    #[error("no certificate authorities are in {place}: {why}; name a file in PEM form with Settings::ca_file")]
    Authorities {
        /// Where they were looked for.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// The thread that sends.
    #[error("the thread that sends cannot be started: {0}")]
    Thread(String),
    /// Too much waits to be answered. Nothing of the call was taken.
    #[error(
        "{points} points wait for the service, which are all that fit into the buffer; nothing of this call was taken. \
         Try again later, or start the run with a larger buffer_points"
    )]
    Full {
        /// How many points wait.
        points: usize,
    },
    /// The service refused something for good: nothing more is sent.
    #[error("the service refused: {0}")]
    Refused(#[from] Refusal),
    /// The time is over.
    #[error("{points} points were not answered within {timeout:?}: {why}")]
    Timeout {
        /// How many points wait.
        points: usize,
        /// How long it was waited.
        timeout: Duration,
        /// Why the last attempt failed.
        why: String,
    },
}
