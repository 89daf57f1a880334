//! A dialect of SQL is a folder, and nothing outside of the folders spells SQL or asks which dialect it has.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use super::expect_none;
use super::files::{File, all};
use super::rust::Rust;
use super::sources::RUST_FILES;

/// Where the generator's dialects lie, a folder each.
const DIALECTS: &str = "codegen/src/dialect/";

/// Who says to people what is wrong with a statement.
const MESSAGES: &str = "codegen/src/diag/messages/";

/// The folder of the dialect that a file belongs to, and the file's name in it.
fn folder(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix(DIALECTS)?.split_once('/')
}

fn sql() -> Regex {
    let statements = "(CREATE|ALTER|DROP|ADD|MODIFY|RENAME) (TABLE|DATABASE|UNIQUE|INDEX|KEY|COLUMN)|INSERT INTO|\
                      DELETE FROM|SELECT [^;]+ FROM|ORDER BY|PRIMARY KEY|NOT NULL|(ALGORITHM|LOCK|ENGINE|CHARSET)=|\
                      COLLATE|AUTO_INCREMENT|IF (NOT )?EXISTS";
    Regex::new(statements).expect("a pattern")
}

/// Lines of a file of the generator that belong into a dialect's folder.
fn findings(file: &File, rust: &Rust) -> Vec<String> {
    let sql = sql();
    let mut findings = Vec::new();
    for (line, text) in rust.texts.iter().filter(|(line, _)| !rust.is_test(*line)) {
        if let Some(found) = sql.find(text).filter(|_| !file.path.starts_with(MESSAGES)) {
            findings.push(file.finding(
                *line,
                &format!("`{}` is spelt outside of a dialect's folder", found.as_str()),
            ));
        }
    }
    let mut code = rust.code.lines().enumerate();
    let names = |line: &str| {
        let mut words = line.split(|c: char| c != '_' && !c.is_alphanumeric());
        words.any(|word| ["MySql", "Sqlite", "mysql", "sqlite"].contains(&word))
    };
    if file.path != format!("{DIALECTS}mod.rs") {
        let named = code.by_ref().filter(|(line, text)| !rust.is_test(*line) && names(text));
        findings.extend(named.map(|(line, _)| file.finding(line, "asks for one dialect: ask the trait `Dialect`")));
    }
    findings
}

#[test]
fn the_generator_spells_sql_in_the_folders_of_dialects_alone() {
    let of_codegen = RUST_FILES
        .iter()
        .filter(|(file, _)| file.path.starts_with("codegen/src/") && folder(&file.path).is_none());
    let mut found: Vec<String> = of_codegen.flat_map(|(file, rust)| findings(file, rust)).collect();
    let sql = sql();
    for template in all(&[".txt"]) {
        if template.path.starts_with("codegen/templates/") {
            let lines = template.text.lines().enumerate();
            let spelt = lines.filter(|(_, line)| sql.is_match(line));
            found.extend(spelt.map(|(line, _)| template.finding(line, "SQL in a template")));
        }
    }
    expect_none(found);
}

/// Who knows one dialect finds his way in every other one.
#[test]
fn the_folders_of_dialects_have_the_same_files() {
    let mut folders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (file, _) in RUST_FILES.iter() {
        if let Some((folder, name)) = folder(&file.path) {
            folders.entry(folder).or_default().insert(name);
        }
    }
    assert_eq!(
        folders.keys().copied().collect::<Vec<_>>(),
        kindex_codegen::dialect::ALL.map(|dialect| dialect.word()),
        "a folder is called like its dialect's files"
    );
    let names: BTreeSet<&BTreeSet<&str>> = folders.values().collect();
    assert_eq!(names.len(), 1, "{folders:#?}");
}

#[test]
fn a_statement_and_a_dialect_by_name_are_found() {
    let found = |text: &str| {
        let file = File {
            path: "codegen/src/emit/x.rs".to_owned(),
            text: text.to_owned(),
        };
        findings(&file, &Rust::parse(text).expect("Rust")).len()
    };
    assert_eq!(found("fn f() { let s = format!(\"DROP TABLE {t}\"); }"), 1);
    assert_eq!(found("fn f() -> bool { dialect == Dialect::MySql }"), 1);
    assert_eq!(found("use crate::dialect::{sqlite, Table};"), 1);
    assert_eq!(
        found("/// MySql takes `DROP TABLE`.\nconst A: &str = \"schema/mysql_schema.sql\";"),
        0
    );
    assert_eq!(
        found("#[cfg(test)]\nmod tests { const A: &str = \"DROP TABLE t\"; }"),
        0
    );
}
