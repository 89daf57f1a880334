//! `kindex plan --against` as it is typed, on a SQLite database of a declaration's own.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tempfile::TempDir;

use super::plan::{KINDS, declare};
use super::text_of;

struct Project {
    root: TempDir,
}

impl Project {
    /// A declaration, and a database with the tables that it wants.
    fn new() -> Self {
        let root = TempDir::new().expect("a temporary directory");
        declare(root.path(), "");
        let project = Self { root };
        assert!(project.kindex(&["generate"]).status.success());
        let schema = fs::read_to_string(project.path().join("schema/sqlite_schema.sql")).expect("emitted");
        project.execute(&schema);
        project
    }

    fn path(&self) -> &Path {
        self.root.path()
    }

    fn kindex(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kindex"));
        command.args(args).current_dir(self.path());
        command
            .env_remove("KINDEX_LOG")
            .env("KINDEX_DATABASE", "sqlite:kindex.db");
        command.output().expect("kindex runs")
    }

    /// Exit code and what is printed.
    fn against(&self, more: &[&str]) -> (Option<i32>, String) {
        let output = self.kindex(&[&["plan", "--exit-code"], more, &["--against"]].concat());
        (output.status.code(), text_of(&output.stdout) + &text_of(&output.stderr))
    }

    fn execute(&self, sql: &str) {
        let options = SqliteConnectOptions::new().filename(self.path().join("kindex.db"));
        let executed = async {
            let mut connection = options.create_if_missing(true).connect().await?;
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
            connection.close().await
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(executed).expect(sql);
    }
}

#[test]
fn a_database_as_declared_has_no_difference() {
    let project = Project::new();
    project.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY)");
    let (code, text) = project.against(&[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("has the tables that crds.toml wants"), "{text}");
}

#[test]
fn every_difference_is_reported_with_both_sides_and_a_remedy() {
    let project = Project::new();
    project.execute("DROP TABLE trial_labels; DROP INDEX trial_create_time; ALTER TABLE trial DROP COLUMN owner");
    project.execute("ALTER TABLE trial ADD COLUMN remark TEXT; CREATE INDEX trial_mine ON trial (name)");
    declare(project.path(), "size = \"spec.size\"\n");
    let (code, text) = project.against(&[]);
    assert_eq!(code, Some(2), "{text}");
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| {
            line.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .collect()
        })
        .collect();
    for line in [
        ["trial", "column owner", "missing", "-", "text"],
        ["trial", "column size", "missing", "-", "integer"],
        ["trial", "column remark", "extra", "text", "-"],
        ["trial", "key trial_create_time", "missing", "-", "create_time, uid"],
        ["trial", "key trial_mine", "extra", "name", "-"],
        ["trial_labels", "table", "missing", "-", "a table"],
    ] {
        assert!(lines.contains(&line.to_vec()), "{line:?} is not in\n{text}");
    }
    let (_, json) = project.against(&["-o", "json"]);
    assert!(json.contains("\"state\": \"extra\""), "{json}");

    let sql = text_of(&project.kindex(&["plan", "--sql", "--against"]).stdout);
    assert!(
        sql.contains("-- fill trial owner,size: by `kindex migrate --adopt`"),
        "{sql}"
    );
    project.execute(&sql);
    let (code, text) = project.against(&[]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn a_table_of_a_kind_that_is_gone_is_extra() {
    let project = Project::new();
    assert!(project.kindex(&["plan"]).status.success());
    let other = KINDS.replace("Trial", "Probe");
    fs::write(project.path().join("crds.toml"), other).expect("writable");
    let (code, text) = project.against(&[]);
    assert_eq!(code, Some(2), "{text}");
    for line in ["trial ", "trial_labels ", "probe "] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line}: {text}");
    }
}

#[test]
fn a_database_that_is_not_there_is_not_made() {
    let project = Project::new();
    let output = project.kindex(&["plan", "--against", "sqlite:nowhere.db"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text_of(&output.stderr).contains("no database at nowhere.db"));
    assert!(!project.path().join("nowhere.db").exists());
}
