//! What can go wrong between the store and its file, and what a client is told of it.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use crate::refusal::{Code, Refusal};

/// When to try again where the disk or the file is the reason.
const RETRY_LATER: Duration = Duration::from_secs(5);
/// When to try again where too much waits.
const RETRY_SOON: Duration = Duration::from_secs(1);
/// Primary codes of SQLite.
const SQLITE_READONLY: u32 = 8;
const SQLITE_FULL: u32 = 13;

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
    /// A file is not the one that was opened.
    #[error("the file {path} was moved away or replaced while the service runs; put it back, or restart the service")]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// Something panicked that worked on what was read.
    #[error("a defect ended the work on what was read; please report what was logged before")]
    Panicked,
    /// The store is closed.
    #[error("the store of runs is closed")]
    Closed,
}

/// Why nothing is written.
enum Cause {
    DiskFull,
    ReadOnly,
    Unavailable,
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
            Self::Folder { .. }
            | Self::InUse { .. }
            | Self::Newer { .. }
            | Self::Database(_)
            | Self::Gone { .. }
            | Self::Panicked
            | Self::Closed => {
                let message = format!("{}. Nothing was stored: send this again.", self.reason());
                Refusal::new(Code::Unavailable, self.word(), message).again_after(RETRY_LATER)
            }
        }
    }

    /// What is wrong, as whoever keeps the service running is told.
    #[must_use]
    pub fn reason(&self) -> String {
        match self.cause() {
            Cause::DiskFull => format!("{self}: make room on the disk of the runs"),
            Cause::ReadOnly => format!("{self}: make the directory of the runs writable"),
            Cause::Unavailable => self.to_string(),
        }
    }

    /// Why nothing is written, as a word.
    pub(super) fn word(&self) -> &'static str {
        match self.cause() {
            Cause::DiskFull => "DISK_FULL",
            Cause::ReadOnly => "STORE_READ_ONLY",
            Cause::Unavailable => "STORE_UNAVAILABLE",
        }
    }

    fn cause(&self) -> Cause {
        let kind = match self {
            Self::Folder { source, .. } | Self::Database(sqlx::Error::Io(source)) => Some(source.kind()),
            _ => None,
        };
        match (self.sqlite_code(), kind) {
            (Some(SQLITE_FULL), _) | (_, Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded)) => Cause::DiskFull,
            (Some(SQLITE_READONLY), _) | (_, Some(ErrorKind::ReadOnlyFilesystem)) => Cause::ReadOnly,
            _ => Cause::Unavailable,
        }
    }

    /// The primary code of SQLite: <https://sqlite.org/rescode.html>
    pub(super) fn sqlite_code(&self) -> Option<u32> {
        let Self::Database(sqlx::Error::Database(error)) = self else {
            return None;
        };
        error
            .code()
            .and_then(|code| code.parse::<u32>().ok())
            .map(|code| code & 0xff)
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

#[cfg(test)]
mod tests {
    use sqlx::ConnectOptions as _;
    use sqlx::sqlite::SqliteConnectOptions;

    use super::*;

    #[tokio::test]
    async fn a_file_that_may_only_be_read_and_a_full_disk_are_told_apart() {
        let options = SqliteConnectOptions::new().filename(":memory:");
        let mut connection = options.connect().await.expect("memory");
        let create = "PRAGMA max_page_count = 1; CREATE TABLE t (x)";
        for (statement, word, says) in [
            (create, "DISK_FULL", "make room"),
            (
                "PRAGMA query_only = 1; CREATE TABLE t (x)",
                "STORE_READ_ONLY",
                "writable",
            ),
            ("no SQL", "STORE_UNAVAILABLE", "syntax error"),
        ] {
            let failed = sqlx::raw_sql(statement).execute(&mut connection).await;
            let error = StoreError::from(failed.expect_err("it fails"));
            assert_eq!(error.refusal().reason, word, "{error}");
            assert!(error.reason().contains(says), "{}", error.reason());
        }
        for (kind, word) in [
            (ErrorKind::StorageFull, "DISK_FULL"),
            (ErrorKind::QuotaExceeded, "DISK_FULL"),
            (ErrorKind::ReadOnlyFilesystem, "STORE_READ_ONLY"),
            (ErrorKind::PermissionDenied, "STORE_UNAVAILABLE"),
        ] {
            let error = StoreError::Folder {
                path: PathBuf::from("probe"),
                source: kind.into(),
            };
            let refusal = error.refusal();
            assert_eq!((refusal.code, refusal.reason), (Code::Unavailable, word));
            assert!(refusal.retry_after.is_some());
        }
    }
}
