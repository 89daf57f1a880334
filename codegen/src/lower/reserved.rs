//! Words that cannot name a column: those that MySQL, MariaDB or SQLite reserve (a column of that name works only in
//! quotes, and people query these tables by hand), and those that Rust does not even accept as a raw identifier.
//!
//! <https://dev.mysql.com/doc/refman/9.1/en/keywords.html>, <https://mariadb.com/kb/en/reserved-words/>,
//! <https://sqlite.org/lang_keywords.html>

/// Sorted, for binary search.
#[rustfmt::skip]
const SQL: [&str; 277] = [
    "accessible", "add", "all", "alter", "analyze", "and", "as", "asc", "asensitive", "before", "between", "bigint",
    "binary", "blob", "both", "by", "call", "cascade", "case", "change", "char", "character", "check", "collate",
    "column", "commit", "condition", "constraint", "continue", "convert", "create", "cross", "cube", "cume_dist",
    "current_date", "current_role", "current_time", "current_timestamp", "current_user", "cursor", "database",
    "databases", "day_hour", "day_microsecond", "day_minute", "day_second", "dec", "decimal", "declare", "default",
    "deferrable", "delayed", "delete", "dense_rank", "desc", "describe", "deterministic", "distinct", "distinctrow",
    "div", "double", "drop", "dual", "each", "else", "elseif", "empty", "enclosed", "escape", "escaped", "except",
    "exists", "exit", "explain", "false", "fetch", "first_value", "float", "float4", "float8", "for", "force",
    "foreign", "from", "fulltext", "function", "general", "generated", "get", "grant", "group", "grouping", "groups",
    "having", "high_priority", "hour_microsecond", "hour_minute", "hour_second", "if", "ignore", "ignore_server_ids",
    "in", "index", "infile", "inner", "inout", "insensitive", "insert", "int", "int1", "int2", "int3", "int4", "int8",
    "integer", "intersect", "interval", "into", "io_after_gtids", "io_before_gtids", "is", "isnull", "iterate",
    "join", "json_table", "key", "keys", "kill", "lag", "last_value", "lateral", "lead", "leading", "leave", "left",
    "like", "limit", "linear", "lines", "load", "localtime", "localtimestamp", "lock", "long", "longblob", "longtext",
    "loop", "low_priority", "manual", "master_heartbeat_period", "match", "maxvalue", "mediumblob", "mediumint",
    "mediumtext", "middleint", "minute_microsecond", "minute_second", "mod", "modifies", "natural",
    "no_write_to_binlog", "not", "notnull", "nth_value", "ntile", "null", "numeric", "of", "offset", "on", "optimize",
    "optimizer_costs", "option", "optionally", "or", "order", "out", "outer", "outfile", "over", "parallel",
    "partition", "percent_rank", "precision", "primary", "procedure", "purge", "qualify", "range", "rank", "read",
    "read_write", "reads", "real", "recursive", "references", "regexp", "release", "rename", "repeat", "replace",
    "require", "resignal", "restrict", "return", "returning", "revoke", "right", "rlike", "row", "row_number", "rows",
    "schema", "schemas", "second_microsecond", "select", "sensitive", "separator", "set", "show", "signal", "slow",
    "smallint", "spatial", "specific", "sql", "sql_big_result", "sql_calc_found_rows", "sql_small_result",
    "sqlexception", "sqlstate", "sqlwarning", "ssl", "starting", "stored", "straight_join", "system", "table",
    "tablesample", "terminated", "then", "tinyblob", "tinyint", "tinytext", "to", "trailing", "transaction",
    "trigger", "true", "undo", "union", "unique", "unlock", "unsigned", "update", "usage", "use", "using", "utc_date",
    "utc_time", "utc_timestamp", "values", "varbinary", "varchar", "varcharacter", "varying", "virtual", "when",
    "where", "while", "window", "with", "write", "xor", "year_month", "zerofill",
];

/// Keywords that have no raw form.
const RUST: [&str; 3] = ["crate", "self", "super"];

/// Keywords that a module cannot be named without the raw form, which nobody wants to type.
#[rustfmt::skip]
const RUST_MODULE: [&str; 46] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match",
    "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait",
    "true", "try", "type", "unsafe", "use", "where",
];

/// Who reserves `name`, if somebody does.
pub(super) fn column(name: &str) -> Option<&'static str> {
    if SQL.binary_search(&name).is_ok() {
        Some("SQL")
    } else if RUST.contains(&name) {
        Some("Rust")
    } else {
        None
    }
}

/// Whether `name` is a Rust keyword and so cannot be the module of a kind.
pub(super) fn module(name: &str) -> bool {
    RUST_MODULE.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::SQL;

    #[test]
    fn the_words_are_sorted() {
        assert!(SQL.is_sorted(), "binary search needs order");
    }
}
