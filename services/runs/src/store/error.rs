//! What can go wrong between the store and its file, and what a client is told of it.

use std::path::PathBuf;
use std::time::Duration;

use crate::refusal::{Code, Refusal};

/// When to try again where the disk or the file is the reason.
const RETRY_LATER: Duration = Duration::from_secs(5);
/// When to try again where too much waits.
const RETRY_SOON: Duration = Duration::from_secs(1);

/// Why the store cannot be opened, or does not answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder cannot be made or locked.
    #[error("cannot use the folder {path}: {source}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Another process has the folder.
    #[error("the folder {path} is used by another process; stop it, or choose another folder")]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The file was written by a newer program.
    #[error("the file has version {version}, this program knows versions up to {newest}; use a newer program")]
    Newer {
        /// Of the file.
        version: i64,
        /// The newest that is known.
        newest: i64,
    },
    /// A statement failed.
    #[error("the database of runs failed: {0}")]
    Database(#[from] sqlx::Error),
    /// A stored body is not what was written.
    #[error("{what} is damaged: {source}")]
    Damaged {
        /// Which row.
        what: String,
        /// What the decoder said.
        #[source]
        source: kindex_series::DecodeError,
    },
    /// The store is closed.
    #[error("the store of runs is closed")]
    Closed,
}

impl StoreError {
    /// As a client is told: nothing was stored, and the same request may be sent again.
    #[must_use]
    pub fn refusal(&self) -> Refusal {
        match self {
            Self::Damaged { .. } => Refusal::new(
                Code::Internal,
                "STORE_DAMAGED",
                format!("{self}. `kindex runs verify` lists all that is damaged."),
            ),
            Self::Folder { .. } | Self::InUse { .. } | Self::Newer { .. } | Self::Database(_) | Self::Closed => {
                let message = format!("{self}. Nothing was stored: send this again.");
                Refusal::new(Code::Unavailable, "STORE_UNAVAILABLE", message).again_after(RETRY_LATER)
            }
        }
    }
}

/// More waits to be written than memory is meant for.
pub(super) fn queue_full() -> Refusal {
    let message = "More waits to be written than fits into memory. Nothing was stored: send this again later.";
    Refusal::new(Code::ResourceExhausted, "QUEUE_FULL", message).again_after(RETRY_SOON)
}

/// More batches are held for those before them than disk is meant for.
pub(super) fn held_full() -> Refusal {
    let message = "Too many batches wait for batches of lower sequence. Nothing was stored: send the missing ones, \
                   or this again later.";
    Refusal::new(Code::ResourceExhausted, "HELD_BATCHES_FULL", message)
        .at("sequence")
        .again_after(RETRY_LATER)
}

/// Compaction is behind by more than the store is meant for.
pub(super) fn backlog_full() -> Refusal {
    let message = "More points wait for compaction than is allowed. Nothing was stored: send this again later.";
    Refusal::new(Code::ResourceExhausted, "BACKLOG_FULL", message).again_after(RETRY_SOON)
}
