//! The SQL text of Kindex's own tables, and of preparing a database. Values are
//! parameters here as well.

use super::dialect::Dialect;
use super::driver::Statement;
use super::sql::{fixed, kept, quoted, safe};

/// Parameter: kind.
pub(super) fn checkpoint() -> Statement {
    fixed("SELECT `res_version` FROM `kindex_checkpoint` WHERE `kind` = ?")
}

/// Leaves a mark alone that is not the one that the caller knows. Parameters: version, now, kind, the least mark,
/// the known one.
pub(super) fn replace_checkpoint() -> Statement {
    fixed(
        "UPDATE `kindex_checkpoint` SET `res_version` = ?, `update_time` = ? \
         WHERE `kind` = ? AND (`res_version` < ? OR `res_version` = ?)",
    )
}

/// Changes a row only where none is there. Parameters: kind, version, now.
pub(super) fn first_checkpoint(dialect: Dialect) -> Statement {
    let (insert, otherwise) = dialect.insert_or_leave();
    kept(format!(
        "{insert} `kindex_checkpoint` (`kind`, `res_version`, `update_time`) VALUES (?, ?, ?){otherwise}"
    ))
}

/// Parameters: kind, uid, namespace, name, version, reason, text, now, now.
pub(super) fn quarantine(dialect: Dialect) -> Statement {
    let columns = [
        "kind",
        "uid",
        "namespace",
        "name",
        "res_version",
        "reason",
        "json",
        "first_time",
        "last_time",
        "attempts",
    ];
    replacing(
        dialect,
        "kindex_quarantine",
        &columns,
        "`kind`, `uid`",
        &["namespace", "name", "res_version", "reason", "json", "last_time"],
        ", `attempts` = `kindex_quarantine`.`attempts` + 1",
    )
}

/// Uid, version and reason of all recorded objects. Parameters: kind.
pub(super) fn quarantined() -> Statement {
    fixed("SELECT `uid`, `res_version`, `reason` FROM `kindex_quarantine` WHERE `kind` = ? ORDER BY `uid`")
}

/// Parameters: kind, the uid after which to begin, the limit.
pub(super) fn quarantine_page(dialect: Dialect) -> Statement {
    kept(format!(
        "SELECT `uid`, `namespace`, `name`, `res_version`, `reason`, `attempts`, {}, {} FROM `kindex_quarantine` \
         WHERE `kind` = ? AND `uid` > ? ORDER BY `uid` LIMIT ?",
        dialect.time_text("first_time"),
        dialect.time_text("last_time"),
    ))
}

/// Parameters: kind, uid, the newest version whose record goes.
pub(super) fn release_quarantine() -> Statement {
    fixed("DELETE FROM `kindex_quarantine` WHERE `kind` = ? AND `uid` = ? AND `res_version` <= ?")
}

/// The highest recorded schema version with its checksum.
pub(super) fn schema_version() -> Statement {
    fixed("SELECT `version`, `checksum` FROM `kindex_schema` ORDER BY `version` DESC LIMIT 1")
}

/// Parameters: version, checksum, now.
pub(super) fn record_schema(dialect: Dialect) -> Statement {
    replacing(
        dialect,
        "kindex_schema",
        &["version", "checksum", "applied_time"],
        "`version`",
        &["checksum", "applied_time"],
        "",
    )
}

/// Reads no row, and fails where one of the columns that the store writes is not there.
pub(super) fn probe(table: &str, columns: &[&str]) -> Statement {
    Statement {
        text: safe(format!("SELECT {} FROM `{table}` WHERE 1 = 0", quoted(columns))),
        keep: false,
    }
}

/// Creates a database. The name is the operator's own, from the address.
pub(super) fn create_database(name: &str) -> Statement {
    Statement {
        text: safe(format!(
            "CREATE DATABASE IF NOT EXISTS `{}` DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            name.replace('`', "``")
        )),
        keep: false,
    }
}

/// A statement of the emitted schema.
pub(super) fn schema_statement(text: &str) -> Statement {
    Statement {
        text: safe(text.to_owned()),
        keep: false,
    }
}

/// Leaves a checkpoint alone that is there. Parameters: kind, version, now.
pub(super) fn checkpoint_if_absent(dialect: Dialect) -> Statement {
    kept(format!(
        "INSERT INTO `kindex_checkpoint` (`kind`, `res_version`, `update_time`) VALUES (?, ?, ?){}",
        dialect.or_leave("kind", "`kind`"),
    ))
}

pub(super) fn replacing(
    dialect: Dialect,
    table: &str,
    columns: &[&str],
    key: &str,
    replaced: &[&str],
    more: &str,
) -> Statement {
    let assignments: Vec<String> = replaced
        .iter()
        .map(|column| format!("`{column}` = {}", dialect.inserted(column)))
        .collect();
    let values = columns
        .iter()
        .map(|column| if *column == "attempts" { "1" } else { "?" });
    kept(format!(
        "INSERT INTO `{table}` ({}) VALUES ({}){}{}{more}",
        quoted(columns),
        values.collect::<Vec<_>>().join(","),
        dialect.on_conflict(key),
        assignments.join(", "),
    ))
}
