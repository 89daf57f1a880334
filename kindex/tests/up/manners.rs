//! What every command does alike: with a reader that stops early, a disk that is full, words that are mistyped, and a
//! directory that is taken.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Output, Stdio};
use std::thread;

use kindex_harness::ports::Closed;
use tempfile::TempDir;

use super::process::{KINDEX, Running};
use super::text_of;

fn kindex(args: &[&str], stdout: impl Into<Stdio>, stderr: impl Into<Stdio>) -> Output {
    let mut command = Command::new(KINDEX);
    command.args(args).stdout(stdout).stderr(stderr);
    let child = command.spawn().expect("kindex starts");
    child.wait_with_output().expect("it ends")
}

#[test]
fn a_reader_that_has_seen_enough_ends_no_command_with_a_panic() {
    let run = Running::samples_without_ingester();
    let data_dir = run.data_dir();
    let data_dir = data_dir.to_str().expect("a path of letters");
    let of_the_run = ["--data-dir", data_dir];
    for words in [&["completions", "bash"][..], &["query"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = kindex(words, writer, Stdio::piped());
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text_of(&output.stderr));
    }
    for words in [
        &["get", "models", "-o", "json"][..],
        &["verify"],
        &["status"],
        &["backfill"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = kindex(&[words, &of_the_run].concat(), writer, Stdio::piped());
        assert_ne!(
            output.status.code(),
            Some(101),
            "{words:?}: {}",
            text_of(&output.stderr)
        );
        assert!(!text_of(&output.stderr).contains("panicked"), "{words:?}");
    }
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = kindex(&["get", "nothing"], Stdio::null(), writer);
    assert_eq!(
        output.status.code(),
        Some(2),
        "the error has no reader, and the exit code says it"
    );
}

#[test]
fn a_full_disk_is_reported_and_fails() {
    let full = OpenOptions::new().write(true).open("/dev/full").expect("a full disk");
    let output = kindex(&["query"], full, Stdio::piped());
    let reported = text_of(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{reported}");
    assert!(reported.starts_with("error: stdout: "), "{reported}");
}

#[test]
fn bash_completes_what_can_be_typed() {
    let script = "
        eval \"$(\"$0\" completions bash)\"
        COMP_WORDS=(kindex sta); COMP_CWORD=1; _kindex kindex sta kindex; echo \"${COMPREPLY[@]}\"
        COMP_WORDS=(kindex get models -o w); COMP_CWORD=4; _kindex kindex w -o; echo \"${COMPREPLY[@]}\"
        COMP_WORDS=(kindex why pipelineru); COMP_CWORD=2; _kindex kindex pipelineru why; echo \"${COMPREPLY[@]}\"
        COMP_WORDS=(kindex status -k modelf); COMP_CWORD=3; _kindex kindex modelf -k; echo \"${COMPREPLY[@]}\"";
    let output = Command::new("bash")
        .args(["-c", script, KINDEX])
        .output()
        .expect("bash runs");
    let reported = text_of(&output.stderr);
    assert_eq!(
        text_of(&output.stdout),
        "status\nwide\npipelineruns\nmodelfamilys\n",
        "{reported}"
    );
}

#[test]
fn one_run_has_a_data_directory_and_a_second_one_is_turned_away() {
    let mut run = Running::start(&[]);
    let kubeconfig = run.data_dir().join("kubeconfig");
    let before = std::fs::read(&kubeconfig).expect("a kubeconfig");
    let flags = [
        "--api-addr",
        "127.0.0.1:0",
        "--health-addr",
        "127.0.0.1:0",
        "--listen",
        "127.0.0.1:0",
    ];
    let output = run.command(&[&["up", "--once"][..], &flags].concat());
    let reported = text_of(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{reported}");
    assert!(
        reported.contains("another `kindex up` runs in the data directory"),
        "{reported}"
    );
    assert!(reported.contains("--data-dir"), "{reported}");
    assert_eq!(std::fs::read(&kubeconfig).expect("a kubeconfig"), before);
    // A process that was killed keeps nothing.
    run.kill();
    run.restart();
}

/// A kubeconfig of a cluster at this address beside a database without tables, and the flags that name both.
fn beside_cluster(address: SocketAddr) -> (TempDir, [String; 4]) {
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    let cluster = format!("{{name: it, cluster: {{server: 'http://{address}'}}}}");
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: it, clusters: [{cluster}], users: [{{name: it, user: {{}}}}],
          contexts: [{{name: it, context: {{cluster: it, user: it}}}}]}}"
    );
    std::fs::write(&kubeconfig, text).expect("writable");
    let database = directory.path().join("kindex.db");
    std::fs::write(&database, "").expect("a database without tables");
    let (kubeconfig, database) = (kubeconfig.display(), database.display());
    let flags = [
        "--database".to_owned(),
        format!("sqlite:{database}"),
        "--kubeconfig".to_owned(),
        kubeconfig.to_string(),
    ];
    (directory, flags)
}

/// It takes connections and says nothing.
fn silent() -> (TcpListener, SocketAddr) {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("bound");
    (silent, address)
}

#[test]
fn a_cluster_that_does_not_answer_is_reported_while_it_is_retried() {
    let (_silent, address) = silent();
    let (_directory, flags) = beside_cluster(address);
    let mut child = Command::new(KINDEX)
        .arg("verify")
        .args(flags)
        .stderr(Stdio::piped())
        .spawn()
        .expect("kindex starts");
    let stderr = BufReader::new(child.stderr.take().expect("piped"));
    let reported = stderr
        .lines()
        .map_while(Result::ok)
        .find(|line| line.starts_with("note: "));
    child.kill().expect("it asks for two minutes");
    child.wait().expect("it was started");
    let reported = reported.expect("a note");
    assert!(
        reported.contains(&format!("the cluster at http://{address}/ does not answer")),
        "{reported}"
    );
}

/// As if they asked for minutes, and the client of the cluster told of each attempt.
#[test]
fn a_cluster_that_does_not_answer_ends_commands_that_do_not_wait_for_it() {
    let (closed, (_silent, silent)) = (Closed::take(), silent());
    // The first one makes the tables that the others read.
    let commands: [&[&str]; 3] = [&["release", "--dry-run"], &["status"], &["versions"]];
    for (address, cause, commands) in [
        (closed.address, "refused", &commands[..]),
        (silent, "nothing within 10 s", &commands[..1]),
    ] {
        let (_directory, flags) = beside_cluster(address);
        let flags = flags.each_ref().map(String::as_str);
        for &words in commands {
            let output = kindex(&[words, &flags].concat(), Stdio::null(), Stdio::piped());
            let reported = text_of(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{words:?}: {reported}");
            let waits = reported.contains("Retrying for 10 s");
            assert_eq!(waits, words[0] == "release", "{words:?}: {reported}");
            let lines: Vec<&str> = reported.lines().collect();
            let [.., error, hint] = lines[..] else {
                panic!("{words:?}: {reported}");
            };
            let away = format!("error: the cluster at http://{address}/ does not answer: ");
            assert!(error.starts_with(&away), "{words:?}: {reported}");
            assert!(error.contains(cause), "{words:?}: {reported}");
            assert_eq!(
                hint, "  hint: does it run, and is it the one of --kubeconfig?",
                "{words:?}"
            );
            let is_logged = ["ERROR", "kube_client"].iter().any(|word| reported.contains(word));
            assert!(!is_logged, "{words:?}: {reported}");
        }
    }
}

/// It answers every request with a page that no cluster has.
fn page() -> SocketAddr {
    let (listener, address) = silent();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            let mut head = BufReader::new(&stream).lines();
            while head.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let page = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>";
            (&stream).write_all(page.as_bytes()).expect("somebody waits");
        }
    });
    address
}

/// As if people had to wait for what is not asked again.
#[test]
fn a_failure_that_is_not_repeated_is_not_called_retried() {
    let address = page();
    let (_directory, flags) = beside_cluster(address);
    let flags = flags.each_ref().map(String::as_str);
    let output = kindex(
        &[&["release", "--dry-run"][..], &flags].concat(),
        Stdio::null(),
        Stdio::piped(),
    );
    let reported = text_of(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{reported}");
    let away = format!("error: the cluster at http://{address}/ does not answer: ");
    assert!(reported.contains(&away), "{reported}");
    assert!(!reported.contains("Retrying"), "{reported}");
}

#[test]
fn a_mistyped_word_is_reported_with_a_suggestion() {
    let data_dir = tempfile::tempdir().expect("a directory");
    let database = data_dir.path().join("empty.db");
    std::fs::write(&database, "").expect("a database without tables");
    let database = format!("sqlite:{}", database.display());
    for (words, reported) in [
        (
            &["get", "modles"][..],
            "unknown kind \"modles\"\n  hint: did you mean \"models\"?",
        ),
        (&["get", "modl"], "did you mean \"model\"?"),
        (&["get", "model/"], "which Model?\n  hint: write model/NAME"),
        (
            &["get", "models", "--where", "algoritm=x"],
            "did you mean \"algorithm\"?",
        ),
        (
            &["get", "models", "--sort", "nmae"],
            "has no column \"nmae\": did you mean \"name\"?",
        ),
        (&["status", "--kind", "pipelinrun"], "did you mean \"pipelineruns\"?"),
        (
            &["get", "models", "--at", "2999-01-01"],
            "2999-01-01T00:00:00Z is in the future",
        ),
        (&["diff", "model/x", "--from", "2999-01-01"], "is in the future"),
    ] {
        let output = kindex(
            &[words, &["--database", &database]].concat(),
            Stdio::piped(),
            Stdio::piped(),
        );
        let stderr = text_of(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(stderr.contains(reported), "{words:?}: {stderr}");
    }
}

#[test]
fn a_password_is_repeated_in_no_help_no_suggestion_and_no_error() {
    let closed = Closed::take();
    let data_dir = tempfile::tempdir().expect("a directory");
    let data_dir = data_dir.path().to_str().expect("a path of letters");
    let reachable_by_nobody = format!("mysql://root:s3cret@{}/k", closed.address);
    for address in [
        &*reachable_by_nobody,
        "mysql://root:s3cret@db:no-port/k",
        "mysql://root:a?s3cret@db:3306/k",
        "mysql://root:a#s3cret@db:3306/k",
        "mysql://root@db:3306/k?pasword=s3cret",
        "root:s3cret@tcp(db:3306)/k",
    ] {
        for words in [
            &["--help"][..],
            &["up", "--help"],
            &["api", "--help"],
            &["get", "--help"],
            &["get", "models", "--data-dir", data_dir],
            &["get", "modles", "--data-dir", data_dir],
            &["get", "models", "--databse", address],
            &["get", "models", "--database", address],
            &["migrate", "--help"],
            &["plan", "--help"],
        ] {
            let output = Command::new(KINDEX)
                .args(words)
                .env("KINDEX_DATABASE", address)
                .output()
                .expect("kindex runs");
            let text = text_of(&output.stdout) + &text_of(&output.stderr);
            assert!(
                !text.is_empty() && !text.contains("s3cret"),
                "{words:?} {address}: {text}"
            );
        }
    }
}

#[test]
fn an_unknown_word_or_flag_is_reported_with_a_similar_one() {
    for (words, reported) in [
        (&["gte", "models"][..], "a similar subcommand exists: 'get'"),
        (
            &["get", "models", "--limt", "3"],
            "a similar argument exists: '--limit'",
        ),
        (&["get", "models", "-o", "yalm"], "a similar value exists: 'yaml'"),
    ] {
        let output = kindex(words, Stdio::piped(), Stdio::piped());
        let stderr = text_of(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(stderr.contains(reported), "{words:?}: {stderr}");
    }
}

#[test]
fn colors_are_for_terminals_and_for_nobody_who_does_not_want_them() {
    let root = tempfile::tempdir().expect("a directory");
    std::fs::write(root.path().join("crds.toml"), "[platfrom]\n").expect("writable");
    let root = root.path().to_str().expect("a path of letters");
    for words in [
        &["get", "nothing"][..],
        &["get", "--nothing"],
        &["get", "--help"],
        &["generate", "--root", root],
    ] {
        for (environment, colored) in [
            (&[][..], false),
            // As if the stream were a terminal.
            (&[("CLICOLOR_FORCE", "1")], true),
            (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
        ] {
            let output = Command::new(KINDEX)
                .args(words)
                .envs(environment.iter().copied())
                .output()
                .expect("kindex runs");
            let text = text_of(&output.stdout) + &text_of(&output.stderr);
            assert_eq!(text.contains("\u{1b}["), colored, "{words:?} {environment:?}: {text}");
        }
    }
}

#[test]
fn a_missing_file_is_reported_and_not_created() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("none.db");
    let config = directory.path().join("kindex.yaml");
    let database = format!("sqlite:{}", file.display());
    let settings = "metadataStorage: {enableMetadataStorage: true}\nsqlite: {path: none.db}\n";
    std::fs::write(&config, settings).expect("written");
    let config = config.to_str().expect("a path of letters");
    for words in [
        &["get", "models", "--database", &database][..],
        &["get", "models", "--config", config],
        &["history", "model/a", "--database", &database],
        &["purge", "--database", &database],
    ] {
        let output = kindex(words, Stdio::null(), Stdio::piped());
        let stderr = text_of(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(
            stderr.contains("no database at") && stderr.contains("hint:"),
            "{words:?}: {stderr}"
        );
        assert!(!file.exists(), "{words:?}");
    }
}
