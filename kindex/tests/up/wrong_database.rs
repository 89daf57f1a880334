//! A database that is not one of Kindex, or is away: each command says so alike, soon, and with what to do.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use kindex_harness::ports::Closed;
use tempfile::TempDir;

use super::process::{KINDEX, wait_for};
use super::text_of;

const REFERENCE: &str = "model.michelangelo.api/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

const WHY: &[&str] = &["why", "modelfamily/fraud"];
const LIST: &[&str] = &["references", "list", "modelfamily/fraud"];
const DROP: &[&str] = &[
    "references",
    "drop",
    "modelfamily/fraud",
    REFERENCE,
    "--force",
    "--reason",
    "r",
];
const MOVE: &[&str] = &["move", "model/one", "--to", "modelfamily/fraud", "--dry-run"];
const CONVERT: &[&str] = &["versions", "convert", "--kind", "models", "--dry-run"];
/// Longer than any test waits.
const TIMEOUT: &[&str] = &["--timeout", "3600"];
const UP_ONCE: &[&str] = &[
    "up",
    "--once",
    "--api-addr",
    "127.0.0.1:0",
    "--health-addr",
    "127.0.0.1:0",
    "--listen",
    "127.0.0.1:0",
    "--runs-grpc-addr",
    "127.0.0.1:0",
    "--runs-rest-addr",
    "127.0.0.1:0",
];

/// A directory with a kubeconfig of a cluster at which nobody listens.
struct Stage {
    directory: TempDir,
    closed: Closed,
}

impl Stage {
    fn new() -> Self {
        let (directory, closed) = (tempfile::tempdir().expect("a directory"), Closed::take());
        let cluster = format!("{{name: it, cluster: {{server: 'http://{}'}}}}", closed.address);
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: it, clusters: [{cluster}],
              users: [{{name: it, user: {{}}}}], contexts: [{{name: it, context: {{cluster: it, user: it}}}}]}}"
        );
        std::fs::write(directory.path().join("kubeconfig"), text).expect("writable");
        Self { directory, closed }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The address of a file with this text.
    fn file(&self, text: &str) -> String {
        let path = self.path().join("kindex.db");
        std::fs::write(&path, text).expect("writable");
        format!("sqlite:{}", path.display())
    }

    /// The address of a file that is no database.
    fn no_database(&self) -> String {
        self.file(&"this is not a database\n".repeat(100))
    }

    fn command(&self, words: &[&str], database: &str) -> Command {
        let mut command = Command::new(KINDEX);
        command
            .args(words)
            .args(["--database", database])
            .current_dir(self.path());
        command.env("KUBECONFIG", self.path().join("kubeconfig"));
        command
    }

    fn run(&self, words: &[&str], database: &str) -> Output {
        self.command(words, database).output().expect("kindex runs")
    }

    /// What a command says that fails.
    fn refused(&self, words: &[&str], database: &str) -> String {
        let output = self.run(words, database);
        let said = text_of(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(!said.contains("WARN"), "{words:?}: {said}");
        said
    }
}

/// A command that may go on. It ends with the test.
struct Begun {
    process: Child,
    said: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Begun {
    fn new(mut command: Command) -> Self {
        let process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut process = process.expect("kindex runs");
        let lines = BufReader::new(process.stderr.take().expect("piped")).lines();
        let said = Arc::new(Mutex::new(String::new()));
        let kept = said.clone();
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut kept = kept.lock().expect("nobody panics with it");
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        Self {
            process,
            said,
            reader: Some(reader),
        }
    }

    fn output(&self) -> String {
        self.said.lock().expect("nobody panics with it").clone()
    }

    /// Waits for its end; its exit code, and all that it has said.
    fn ended(&mut self) -> (Option<i32>, String) {
        let mut ended = None;
        wait_for("the end of the command", || {
            ended = self.process.try_wait().expect("it was started");
            ended.is_some()
        });
        if let Some(reader) = self.reader.take() {
            reader.join().expect("it reads");
        }
        (ended.and_then(|status| status.code()), self.output())
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

#[test]
fn a_database_without_tables_is_the_wrong_one_for_every_command() {
    let stage = Stage::new();
    let database = stage.file("");
    let commands = [
        &["get", "models"][..],
        &["status"],
        &["verify"],
        &["quarantine", "list"],
        WHY,
        LIST,
        DROP,
        MOVE,
        CONVERT,
    ];
    for words in commands {
        let said = stage.refused(words, &database);
        assert!(said.contains("no such table"), "{words:?}: {said}");
        let hint = "\n  hint: is this the right --database, and has `kindex up` run on it?\n";
        assert!(said.ends_with(hint), "{words:?}: {said}");
        assert!(!said.contains("--service"), "{words:?}: {said}");
    }
}

/// As if it might become one within two minutes.
#[test]
fn a_file_that_is_no_database_is_not_asked_again() {
    let stage = Stage::new();
    let database = stage.no_database();
    for words in [
        &["get", "models"][..],
        &["verify"],
        &["quarantine", "list"],
        &["purge", "--dry-run"],
        WHY,
        LIST,
        MOVE,
        CONVERT,
    ] {
        let said = stage.refused(words, &database);
        assert!(said.contains("file is not a database"), "{words:?}: {said}");
        let hint = "\n  hint: is the file that --database names an SQLite database?\n";
        assert!(said.ends_with(hint), "{words:?}: {said}");
        assert!(!said.contains("Retrying"), "{words:?}: {said}");
    }
}

/// Each question of its own would wait as long as the first one.
#[test]
fn a_database_that_is_away_is_asked_once_and_that_is_said() {
    let stage = Stage::new();
    let address = stage.closed.address;
    let said = stage.refused(WHY, &format!("mysql://u:s3cret@{address}/db"));
    let lines: Vec<&str> = said.lines().collect();
    let [note, .., error, hint] = lines[..] else {
        panic!("{said}")
    };
    let waits = format!("note: the database mysql://u@{address}/db does not answer: ");
    assert!(note.starts_with(&waits) && note.contains("refused"), "{said}");
    assert!(error.starts_with("error: ") && error.contains("refused"), "{said}");
    assert!(hint.starts_with("  hint: does the database run"), "{said}");
}

#[test]
fn whoever_waits_for_rows_does_not_wait_for_a_file_that_is_no_database() {
    let stage = Stage::new();
    let database = stage.no_database();
    for words in [&["status", "--wait"][..], UP_ONCE] {
        let command = stage.command(&[words, TIMEOUT].concat(), &database);
        let (code, said) = Begun::new(command).ended();
        assert_eq!(code, Some(1), "{words:?}: {said}");
        assert!(said.contains("file is not a database"), "{words:?}: {said}");
        let hint = "\n  hint: is the file that --database names an SQLite database?\n";
        assert!(said.ends_with(hint), "{words:?}: {said}");
    }
}

/// As if it did nothing for two minutes.
#[test]
fn a_command_that_goes_on_without_its_database_says_so_and_keeps_the_password_to_itself() {
    let stage = Stage::new();
    let address = stage.closed.address;
    let begun = Begun::new(stage.command(&["verify"], &format!("mysql://u:s3cret@{address}/db")));
    wait_for("a note and its hint", || begun.output().contains("  hint: "));
    let said = begun.output();
    let note = format!("note: the database mysql://u@{address}/db does not answer: ");
    assert!(said.starts_with(&note), "{said}");
    assert!(
        said.contains(". Retrying for two minutes\n  hint: does the database run"),
        "{said}"
    );
    assert!(!said.contains("s3cret"), "{said}");
}
