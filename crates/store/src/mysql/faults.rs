//! What the errors of MySQL and MariaDB mean.

use crate::cause::Cause;
use crate::driver::Fault;

/// Numbers of both servers.
/// <https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html>
/// <https://mariadb.com/kb/en/mariadb-error-code-reference/>
pub(super) fn classify(number: u16) -> Fault {
    match number {
        // A row changed since the snapshot (MariaDB), deadlock, a new row was inserted by another writer.
        1020 => Fault::Conflict(Cause::Snapshot),
        1213 => Fault::Conflict(Cause::Deadlock),
        // No savepoint of this name: the transaction that had it was rolled back.
        1305 => Fault::Conflict(Cause::RolledBack),
        1062 => Fault::Conflict(Cause::Duplicate),
        // Shutting down, killed, gone, lost, aborted.
        1053 | 1927 | 3169 | 2006 | 2013 | 4031 | 1152 | 1158..=1161 => Fault::Connection(Cause::Connection),
        1040 | 1203 | 1226 => Fault::Retryable(Cause::TooManyConnections),
        1205 => Fault::Retryable(Cause::LockWait),
        1290 | 1792 | 1836 | 3989 => Fault::Elsewhere(Cause::ReadOnly),
        // A Galera node without its cluster, or not synchronized.
        1047 => Fault::Elsewhere(Cause::NotReady),
        // A commit that the cluster or the log turned down, a cancelled or too long statement.
        1180 | 1181 | 1637 | 1317 | 1969 | 3024 | 3101 => Fault::Retryable(Cause::Aborted),
        // Disk, temporary space, memory, lock table.
        3 | 1021 | 1026 | 1030 | 1037 | 1038 | 1041 | 1114 | 1197 | 1206 | 1297 => Fault::Retryable(Cause::Resources),
        // Access may be granted, a host unblocked, a password rotated.
        1044 | 1045 | 1129 | 1130 | 1142 | 1143 | 1698 => Fault::Retryable(Cause::Access),
        // Being altered or rebuilt.
        1412 | 1615 => Fault::Retryable(Cause::SchemaChange),
        1049 | 1054 | 1146 | 1176 => Fault::Schema,
        _ => Fault::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_retried_and_what_does_not_is_refused() {
        for number in [1020, 1213, 1305, 1062] {
            assert!(matches!(classify(number), Fault::Conflict(_)), "{number}");
        }
        for number in [1053, 2006, 2013, 1927] {
            assert!(matches!(classify(number), Fault::Connection(_)), "{number}");
        }
        for number in [1290, 1047, 1836] {
            assert!(matches!(classify(number), Fault::Elsewhere(_)), "{number}");
        }
        for number in [1040, 1203, 1205, 1180, 1181, 1021, 1114, 1045] {
            assert!(matches!(classify(number), Fault::Retryable(_)), "{number}");
        }
        for number in [1049, 1054, 1146] {
            assert_eq!(classify(number), Fault::Schema, "{number}");
        }
        // Too long, out of range, wrong value, packet too large, check failed (both servers).
        for number in [1406, 1264, 1366, 1292, 1048, 1153, 4025, 3819] {
            assert_eq!(classify(number), Fault::Refused, "{number}");
        }
    }
}
