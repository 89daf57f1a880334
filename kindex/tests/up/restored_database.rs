//! `kindex events` of a database that is restored from a copy of its file: a position from after the copy is refused,
//! and whoever leaves it out is shown everything, with what the cluster has had since.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;

use kindex_harness::wait::wait_until;
use serde_json::Value;

use super::events::{create, delete, events};
use super::process::{Running, kubectl_is_there, wait_for};
use super::text_of;

/// The file, and the one beside it that has what was committed last.
const COPIED: [&str; 2] = ["kindex.db", "kindex.db-wal"];
/// What SQLite makes anew from these.
const SHARED: &str = "kindex.db-shm";

/// Copies the database of a process that has ended, in place of one that is there.
fn copy_database(from: &Path, to: &Path) {
    for name in COPIED.into_iter().chain([SHARED]) {
        // The files beside the database come and go.
        let _absent = fs::remove_file(to.join(name));
    }
    for name in COPIED {
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).expect("readable and writable");
        }
    }
}

/// `kindex events` of projects, until it ends by itself.
fn events_of(run: &Running, more: &[&str]) -> Output {
    let url = format!("http://{}", run.api().expect("it serves"));
    events(&[&["project", "-o", "json", "--url", &url], more].concat())
}

/// By name, whether an object is erased.
type Objects = BTreeMap<String, bool>;

/// What is printed of each object in the end, and the position from which it goes on; why there is none.
fn read(run: &Running, more: &[&str]) -> Result<(Objects, String), String> {
    let output = events_of(run, more);
    let (lines, notes) = (text_of(&output.stdout), text_of(&output.stderr));
    let position = notes.split_once("--from ").and_then(|(_, rest)| rest.split(' ').next());
    let Some(position) = position.filter(|_| output.status.success()) else {
        return Err(notes);
    };
    let lines = lines.lines().map(|line| {
        let event: Value = serde_json::from_str(line).expect("each line is JSON");
        let name = event["name"].as_str().expect("a name").to_owned();
        (name, event["erased"] == true)
    });
    Ok((lines.collect(), position.to_owned()))
}

/// Waits until a replay has exactly these objects; the position after it.
fn position_after(run: &Running, expected: &[(&str, bool)]) -> String {
    let expected: Objects = expected
        .iter()
        .map(|(name, erased)| ((*name).to_owned(), *erased))
        .collect();
    wait_until("a replay of all objects", || match read(run, &[])? {
        (objects, position) if objects == expected => Ok(position),
        (objects, _) => Err(format!("{objects:?}")),
    })
}

#[test]
fn a_position_from_before_the_database_was_restored_is_refused_and_a_replay_has_everything() {
    if !kubectl_is_there() {
        return;
    }
    let mut run = Running::start(&[]);
    for name in ["goes", "stays"] {
        create(&run, name);
    }
    let early = position_after(&run, &[("goes", false), ("stays", false)]);
    run.kill();
    let backup = tempfile::tempdir().expect("a temporary directory");
    copy_database(&run.data_dir(), backup.path());

    run.restart();
    create(&run, "comes");
    delete(&run, "goes");
    let all = [("comes", false), ("goes", true), ("stays", false)];
    let late = position_after(&run, &all);
    run.kill();
    copy_database(backup.path(), &run.data_dir());
    assert!(!run.get(&["projects"]).contains("comes"), "the copy is older");

    run.restart();
    wait_for("readiness", || run.request("/readyz").0 == 200);
    // The cluster was not restored: the rows follow it, in transactions of another history.
    position_after(&run, &all);
    let refused = events_of(&run, &["--from", &late]);
    let said = text_of(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(
        said.contains("from before the database was restored") && said.contains("hint: leave out --from"),
        "{said}"
    );
    assert!(!said.contains("goes on from here"), "{said}");
    assert_eq!(text_of(&refused.stdout), "");

    let (since, _) = read(&run, &["--from", &early]).expect("the copy has this position");
    for (name, erased) in [("comes", false), ("goes", true)] {
        assert_eq!(since.get(name), Some(&erased), "{since:?}");
    }
}
