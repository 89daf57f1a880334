//! What the servers have room for.
//! <https://dev.mysql.com/doc/refman/8.4/en/identifier-length.html>
//! <https://dev.mysql.com/doc/refman/8.4/en/innodb-limits.html>
//! <https://dev.mysql.com/doc/refman/8.4/en/column-count-limit.html>

use crate::dialect::Limits;

/// The same on MySQL and MariaDB. Keys are InnoDB's.
pub(super) const LIMITS: Limits = Limits {
    name_chars: 64,
    key_bytes: 3_072,
    row_bytes: 65_535,
};
