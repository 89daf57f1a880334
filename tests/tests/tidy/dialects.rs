//! A dialect of SQL is a folder, in the generator and in the store, and nothing outside of the folders spells what
//! dialects differ in or asks which dialect it has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::expect_none;
use super::files::{File, all};
use super::rust::Rust;
use super::sources::RUST_FILES;
use super::sql::{any_sql, pattern, sql_of_some_engines};

/// A crate's sources, where each dialect has a folder.
struct Tree {
    source: &'static str,
    /// Where the folders lie.
    dialects: &'static str,
    /// What texts may spell in the folders alone.
    spelled: fn(&str) -> Option<String>,
    /// What code may say in the folders alone.
    asks: LazyLock<Regex>,
    /// Files or folders of the source in which a text may have it nevertheless.
    spelled_in: &'static [&'static str],
    /// Files or folders of the source, and the beginning of what code may say there nevertheless.
    asked_in: &'static [(&'static str, &'static str)],
}

/// The generator spells all SQL in the folders.
static GENERATOR: Tree = Tree {
    source: "codegen/src/",
    dialects: "codegen/src/dialect/",
    spelled: any_sql,
    asks: LazyLock::new(|| pattern(&format!(r"\b({}|{})\b", types(), words().join("|")))),
    // Who says to people what is wrong with a statement.
    spelled_in: &["diag/messages/"],
    asked_in: &[("dialect/mod.rs", "")],
};

/// The store has one SQL outside of the folders: names in brackets, and no words that only some engines know.
static STORE: Tree = Tree {
    source: "crates/store/src/",
    dialects: "crates/store/src/",
    spelled: sql_of_some_engines,
    asks: LazyLock::new(|| {
        let words = words().join("|");
        pattern(&format!(r"\b(Dialect|Self)::({}|\{{|\*)|\b({words})::", types()))
    }),
    spelled_in: &[],
    asked_in: &[("engines.rs", ""), ("lib.rs", "mysql::"), ("lib.rs", "sqlite::")],
};

/// Commands ask an address for its dialect, and the dialect for the rest.
static COMMANDS: Tree = Tree {
    source: "crates/commands/src/",
    dialects: "crates/commands/src/",
    spelled: any_sql,
    asks: LazyLock::new(one_dialect),
    spelled_in: &[],
    // Each engine has a stanza of its own.
    asked_in: &[("config/", "Address::")],
};

/// All other crates ask the store.
static ASKERS: Tree = Tree {
    source: "",
    dialects: "",
    spelled: any_sql,
    asks: LazyLock::new(one_dialect),
    spelled_in: &[],
    asked_in: &[],
};

/// Where the templates of the chart lie.
const TEMPLATES: &str = "deploy/helm/kindex/templates/";

/// Where the embedded cluster and runs have the SQL of their own SQLite files, for which nobody chooses an engine. All
/// else of these services has none.
const OWN_FILES: [&str; 5] = [
    "services/cluster/src/store/",
    "services/runs/src/artifacts/",
    "services/runs/src/keys/store.rs",
    "services/runs/src/read/",
    "services/runs/src/store/",
];

/// Whether the file is of a crate that has no database but through the store.
fn asks_the_store(path: &str) -> bool {
    let is_below = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
    is_below(&["crates/", "kindex/", "macros/", "runtime/", "services/"])
        && path.contains("/src/")
        && !is_below(&[STORE.source, COMMANDS.source])
        && !is_below(&OWN_FILES)
}

fn one_dialect() -> Regex {
    let types = types();
    pattern(&format!(
        r"\b(Address|Dialect|dialect)::({types}|\{{[^}}]*\b({types})\b)"
    ))
}

/// The folders' names.
fn words() -> Vec<&'static str> {
    kindex_codegen::dialect::ALL.map(|dialect| dialect.word()).into()
}

/// The names of the types, as a pattern has them.
fn types() -> String {
    kindex_codegen::dialect::ALL
        .map(|dialect| format!("{dialect:?}"))
        .join("|")
}

impl Tree {
    /// The folder of the dialect that a file belongs to, and the file's name in it.
    fn folder<'f>(&self, path: &'f str) -> Option<(&'f str, &'f str)> {
        let (folder, name) = path.strip_prefix(self.dialects)?.split_once('/')?;
        words().contains(&folder).then_some((folder, name))
    }

    /// Lines of a file that belong into a dialect's folder.
    fn findings(&self, file: &File, rust: &Rust) -> Vec<String> {
        let Some(inside) = file.path.strip_prefix(self.source) else {
            return Vec::new();
        };
        if self.folder(&file.path).is_some() {
            return Vec::new();
        }
        let mut findings = Vec::new();
        if !self.spelled_in.iter().any(|place| inside.starts_with(place)) {
            for (line, text) in rust.texts.iter().filter(|(line, _)| !rust.is_test(*line)) {
                if let Some(found) = (self.spelled)(text) {
                    findings.push(file.finding(*line, &format!("{found:?} is spelled outside of a dialect's folder")));
                }
            }
        }
        for (line, text) in rust.code.lines().enumerate().filter(|(line, _)| !rust.is_test(*line)) {
            let mut asked = self.asks.find_iter(text).map(|found| found.as_str());
            let may = |word: &str| {
                let mut places = self.asked_in.iter();
                places.any(|(place, start)| inside.starts_with(place) && word.starts_with(start))
            };
            if let Some(word) = asked.find(|word| !may(word)) {
                findings.push(file.finding(line, &format!("{word:?} asks for one dialect: ask the traits of all")));
            }
        }
        findings
    }
}

/// Whether the file is compiled without tests too, as the list of its folder says.
fn is_production(path: &str) -> bool {
    let Some((module, folder)) = module_and_folder(path) else {
        return true;
    };
    let lists = ["/lib.rs", "/main.rs", "/mod.rs", ".rs"].map(|list| format!("{folder}{list}"));
    let mut declares = RUST_FILES.iter().filter(|(file, _)| lists.contains(&file.path));
    declares.any(|(_, rust)| rust.modules.iter().any(|declared| declared == module))
}

/// `None` for the file that a crate begins with.
fn module_and_folder(path: &str) -> Option<(&str, &str)> {
    let module = path.strip_suffix("/mod.rs").unwrap_or(path.strip_suffix(".rs")?);
    let (folder, module) = module.rsplit_once('/')?;
    (!["lib", "main"].contains(&module)).then_some((module, folder))
}

#[test]
fn sql_is_spelled_in_the_folders_of_dialects_alone() {
    let mut found = Vec::new();
    for tree in [&GENERATOR, &STORE, &COMMANDS] {
        for (file, rust) in RUST_FILES.iter().filter(|(file, _)| file.path.starts_with(tree.source)) {
            if is_production(&file.path) {
                found.extend(tree.findings(file, rust));
            }
        }
    }
    for (file, rust) in RUST_FILES.iter().filter(|(file, _)| asks_the_store(&file.path)) {
        if is_production(&file.path) {
            found.extend(ASKERS.findings(file, rust));
        }
    }
    let files = all(&[".md", ".sh", ".txt", ".yaml"]);
    found.extend(files.iter().flat_map(spelled_in_template));
    expect_none(found);
}

/// Lines of a template of the generator that belong into a dialect's folder.
fn spelled_in_template(file: &File) -> Vec<String> {
    // A page for people has queries that every engine understands.
    let is_template = file.path.starts_with("codegen/templates/") && !file.path.ends_with("/sql_reference.md");
    let lines = file.text.lines().enumerate().filter(|_| is_template);
    let spelled = lines.filter(|(_, line)| any_sql(line).is_some());
    spelled
        .map(|(line, _)| file.finding(line, "SQL in a template"))
        .collect()
}

/// As if a script were no template.
#[test]
fn sql_in_a_template_is_found() {
    let text = "run_client --execute 'SELECT 1 FROM information_schema.tables'\n".to_owned();
    let path = "codegen/templates/x.sh".to_owned();
    assert_eq!(spelled_in_template(&File { path, text }).len(), 1);
}

/// Who knows one dialect finds his way in every other one, and who adds one copies a folder. A folder within a
/// dialect's is for what it alone can do.
#[test]
fn the_folders_of_dialects_have_the_same_files() {
    for tree in [&GENERATOR, &STORE] {
        let mut folders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (file, _) in RUST_FILES.iter() {
            if let Some((folder, name)) = tree.folder(&file.path)
                && !name.contains('/')
            {
                folders.entry(folder).or_default().insert(name);
            }
        }
        assert_eq!(
            folders.len(),
            words().len(),
            "a folder is called like its dialect's files"
        );
        let names: BTreeSet<&BTreeSet<&str>> = folders.values().collect();
        assert_eq!(names.len(), 1, "{folders:#?}");
    }
}

#[test]
fn the_generator_has_no_folder_but_those_of_dialects() {
    let inside = RUST_FILES.iter().filter_map(|(file, _)| {
        let (folder, _) = file.path.strip_prefix(GENERATOR.dialects)?.split_once('/')?;
        Some(folder)
    });
    assert_eq!(inside.collect::<BTreeSet<_>>(), words().into_iter().collect());
}

/// Tests of the store range over its list.
#[test]
fn the_store_lists_each_dialect_of_the_generator() {
    let of_store: Vec<String> = kindex_store::Dialect::ALL
        .iter()
        .map(|dialect| format!("{dialect:?}"))
        .collect();
    let of_generator: Vec<String> = kindex_codegen::dialect::ALL
        .iter()
        .map(|dialect| format!("{dialect:?}"))
        .collect();
    assert_eq!(of_store, of_generator);
}

/// The templates of the chart that name a dialect, and that this text does not name.
fn unlisted(table: &str, templates: &[File]) -> Vec<String> {
    let dialect = pattern(&format!(r"\b({})\b", words().join("|")));
    let mut findings = Vec::new();
    for template in templates.iter().filter(|file| file.path.starts_with(TEMPLATES)) {
        let name = template.path.rsplit('/').next().unwrap_or_default();
        if let Some(line) = template.text.lines().position(|line| dialect.is_match(line))
            && !["/", "`"]
                .iter()
                .any(|before| table.contains(&format!("{before}{name}`")))
        {
            findings.push(template.finding(line, "who adds a dialect is not told of this template"));
        }
    }
    findings
}

/// What names no dialect has it from `_helpers.tpl`, and stays as it is when there is one more.
#[test]
fn the_table_of_a_new_dialect_has_each_template_that_names_one() {
    let pages = all(&["CONTRIBUTING.md"]);
    let mut sections = pages.iter().flat_map(|page| page.text.split("\n## "));
    let table = sections.find(|section| section.starts_with("Add a dialect\n"));
    let templates = all(&[".yaml", ".tpl", "NOTES.txt"]);
    expect_none(unlisted(table.expect("the section is there"), &templates));
    let planted = File {
        path: format!("{TEMPLATES}claims.yaml"),
        text: "volumes:\n  - name: mysql\n".to_owned(),
    };
    let found = |table| unlisted(table, std::slice::from_ref(&planted)).len();
    assert_eq!(found("| `a/_helpers.tpl`, `schema.yaml` | a row |"), 1);
    assert_eq!(found("| `ingester_claims.yaml` | the end of another name |"), 1);
    assert_eq!(found("| `a/claims.yaml` | a row |"), 0);
    assert_eq!(found("| `a/_helpers.tpl`, `claims.yaml` | a row |"), 0);
}

fn found(tree: &Tree, path: &str, text: &str) -> usize {
    let file = File {
        path: format!("{}{path}", tree.source),
        text: text.to_owned(),
    };
    tree.findings(&file, &Rust::parse(text).expect("Rust")).len()
}

#[test]
fn a_statement_and_a_dialect_by_name_are_found() {
    let found = |text: &str| found(&GENERATOR, "emit/x.rs", text);
    assert_eq!(found("fn f() { let s = format!(\"DROP TABLE {t}\"); }"), 1);
    assert_eq!(found("fn f() -> bool { dialect == Dialect::MySql }"), 1);
    assert_eq!(found("use crate::dialect::{sqlite, Table};"), 1);
    assert_eq!(found("const TABLES: &str = \"SHOW TABLES\";"), 1);
    assert_eq!(
        found("/// MySql takes `DROP TABLE`.\nconst A: &str = \"schema/mysql_schema.sql\";"),
        0
    );
    assert_eq!(
        found("#[cfg(test)]\nmod tests { const A: &str = \"DROP TABLE t\"; }"),
        0
    );
}

#[test]
fn an_engines_sql_outside_of_its_folder_is_found() {
    let quoted = "fn f() -> Statement { fixed(\"SELECT `uid` FROM [thing]\") }";
    let later = "fn f() -> Statement {\n    fixed(\n        \"SELECT 1 \\\n         FROM `thing`\",\n    )\n}";
    let piece = "const WHOSE: &str = \"`uid` = ?\";";
    let list = "const WHOSE: &str = \"`uid` IN ({})\";";
    let decides = "fn f() -> bool { matches!(dialect, Dialect::MySql) }";
    let upsert = "const TAIL: &str = \" ON CONFLICT DO NOTHING\";";
    let driver = "use sqlx::{Executor, mysql::MySqlPool};";
    let length = "const SAME: &str = \"[uid] = ? AND LENGTH([uid]) = ?\";";
    let quotes = "fn spell(text: &str) -> String { text.replace(['[', ']'], \"`\") }";
    let type_name = "fn is_whole(word: &str) -> bool { matches!(word, \"int\" | \"bigint\") }";
    let sized = "fn spell(length: u32) -> String { format!(\"varchar({length})\") }";
    let column = "const ADDED: &str = \"ALTER TABLE [thing] ADD [size] BIGINT\";";
    let shared = "const LOCK: &str = \" LOCK IN SHARE MODE\";";
    let cast = "const BIT: &str = \"(1::bigint << 62)\";";
    let nulls = "const NEWEST: &str = \"[end_time] DESC NULLS LAST\";";
    let small_function = "const SAME: &str = \"[uid] = ? AND char_length([uid]) = ?\";";
    let small_cast = "fn spell(column: &str) -> String { format!(\"cast([{column}] as char)\") }";
    for planted in [
        quoted,
        later,
        piece,
        list,
        decides,
        upsert,
        driver,
        length,
        quotes,
        type_name,
        sized,
        column,
        shared,
        cast,
        nulls,
        small_function,
        small_cast,
    ] {
        assert_eq!(found(&STORE, "read/objects.rs", planted), 1, "{planted}");
        assert_eq!(found(&STORE, "mysql/writes.rs", planted), 0, "an engine's own");
        let test = format!("#[cfg(test)]\nmod tests {{\n{planted}\n}}\n");
        assert_eq!(found(&STORE, "read/objects.rs", &test), 0, "a test");
    }
    let message = "// ON CONFLICT\nconst A: &str = \"table `{table}` was made by another program\";";
    assert_eq!(found(&STORE, "read/objects.rs", message), 0);
    let type_in_message = "const A: &str = \"{text} is not a datetime\";";
    assert_eq!(found(&STORE, "read/objects.rs", type_in_message), 0);
    assert_eq!(
        found(&STORE, "migration/adopt/mod.rs", "use crate::mysql::adoption::alter;"),
        1
    );
}

#[test]
fn a_command_that_asks_for_one_dialect_is_found() {
    let matched = "fn f(address: &Address) -> bool { matches!(address, Address::MySql(_)) }";
    let imported = "use kindex_codegen::dialect::{Dialect, Sqlite};";
    for planted in [matched, imported] {
        assert_eq!(found(&COMMANDS, "against.rs", planted), 1, "{planted}");
    }
    assert_eq!(found(&COMMANDS, "config/mod.rs", matched), 0, "a stanza");
    assert_eq!(
        found(&COMMANDS, "plan.rs", "use kindex_codegen::dialect::{self, REFERENCE};"),
        0
    );
}

#[test]
fn sql_of_who_asks_the_store_is_found() {
    let statement = "fn f() -> &'static str { \"SELECT uid FROM model\" }";
    let change = "const CHANGE: &str = \"UPDATE model SET phase = 'a'\";";
    let piece = "const NEWEST: &str = \" ORDER BY seq DESC\";";
    let word = "const LIKE: &str = \"name GLOB ?\";";
    let condition = "const WHOSE: &str = \" WHERE uid = ?\";";
    let small = "const UIDS: &str = \"select uid from model\";";
    let deleted = "const ALL: &str = \"delete from model;\";";
    let limit = "fn f(rows: u32) -> String { format!(\" LIMIT {rows}\") }";
    let asked = "fn f(dialect: Dialect) -> bool { dialect == Dialect::Sqlite }";
    for planted in [statement, change, piece, word, condition, small, deleted, limit, asked] {
        for path in [
            "crates/maintenance/src/verify/scan.rs",
            "kindex/src/services/x.rs",
            "services/api/src/rest/x.rs",
            "services/cluster/src/rest/x.rs",
            "services/runs/src/keys/x.rs",
        ] {
            assert!(asks_the_store(path), "{path}");
            assert_eq!(found(&ASKERS, path, planted), 1, "{planted}");
        }
        assert_eq!(found(&COMMANDS, "show.rs", planted), 1, "{planted}");
    }
    let message = "// SELECT uid FROM model\nconst A: &str = \"select the newest from the list\";";
    assert_eq!(found(&ASKERS, "crates/query/src/text.rs", message), 0);
    for path in [
        "crates/store/src/read/objects.rs",
        "services/runs/src/store/read.rs",
        "services/migrator/tests/service/main.rs",
    ] {
        assert!(!asks_the_store(path), "{path}");
    }
    for own in OWN_FILES {
        let is_there = |file: &File| file.path.starts_with(own) && !asks_the_store(&file.path);
        assert!(RUST_FILES.iter().any(|(file, _)| is_there(file)), "{own}");
    }
}

#[test]
fn a_file_of_tests_alone_is_told_from_others() {
    assert!(!is_production("crates/store/src/statements/typed_queries.rs"));
    assert!(is_production("crates/store/src/statements/select.rs"));
    assert!(is_production("crates/store/src/statements/mod.rs"));
    assert!(is_production("crates/store/src/lib.rs"));
    assert!(
        is_production("crates/commands/src/cli/planning.rs"),
        "its list is a file beside the folder"
    );
    assert!(!is_production("crates/commands/src/restore/tests.rs"));
}
