//! What the schema files and the reference page say in this dialect alone.

use crate::dialect::InitScript;

/// Of the tables alone.
pub(super) const SCHEMA_TITLE: &str =
    "Kindex's tables on MySQL and MariaDB, in the database that the connection is in.";

/// The files that operators know from Michelangelo: the authoritative one, its complete copy, and the one that the
/// chart mounts. They are the same to the byte.
const INIT_PATHS: &[&str] = &[
    "schema/ingester_schema.sql",
    "schema/complete_ingester_schema.sql",
    "deploy/helm/kindex/files/schema/mysql-init-schema.sql",
];

/// Asks the server whether the tables are there, and are Kindex's.
const INIT_RUNNER: &str = include_str!("init_db.sh");

/// For a server without the database.
pub(super) fn init_script(database: &str) -> Option<InitScript> {
    Some(InitScript {
        title: "Creates Kindex's database and its tables on MySQL and MariaDB. May be run again at any time.",
        create_database: format!("CREATE DATABASE IF NOT EXISTS `{database}`;\nUSE `{database}`;"),
        paths: INIT_PATHS,
        runner: INIT_RUNNER,
    })
}

/// With the engine's own function.
pub(super) fn history_query(table: &str) -> Option<String> {
    let lines = [
        "SELECT h.seen_time, h.res_version, CONVERT(UNCOMPRESS(h.payload) USING utf8mb4) AS json",
        &format!("FROM {table}_history AS h"),
        &format!("JOIN {table} AS t ON t.uid = h.obj_uid"),
        "WHERE t.namespace = 'default'",
        "  AND t.name = 'example'",
        "ORDER BY h.branch, h.res_version;",
    ];
    Some(lines.join("\n"))
}
