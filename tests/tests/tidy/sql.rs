//! The shapes by which a text is taken for SQL, each with texts that have it. Knows no file and no dialect.

use std::sync::LazyLock;

use regex::{Match, Regex};

/// A pattern, and a text for each way to match it.
type Shape = (&'static str, &'static [&'static str]);

/// What every engine understands. Words in small letters may be English, so they need more of a statement around them.
const OF_ALL_ENGINES: &[Shape] = &[
    (
        "(CREATE|ALTER|DROP|ADD|MODIFY|RENAME) (TABLE|DATABASE|UNIQUE|INDEX|KEY|COLUMN)",
        &["DROP TABLE model", "ADD UNIQUE KEY place (seq)"],
    ),
    ("INSERT INTO", &["INSERT INTO {table} ({columns})"]),
    ("DELETE FROM", &["DELETE FROM {table}"]),
    (r"UPDATE \S+ SET", &["UPDATE model SET phase = 'a'"]),
    (r"\bSELECT\b", &["SELECT uid FROM model", "SELECT 1", "SELECT "]),
    (r"\bWHERE\b", &[" WHERE uid = ?"]),
    ("ORDER BY", &[" ORDER BY seq DESC"]),
    ("GROUP BY", &[" GROUP BY phase"]),
    (r"LIMIT (\?|\d|\{)", &[" LIMIT ?", " LIMIT 1", " LIMIT {rows}"]),
    (
        r"^\s*limit (\?|\d+|\{\w*\})\s*(;|$)",
        &[" limit ?", "limit 1;", " limit {rows}"],
    ),
    ("PRIMARY KEY", &["PRIMARY KEY (seq)"]),
    ("NOT NULL", &["uid TEXT NOT NULL"]),
    ("IS NULL", &["delete_time IS NULL"]),
    (
        "(ALGORITHM|LOCK|ENGINE|CHARSET)=",
        &["ALGORITHM=INPLACE", "LOCK=NONE", "ENGINE=InnoDB", "CHARSET=utf8mb4"],
    ),
    ("COLLATE", &["COLLATE utf8mb4_bin"]),
    ("AUTO_INCREMENT", &["seq BIGINT AUTO_INCREMENT"]),
    ("IF (NOT )?EXISTS", &["IF EXISTS model", "IF NOT EXISTS model"]),
    (
        r"\b(SAVEPOINT|ROLLBACK TO)\b",
        &["SAVEPOINT a", "RELEASE SAVEPOINT a", "ROLLBACK TO a"],
    ),
    (
        r"(^|\()\s*select [\w.*\[\](){}]+(, ?[\w.*\[\](){}]+)* from [\w.\[\]{}]*[\w\]}]\s*($|[;)]|(where|order|limit)\b)",
        &[
            "select uid from model",
            "select uid, name from model where phase = 'a'",
            "exists (select 1 from model)",
            "select count(*) from {table};",
        ],
    ),
    (
        r"^\s*(insert|replace) (ignore )?into [\w.\[\]{}]*[\w\]}]\s*($|\(|(values|select)\b)",
        &[
            "insert into x",
            "insert into [model] (uid)",
            "replace into model values (1)",
            "insert ignore into model select 1",
        ],
    ),
    (
        r"(^|;)\s*delete from [\w.\[\]{}]*[\w\]}]\s*($|;|where\b)",
        &[
            "delete from model",
            "delete from model where phase = 'a'",
            "delete from model;",
            "begin; delete from {table}; commit",
        ],
    ),
    (
        r"\bupdate [\w.\[\]{}]+ set [\w.\[\]{}]+ ?=",
        &["update model set phase = 'a'"],
    ),
    (
        r"\bwhere [\w.\[\]{}]+ ?(=|<>|[<>]=?|like|in \() ?\?",
        &["where uid = ?", "where seq>=?", "where name like ?", "where uid in (?)"],
    ),
];

/// What only one engine understands, or a few.
const OF_SOME_ENGINES: &[Shape] = &[
    ("ON DUPLICATE", &["ON DUPLICATE KEY UPDATE"]),
    ("ON CONFLICT", &[" ON CONFLICT DO NOTHING"]),
    (
        r"INSERT (IGNORE|OR)\b",
        &["INSERT IGNORE", "INSERT OR IGNORE", "INSERT OR REPLACE"],
    ),
    ("REPLACE INTO", &["REPLACE INTO model"]),
    (r"\bTRUNCATE [\w\[{]", &["TRUNCATE model", "TRUNCATE [{table}]"]),
    (
        r"\bSHOW (FULL |GLOBAL )?(TABLES|COLUMNS|INDEX|KEYS|CREATE|DATABASES|VARIABLES|STATUS)\b",
        &["SHOW TABLES", "SHOW FULL COLUMNS", "SHOW GLOBAL VARIABLES"],
    ),
    ("RETURNING", &[" RETURNING seq"]),
    (
        r"\b(FORCE|USE|IGNORE) INDEX\b",
        &[" FORCE INDEX (place)", " USE INDEX (place)", " IGNORE INDEX (place)"],
    ),
    ("STRAIGHT_JOIN", &["a STRAIGHT_JOIN b"]),
    ("FOR UPDATE", &[" FOR UPDATE"]),
    (
        r"LOCK IN SHARE MODE|\bFOR SHARE\b",
        &[" LOCK IN SHARE MODE", " FOR SHARE"],
    ),
    (r"SKIP LOCKED|\bNOWAIT\b", &[" SKIP LOCKED", " NOWAIT"]),
    ("NULLS (FIRST|LAST)", &["seq ASC NULLS FIRST", "seq DESC NULLS LAST"]),
    ("EXPLAIN", &["EXPLAIN {sql}"]),
    (
        r"GLOB|\bglob [?']",
        &["name GLOB ?", "name glob ?", "name glob '{text}'"],
    ),
    (r"REGEXP|\bregexp [?']", &["name REGEXP ?", "name regexp ?"]),
    ("<=>", &["[phase] <=> ?"]),
    (r"(?i:cast\()", &["CAST([seq] AS CHAR)", "cast([seq] as char)"]),
    (r"(?i:lpad\()", &["LPAD([name], 9, '0')", "lpad([name], 9, '0')"]),
    (
        r"(?i:length\()",
        &["LENGTH([uid]) = ?", "length([uid]) = ?", "char_length([uid]) = ?"],
    ),
    (
        r"(?i:hex\()",
        &["HEX([content_hash])", "hex([content_hash])", "unhex(?)"],
    ),
    (
        r"(?i:concat\()",
        &["CONCAT([namespace], [name])", "group_concat([name])"],
    ),
    (
        r"(?i:\b(ifnull|nvl)\()",
        &["IFNULL([phase], '')", "ifnull([phase], '')", "NVL([phase], '')"],
    ),
    (
        r"(?i:last_insert_(id|rowid))",
        &["LAST_INSERT_ID()", "last_insert_rowid()"],
    ),
    (r"(?i:(^|[ (,=])now\(\d?\))", &["NOW(6)", "[seen_time] < now()"]),
    ("(?i:strftime)", &["strftime('%s')", "STRFTIME('%s')"]),
    ("(?i:utc_timestamp)", &["UTC_TIMESTAMP(6)", "utc_timestamp(6)"]),
    (r"GET_LOCK|get_lock\(", &["GET_LOCK(?, 1)", "get_lock(?, 1)"]),
    (r"JSON_|\bjson_\w+\(", &["JSON_VALID([json])", "json_valid([json])"]),
    (
        r"::(bigint|integer|int[248]|numeric|timestamptz|jsonb|bytea|varchar)\b",
        &["1::bigint", "[seq]::int8", "?::jsonb"],
    ),
    // A module of Rust may be called `text`, too.
    (
        r"[\])?]::(text|date|int|json|uuid|boolean)\b",
        &["[uid]::text", "lower(?)::text", "?::uuid"],
    ),
    ("information_schema", &["information_schema.tables"]),
    ("sqlite_master", &["sqlite_master"]),
    ("pragma_|PRAGMA", &["pragma_table_info(?)", "PRAGMA user_version"]),
    (r"\bPRIMARY([^ ]|$)", &["(PRIMARY)", "PRIMARY"]),
];

static SQL: LazyLock<Regex> = LazyLock::new(|| one_of(OF_ALL_ENGINES));

static WORDS: LazyLock<Regex> = LazyLock::new(|| one_of(OF_SOME_ENGINES));

/// By these a text is a piece of SQL, and not a message that names something.
static PIECES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"\b(SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|SET|AND|OR|ORDER BY|IS NULL)\b|\bIN \(|[=<>] ?\?")
});

/// The names of types that only some engines have.
const TYPE_NAMES: &str = "tinyint|smallint|mediumint|bigint|varchar|mediumtext|longtext|datetime";

static TYPES: LazyLock<Regex> = LazyLock::new(|| pattern(&format!(r"(?i)\b({TYPE_NAMES})\b")));

/// A text that is only a type, such as `bigint unsigned` or `varchar({length})`.
static ONLY_TYPES: LazyLock<Regex> =
    LazyLock::new(|| pattern(&format!(r"(?i)^\W*({TYPE_NAMES})( unsigned)?(\([^)]*\))?\W*$")));

/// The SQL of any engine.
pub(super) fn any_sql(text: &str) -> Option<String> {
    let found = SQL.find(text).or_else(|| WORDS.find(text));
    found.map(|found| found.as_str().to_owned())
}

/// The SQL that engines do not share.
pub(super) fn sql_of_some_engines(text: &str) -> Option<String> {
    let is_quoted = || text == "`" || (text.contains('`') && PIECES.is_match(text));
    let word = WORDS.find(text).or_else(|| type_in(text));
    let word = word.map(|word| word.as_str().to_owned());
    word.or_else(|| is_quoted().then(|| "`".to_owned()))
}

/// A type of some engines in a text of SQL. A message may have the word, as `not a datetime` does.
fn type_in(text: &str) -> Option<Match<'_>> {
    let is_sql = || PIECES.is_match(text) || SQL.is_match(text);
    ONLY_TYPES.find(text).or_else(|| TYPES.find(text).filter(|_| is_sql()))
}

fn one_of(shapes: &[Shape]) -> Regex {
    let patterns: Vec<&str> = shapes.iter().map(|(pattern, _)| *pattern).collect();
    pattern(&patterns.join("|"))
}

pub(super) fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

#[test]
fn every_shape_has_a_text_that_is_found_by_it() {
    for (shape, texts) in OF_ALL_ENGINES.iter().chain(OF_SOME_ENGINES) {
        assert!(!texts.is_empty(), "{shape}");
        for text in *texts {
            assert!(pattern(shape).is_match(text), "{shape} does not find {text:?}");
            assert!(any_sql(text).is_some(), "{text:?}");
        }
    }
    for text in OF_SOME_ENGINES.iter().flat_map(|(_, texts)| *texts) {
        assert!(sql_of_some_engines(text).is_some(), "{text:?}");
    }
}

/// The SQL is listed once more, so that a shape cannot be removed with its texts without failing here.
#[test]
fn english_is_not_taken_for_sql() {
    let of_all = [
        " WHERE uid = ?",
        "select uid from model",
        "insert into x",
        "SAVEPOINT a",
        "SELECT uid FROM model",
        "delete from model;",
        " LIMIT {rows}",
        " limit ?",
    ];
    let of_some = [
        "REPLACE INTO model",
        "TRUNCATE model",
        "SHOW TABLES",
        "SELECT [uid] FROM [model] LOCK IN SHARE MODE",
        " USE INDEX ([place])",
        "IFNULL([phase], '')",
        "[phase] <=> ?",
        "LAST_INSERT_ID()",
        "NOW(6)",
        " SKIP LOCKED",
        "INSERT OR IGNORE INTO [model]",
        "::bigint",
        "[seq] ASC NULLS FIRST",
        "cast([seq] as char)",
        "length([uid]) = ?",
        "hex([content_hash])",
        "json_valid([json])",
        "name glob ?",
    ];
    for text in of_all.iter().chain(&of_some) {
        assert!(any_sql(text).is_some(), "{text:?} is SQL");
    }
    for text in of_some {
        assert!(sql_of_some_engines(text).is_some(), "{text:?} is SQL of some engines");
    }
    for text in [
        "select a page from",
        "select the newest from the list",
        "Select rows from JSON.",
        "insert into the list",
        "replace into what it was",
        "failed to delete from metadata storage",
        "delete from the cluster",
        "update the object and set a = b",
        "where this version has none",
        "kindex get pipelineruns --where state=FAILED",
        "LIKE compares texts, but the column holds numbers",
        "BATCH_TRUNCATED",
        "show tables of objects",
        "the lock is in share mode",
        "kindex_query::text::parse",
        "<[_]>::is_empty",
        "it is known by now (6 objects)",
        "it is in the way; delete from the list what is not needed",
        "limit {limit:?} is not a number of references: write 0 or more",
        "exceeding the limit {COPIED_BYTES_MAX}",
        "a length (in bytes), in hex (of a hash)",
        "the fields json_name and json_path",
        "a glob or a regexp",
    ] {
        assert_eq!(any_sql(text), None, "{text:?} is English");
        assert_eq!(sql_of_some_engines(text), None, "{text:?} is English");
    }
    for text in of_all {
        assert_eq!(sql_of_some_engines(text), None, "{text:?} is for all engines");
    }
}
