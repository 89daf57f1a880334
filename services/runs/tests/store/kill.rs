//! A process that writes is killed at any moment, with compaction, releases, ends and checkpoints under way: what it
//! had answered is there, once.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kindex_runs::domain::{NewRun, PresentedToken, RunId, Status, system_clock};
use kindex_runs::ledger::ReorderRules;
use kindex_runs::store::{Durability, Settings, Store, verify};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::support::{Point, batch, end, new_run};

/// The folder of the process that is killed, with how it writes.
const FOLDER: &str = "KINDEX_KILL_FOLDER";
const WRITERS: usize = 4;

fn settings(durability: Durability) -> Settings {
    Settings {
        durability,
        compact_points: 200,
        compact_chunks: 1,
        reorder: ReorderRules {
            batches_max: 3,
            ..ReorderRules::default()
        },
        ..Settings::default()
    }
}

/// The batch of a number: its content follows from its id, so that both processes know it.
fn content(number: u64) -> Vec<Point<'static>> {
    const NAMES: [&str; 4] = ["loss", "acc", "lr", "grad"];
    (0..20)
        .map(|k| (NAMES[k as usize % 4], (number * 5 + k / 4) as i64, (number + k) as f64))
        .collect()
}

/// Sequences are swapped in pairs, so that every second batch is held.
fn sequence(number: u64) -> i64 {
    (if number.is_multiple_of(2) {
        number + 1
    } else {
        number - 1
    }) as i64
        + 1
}

/// What the killed process does: says each batch once it is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_that_is_killed() {
    let Some(asked) = std::env::var_os(FOLDER) else {
        return;
    };
    let asked = asked.into_string().expect("text");
    let (durability, rest) = asked.split_once(':').expect("durability and the rest");
    let (round, folder) = rest.split_once(':').expect("round and folder");
    let durability = if durability == "full" {
        Durability::Full
    } else {
        Durability::Normal
    };
    let store = Store::open(Path::new(folder), settings(durability), system_clock())
        .await
        .expect("it opens");
    let writers = (0..WRITERS).map(|writer| tokio::spawn(write(store.clone(), format!("{round}-{writer}"))));
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("no panic");
    }
}

async fn write(store: Store, name: String) {
    for part in 0.. {
        let run = format!("{name}-{part}");
        store.init(new_run(&run)).await.expect("it opens");
        for number in 0..40 {
            let id = format!("{number}");
            let sent = batch(&run, &id, Some(sequence(number)), &content(number), store.now());
            store.log(sent).await.expect("stored");
            say(&format!("{run} {number}"));
        }
        store.finish(end(&run, Status::Finished)).await.expect("it ends");
        say(&format!("{run} ended"));
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "said {line}").expect("the parent reads");
    out.flush().expect("the parent reads");
}

/// Starts the process and kills it after so many answers; all that it said.
fn killed(asked: &str, answers: usize) -> Vec<(String, String)> {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program)
        .args(["--exact", "kill::the_process_that_is_killed", "--nocapture"])
        .env(FOLDER, asked)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut said = Vec::new();
    let mut take = |line: std::io::Result<String>| {
        let line = line.expect("text");
        if let Some((run, what)) = line.strip_prefix("said ").and_then(|rest| rest.split_once(' ')) {
            said.push((run.to_owned(), what.to_owned()));
        }
        said.len()
    };
    for line in lines.by_ref() {
        if take(line) >= answers {
            break;
        }
    }
    child.kill().expect("it is killed");
    // What it had said before counts as well; the last line may be cut off.
    for line in lines {
        take(line);
    }
    child.wait().expect("it has ended");
    said
}

async fn check(folder: &Path, said: &[(String, String)], durability: Durability) {
    let store = Store::open(folder, settings(durability), system_clock())
        .await
        .expect("it opens again");
    let mut runs: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (run, what) in said {
        match what.parse() {
            Ok(number) => runs.entry(run).or_default().push(number),
            Err(_) => {
                let row = store.run(&RunId::new(run)).await.expect("read").expect("there");
                assert_eq!(row.status, Status::Finished, "{run}");
            }
        }
    }
    for (run, numbers) in &runs {
        let row = store.run(&RunId::new(*run)).await.expect("read").expect("there");
        // One more may be stored whose answer was on its way.
        let stored = row.points / 20;
        assert!(
            (numbers.len() as u64..=numbers.len() as u64 + 1).contains(&stored),
            "{run}: {stored} of {numbers:?}"
        );
        for number in numbers {
            let sent = batch(
                run,
                &format!("{number}"),
                Some(sequence(*number)),
                &content(*number),
                store.now(),
            );
            let again = store.log(sent).await.expect("known");
            assert!(again.is_duplicate(), "{run} {number} is lost");
        }
    }
    let report = verify::verify(store.readers()).await.expect("read");
    assert_eq!(report.findings, [""; 0]);
    store.close().await;
}

async fn kill_often(durability: Durability, word: &str, kills: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut chance = StdRng::seed_from_u64(7);
    for round in 0..kills {
        let path: PathBuf = folder.path().to_owned();
        let asked = format!("{word}:{round}:{}", path.display());
        let answers = chance.random_range(1..400);
        let said = tokio::task::spawn_blocking(move || killed(&asked, answers))
            .await
            .expect("no panic");
        assert!(said.len() >= answers, "it ended by itself after {} answers", said.len());
        check(folder.path(), &said, durability).await;
    }
}

fn kills() -> u64 {
    std::env::var("KINDEX_KILLS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(4)
}

/// More often: `KINDEX_KILLS=100 cargo test -p kindex-runs --test store kill`.
#[tokio::test]
async fn kill_nine_loses_and_doubles_nothing_that_was_answered() {
    kill_often(Durability::Normal, "normal", kills()).await;
}

#[tokio::test]
async fn kill_nine_loses_and_doubles_nothing_with_full_durability() {
    kill_often(Durability::Full, "full", kills()).await;
}

/// The runs of a killed server go on: their tokens are stored, and downtime is no silence.
#[tokio::test]
async fn runs_of_a_killed_server_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_owned();
    let asked = format!("normal:0:{}", path.display());
    let said = tokio::task::spawn_blocking(move || killed(&asked, 30))
        .await
        .expect("no panic");
    let store = Store::open(folder.path(), settings(Durability::Normal), system_clock())
        .await
        .expect("it opens");
    let (run, _) = said.last().expect("it said something");
    let new = NewRun {
        token: PresentedToken::Absent,
        ..new_run(run)
    };
    if store.run(&RunId::new(run)).await.expect("read").expect("there").status == Status::Running {
        assert!(store.init(new).await.expect("it goes on").resumed);
    }
    store.close().await;
}
