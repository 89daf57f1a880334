//! What the errors of SQLite mean.

use sqlx::error::DatabaseError;

use crate::cause::Cause;
use crate::driver::Fault;

pub(super) fn classify(error: &dyn DatabaseError) -> Fault {
    let code = error.code().and_then(|code| code.parse::<u32>().ok());
    let says = |text| error.message().contains(text);
    match code {
        // SQLITE_ERROR is all that SQLite says about an unknown table or column.
        Some(1) if says("no such table") || says("no such column") || says("has no column named") => Fault::Schema,
        Some(code) => class_of(code),
        None => Fault::Refused,
    }
}

/// The low byte is the class, the rest says more about it. <https://sqlite.org/rescode.html>
fn class_of(code: u32) -> Fault {
    match code & 0xff {
        // SQLITE_BUSY and SQLITE_LOCKED: another process holds the file for long.
        5 | 6 => Fault::Retryable(Cause::LockWait),
        // SQLITE_NOMEM, SQLITE_FULL.
        7 | 13 => Fault::Retryable(Cause::Resources),
        // SQLITE_READONLY.
        8 => Fault::Retryable(Cause::ReadOnly),
        // SQLITE_INTERRUPT, SQLITE_PROTOCOL, SQLITE_SCHEMA.
        9 | 15 | 17 => Fault::Retryable(Cause::Aborted),
        // SQLITE_IOERR, SQLITE_CANTOPEN.
        10 | 14 => Fault::Retryable(Cause::Disk),
        // SQLITE_PERM, SQLITE_AUTH.
        3 | 23 => Fault::Retryable(Cause::Access),
        // SQLITE_CORRUPT, SQLITE_NOTADB: no data is to blame, and only a person can help.
        11 | 26 => Fault::Retryable(Cause::Damaged),
        _ => Fault::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_retried_and_what_does_not_is_refused() {
        // Plain and extended codes of busy, locked, full, read-only, I/O, cannot open.
        for code in [5, 517, 6, 262, 13, 8, 1032, 10, 778, 14, 7, 11, 26] {
            assert!(matches!(class_of(code), Fault::Retryable(_)), "{code}");
        }
        // Constraint with its kinds, mismatch, too big, range.
        for code in [19, 275, 1299, 1555, 20, 18, 25] {
            assert_eq!(class_of(code), Fault::Refused, "{code}");
        }
    }
}
