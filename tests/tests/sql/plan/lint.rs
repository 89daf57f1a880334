//! The lint: each page has an example, and the example is found; what is allowed passes; what is shipped is clean.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use kindex_codegen::lint::{Code, Report};
use kindex_codegen::plan::MigrationOptions;

use super::{FIELDS, Project, columns};

fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("a member of the workspace").to_owned()
}

fn lint(project: &Project) -> Report {
    kindex_codegen::lint(project.root()).unwrap_or_else(|errors| panic!("{errors}"))
}

fn codes(report: &Report) -> Vec<Code> {
    report.findings.iter().map(|finding| finding.code).collect()
}

/// The first block of that language.
fn block<'t>(page: &'t str, language: &str) -> Option<&'t str> {
    let (_, rest) = page.split_once(&format!("```{language}\n"))?;
    rest.split_once("```").map(|(block, _)| block)
}

/// A project whose second migration is this text.
fn with_migration(text: &str) -> Project {
    with_files(text, "-- 0002_example\n")
}

/// A project whose second migration has these texts.
fn with_files(mysql: &str, sqlite: &str) -> Project {
    let project = Project::planned(FIELDS);
    project.write("schema/migrations/0002_example.mysql.sql", mysql);
    project.write("schema/migrations/0002_example.sqlite.sql", sqlite);
    let artifacts = kindex_codegen::rehash(project.root()).unwrap_or_else(|errors| panic!("{errors}"));
    project.sync(&artifacts);
    project
}

#[test]
fn every_code_has_a_page_whose_example_is_found() {
    for code in Code::ALL {
        let page = fs::read_to_string(root().join(code.page())).unwrap_or_else(|error| panic!("{code}: {error}"));
        assert!(page.starts_with(&format!("# {code}: ")), "{code}");
        let repeated = block(&page, "sql,times=128").map(|text| text.repeat(128));
        let sql = repeated.as_deref().or_else(|| block(&page, "sql"));
        let project = match (sql, block(&page, "toml")) {
            (Some(text), _) => with_migration(text),
            (None, Some(text)) => Project::planned(text),
            (None, None) => panic!("{code} has no example"),
        };
        let report = lint(&project);
        assert!(codes(&report).contains(&code), "{code}: {report:#?}");
    }
}

#[test]
fn every_page_has_a_code_and_the_index_lists_it() {
    let directory = root().join("docs/src/reference/lint");
    let index = fs::read_to_string(directory.join("index.md")).expect("the index");
    let entries = fs::read_dir(&directory).expect("the pages");
    let names = entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned());
    let pages: BTreeSet<String> = names.filter(|name| name != "index.md").collect();
    let expected: BTreeSet<String> = Code::ALL
        .iter()
        .map(|code| format!("{}.md", code.as_str().to_lowercase()))
        .collect();
    assert_eq!(pages, expected);
    for page in pages {
        assert!(index.contains(&format!("({page})")), "{page} is not in the index");
    }
}

#[test]
fn what_is_shipped_has_no_finding() {
    let report = kindex_codegen::lint(&root()).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(report.findings, [], "run `kindex lint`");
}

#[test]
fn a_finding_says_where_and_what_to_do() {
    let report = lint(&with_migration(
        "-- 0002_example\n\n-- step: drop-table trial\nDROP TABLE `trial`;\n",
    ));
    let finding = &report.findings[0];
    assert_eq!(
        (finding.file.as_str(), finding.line, finding.column),
        ("schema/migrations/0002_example.mysql.sql", 3, 1)
    );
    let start = "schema/migrations/0002_example.mysql.sql:3:1: K101: dropping `trial`";
    assert!(finding.text.starts_with(start), "{}", finding.text);
    assert!(
        finding.text.contains("help: ") && finding.text.contains("k101.md"),
        "{}",
        finding.text
    );
}

#[test]
fn a_kind_that_goes_is_one_finding_and_not_four() {
    let other = "[kinds.Other]\nhistory = true\nfields = { spec = { size = \"int64\" } }\n";
    let project = Project::planned(&format!("{FIELDS}\n{other}"));
    project.declare(FIELDS);
    project.plan();
    assert_eq!(codes(&lint(&project)), [Code::K101]);
}

#[test]
fn additions_have_no_finding() {
    let project = Project::planned(&columns("owner = \"spec.owner\""));
    project.declare(&columns(
        "owner = { path = \"spec.owner\", key = true }\nsize = \"spec.size\"",
    ));
    project.plan();
    assert_eq!(lint(&project).findings, []);
}

#[test]
fn what_is_not_planned_yet_is_mentioned() {
    let project = Project::planned(&columns("owner = \"spec.owner\""));
    assert_eq!(lint(&project).reminder, None);
    project.declare(&columns(""));
    let reminder = lint(&project).reminder.expect("a column is to be dropped");
    assert!(reminder.contains("run `kindex plan`"), "{reminder}");
}

#[test]
fn what_a_server_copies_is_named_with_the_server() {
    let project = Project::planned(&columns(
        "owner = \"spec.owner\"\nsize = { path = \"spec.size\", sql = \"INT\" }",
    ));
    project.declare(&columns(
        "owner = { path = \"spec.owner\", sql = \"VARCHAR(300)\" }\nsize = \"spec.size\"",
    ));
    project.plan();
    let report = lint(&project);
    let messages: Vec<&str> = report.findings.iter().map(|finding| finding.message.as_str()).collect();
    let [owner, size] = messages.as_slice() else {
        panic!("two findings: {messages:?}");
    };
    assert!(owner.contains("copies the table on MySQL and blocks"), "{owner}");
    assert!(
        size.contains("copies the table on MySQL and MariaDB and blocks"),
        "{size}"
    );
}

#[test]
fn a_finding_passes_where_the_plan_says_so() {
    let project = Project::planned(&columns("owner = \"spec.owner\""));
    project.declare(&columns(""));
    let options = MigrationOptions {
        name: Some("without_owner".to_owned()),
        allowed: vec!["K103: nobody reads it".to_owned()],
    };
    let planned = kindex_codegen::plan(project.root(), &options).unwrap_or_else(|errors| panic!("{errors}"));
    project.sync(&planned.artifacts);
    let report = lint(&project);
    assert_eq!((report.findings.len(), report.allowed), (0, 1), "{report:#?}");
    let text = project.read("schema/migrations/0002_without_owner.mysql.sql");
    assert!(text.contains("\n-- kindex:allow K103: nobody reads it\n"), "{text}");
}

/// As if the lint read the files of one dialect.
#[test]
fn an_edit_is_found_in_the_file_of_each_dialect() {
    let step = "-- 0002_example\n\n-- step: add-key trial trial_owner\n";
    let online = ", ALGORITHM=INPLACE, LOCK=NONE;\n";
    let mysql = format!("{step}ALTER TABLE `trial` ADD KEY `trial_owner` (`owner`){online}");
    let unique = format!("{step}ALTER TABLE `trial` ADD UNIQUE KEY `trial_owner` (`owner`){online}");
    let sqlite = format!("{step}CREATE UNIQUE INDEX IF NOT EXISTS `trial_owner` ON `trial` (`owner`);\n");
    let [planned, edited] = ["mysql", "sqlite"].map(|word| format!("schema/migrations/0002_example.{word}.sql"));
    let files = |project: &Project| {
        let report = lint(project);
        assert!(codes(&report).iter().all(|code| *code == Code::K202), "{report:#?}");
        let files = report.findings.into_iter().map(|finding| finding.file);
        files.collect::<Vec<_>>()
    };
    assert_eq!(files(&with_files(&mysql, &sqlite)), [edited.as_str()]);
    assert_eq!(
        files(&with_files(&unique, &sqlite)),
        [planned.as_str(), edited.as_str()]
    );
    let allowed = sqlite.replacen('\n', "\n-- kindex:allow K202: owners are unique\n", 1);
    assert_eq!(files(&with_files(&unique, &allowed)), [planned.as_str()]);
}

/// As if each file of a migration had to have the finding, or none but the first could.
#[test]
fn an_allowance_of_a_migration_is_one_in_all_its_files() {
    let step = "-- kindex:allow K202: owners are unique\n\n-- step: add-key trial trial_owner\n";
    let mysql = format!(
        "-- 0002_example\n{step}ALTER TABLE `trial` ADD KEY `trial_owner` (`owner`), ALGORITHM=INPLACE, LOCK=NONE;\n"
    );
    let of = |statement: &str| lint(&with_files(&mysql, &format!("-- 0002_example\n{step}{statement}\n")));
    let used = of("CREATE UNIQUE INDEX IF NOT EXISTS `trial_owner` ON `trial` (`owner`);");
    assert_eq!((used.findings.len(), used.allowed), (0, 1), "{used:#?}");
    let unused = of("CREATE INDEX IF NOT EXISTS `trial_owner` ON `trial` (`owner`);");
    assert_eq!(codes(&unused), [Code::K902], "{unused:#?}");
    assert!(unused.findings[0].file.ends_with(".mysql.sql"), "{unused:#?}");
}

/// As if one file's allowance spoke for another step of the other file, or for one without its reason.
#[test]
fn an_allowance_that_reads_otherwise_is_none_of_the_others() {
    let step = |key: &str, allow: &str| format!("-- 0002_example\n\n-- step: add-key trial {key}\n{allow}\n");
    let mysql = |unique: &str| {
        let online = "ALGORITHM=INPLACE, LOCK=NONE";
        format!("ALTER TABLE `trial` ADD {unique}KEY `trial_owner` (`owner`), {online};\n")
    };
    let sqlite = |key: &str| format!("CREATE UNIQUE INDEX IF NOT EXISTS `{key}` ON `trial` (`owner`);\n");
    let (allow, bare) = ("-- kindex:allow K202: owners are unique", "-- kindex:allow K202");
    let of = |mysql: String, sqlite: String| {
        let findings = lint(&with_files(&mysql, &sqlite)).findings;
        let found = findings.into_iter().map(|finding| (finding.code, finding.file));
        found.collect::<Vec<_>>()
    };
    let file = |word: &str| format!("schema/migrations/0002_example.{word}.sql");

    let planned = step("trial_owner", allow) + &mysql("UNIQUE ");
    let edited = step("trial_owner", bare) + &sqlite("trial_owner");
    assert_eq!(of(planned, edited), [(Code::K901, file("sqlite"))]);

    let stale = step("trial_owner", allow) + &mysql("");
    let other = step("trial_phase", allow) + &sqlite("trial_phase");
    assert_eq!(of(stale, other), [(Code::K902, file("mysql"))]);
}

#[test]
fn an_allowance_reaches_its_own_kind_alone() {
    let kind = |name: &str, more: &str| {
        format!(
            "[kinds.{name}]\nfields = {{ spec = {{ done = \"bool\" }} }}\n\
             columns = {{ done = {{ path = \"spec.done\", key = true }} }}\n{more}\n"
        )
    };
    let project = Project::planned(&format!(
        "{}{}",
        kind("First", "allow = { K505 = \"few are done\" }"),
        kind("Second", "")
    ));
    let report = lint(&project);
    assert_eq!((codes(&report), report.allowed), (vec![Code::K505], 1));
    assert!(report.findings[0].message.contains("second_done"), "{report:#?}");
}

#[test]
fn an_allowance_that_lets_nothing_pass_is_found() {
    let project = Project::planned(&format!(
        "{FIELDS}\nallow = {{ K505 = \"few are done\", K999 = \"what\" }}\n"
    ));
    assert_eq!(codes(&lint(&project)), [Code::K902, Code::K902]);
}
