//! Kindex's own tables, which the generator emits: in schemas that people write, of kinds that crds.toml refuses or
//! whose crates lie below the emitted one, they are the same, and the statements of the store name no others. Knows
//! nothing of the tables of kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::expect_none;
use super::files::{File, root};
use super::rust::Rust;
use super::sources::{RUST_FILES, is_test};

/// All of them. A migration stays as it was when it was planned.
const SCHEMAS: [&str; 5] = [
    "benches/src/run.sql",
    "benches/src/run.sqlite.sql",
    "tests/sim/src/thing.sqlite.sql",
    "tests/tests/sql/store/widget.mysql.sql",
    "tests/tests/sql/store/widget.sqlite.sql",
];

/// The emitted schema in the dialect of a file.
fn emitted_beside(path: &str) -> &'static str {
    match path.ends_with(".sqlite.sql") {
        true => "schema/sqlite_schema.sql",
        false => "schema/mysql_schema.sql",
    }
}

/// How names of metrics of the store begin, which are texts like those of tables.
const METRICS: &str = "kindex_database_";

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn own_tables_are_the_same_in_every_schema() {
    let mut findings = Vec::new();
    for path in SCHEMAS {
        let file = File {
            path: path.to_owned(),
            text: read(path),
        };
        assert!(!own_tables(&file.text).is_empty(), "{path} has tables of Kindex");
        findings.extend(differences(&file, &read(emitted_beside(path))));
    }
    expect_none(findings);
}

/// A finding for each of Kindex's own tables in a file that is not as in the emitted schema. One that is not in the
/// file is missed by whoever needs it.
fn differences(file: &File, emitted: &str) -> Vec<String> {
    let emitted = own_tables(emitted);
    let differ = own_tables(&file.text).into_iter();
    let differ = differ.filter(|(table, statements)| emitted.get(table) != Some(statements));
    let findings = differ.map(|(table, _)| format!("{}: `{table}` is not as the generator emits it", file.path));
    findings.collect()
}

/// Kindex's own tables, each with the statements that create it and its indexes, without line breaks.
fn own_tables(schema: &str) -> BTreeMap<String, BTreeSet<String>> {
    let lines = schema.lines().filter(|line| !line.trim_start().starts_with("--"));
    let text: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    let mut tables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for statement in text.join(" ").split(';').map(str::trim) {
        if let Some(table) = table(statement).filter(|table| table.starts_with("kindex_")) {
            tables.entry(table.to_owned()).or_default().insert(statement.to_owned());
        }
    }
    tables
}

/// The table that a statement creates, or to which it adds an index.
fn table(statement: &str) -> Option<&str> {
    let created = statement.strip_prefix("CREATE TABLE IF NOT EXISTS `");
    let indexed = || Some(statement.strip_prefix("CREATE ")?.split_once(" ON `")?.1);
    created.or_else(indexed)?.split('`').next()
}

/// As if only the names of tables were compared, or only statements that create tables; and as if the breaks of lines
/// counted, or tables of kinds.
#[test]
fn an_own_table_that_differs_is_found() {
    let emitted = "-- What is emitted; and more.\nCREATE TABLE IF NOT EXISTS `kindex_a` (\n    `x` TEXT NOT NULL\n) \
                   STRICT;\nCREATE INDEX IF NOT EXISTS `kindex_a_x` ON `kindex_a` (`x`);\n\nCREATE TABLE IF NOT EXISTS \
                   `kindex_b` (`y` TEXT) STRICT;\nCREATE TABLE IF NOT EXISTS `thing` (`z` TEXT) STRICT;\n";
    let found = |text: &str| {
        let path = "x.sqlite.sql".to_owned();
        let text = text.to_owned();
        differences(&File { path, text }, emitted)
    };
    let differs = ["x.sqlite.sql: `kindex_a` is not as the generator emits it"];
    let none: [&str; 0] = [];
    assert_eq!(found(emitted), none);
    assert_eq!(found(&emitted.replace("    ", "\n  ")), none, "the same in more lines");
    assert_eq!(found(&emitted.replace("`x` TEXT NOT NULL", "`x` TEXT")), differs);
    assert_eq!(found(&emitted.replace("(`x`)", "(`x`, `y`)")), differs, "an index");
    let (before, after) = emitted.split_once("CREATE INDEX").expect("an index");
    let (_, after) = after.split_once(';').expect("its end");
    assert_eq!(found(&format!("{before}{after}")), differs, "no index");
    assert_eq!(found(&emitted.replace("`z`", "`w`")), none, "of a kind");
    assert_eq!(
        found("CREATE TABLE IF NOT EXISTS `kindex_b` (`y` TEXT) STRICT;\n"),
        none
    );
}

/// Kindex's own tables and their keys.
fn own_names(schema: &str) -> BTreeSet<&str> {
    let quoted = schema.split('`').skip(1).step_by(2);
    quoted.filter(|name| name.starts_with("kindex_")).collect()
}

/// The own tables and keys that a text of the store names: in brackets, as statements do, or alone.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let in_brackets = text.split('[').skip(1).filter_map(|rest| rest.split(']').next());
    let names = in_brackets.chain([text]);
    let is_name = |name: &&str| name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
    names.filter(move |name| name.starts_with("kindex_") && is_name(name) && !name.starts_with(METRICS))
}

/// The names of own tables and keys in the texts of a file that no schema has.
fn unknown_names(file: &File, rust: &Rust, emitted: &str) -> Vec<String> {
    let known = own_names(emitted);
    let mut findings = Vec::new();
    for (line, text) in rust.texts.iter().filter(|(line, _)| !is_test(file, rust, *line)) {
        let unknown = named(text).filter(|name| !known.contains(name));
        findings.extend(unknown.map(|name| file.finding(*line, &format!("no schema has `{name}`"))));
    }
    findings
}

/// An engine says so only where a test runs the statement.
#[test]
fn the_statements_of_the_store_name_tables_that_are_emitted() {
    let emitted = read("schema/mysql_schema.sql");
    let is_of_store = |file: &File| file.path.starts_with("crates/store/src/");
    let sources = RUST_FILES.iter().filter(|(file, _)| is_of_store(file));
    let count: usize = sources
        .clone()
        .map(|(_, rust)| rust.texts.iter().flat_map(|(_, text)| named(text)).count())
        .sum();
    assert!(count > 40, "the walk finds the statements, not only {count} names");
    let found = sources.flat_map(|(file, rust)| unknown_names(file, rust, &emitted));
    expect_none(found.collect());
}

/// A comparison of texts that are only a name, or only of names in brackets, would miss one of these.
#[test]
fn a_table_that_no_schema_has_is_found() {
    let emitted = "CREATE TABLE `kindex_outbox` (`kind` TEXT, KEY `kindex_outbox_position` (`kind`))";
    let found = |code: &str| {
        let file = File {
            path: "crates/store/src/x.rs".to_owned(),
            text: code.to_owned(),
        };
        unknown_names(&file, &Rust::parse(code).expect("it compiles"), emitted).len()
    };
    for planted in [
        "const ALL: &str = \"SELECT [uid] FROM [kindex_outbx] WHERE [kind] = ?\";",
        "fn f() -> String { spelling.delete_from(\"kindex_outbx\", \"PRIMARY\") }",
        "fn f() -> String { spelling.delete_from(\"kindex_outbox\", \"kindex_outbox_uid\") }",
    ] {
        assert_eq!(found(planted), 1, "{planted}");
        let test = format!("#[cfg(test)]\nmod tests {{\n{planted}\n}}\n");
        assert_eq!(found(&test), 0, "a test");
    }
    for known in [
        "const ALL: &str = \"SELECT [uid] FROM [kindex_outbox] WHERE [kind] = ?\";",
        "const KEY: &str = \"kindex_outbox_position\";",
        "const GAUGE: &str = \"kindex_database_connections\";",
        "const MESSAGE: &str = \"kindex_outbx is a table of people\";",
    ] {
        assert_eq!(found(known), 0, "{known}");
    }
}
