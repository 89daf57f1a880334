//! `kindex versions convert` as a process that is killed in the middle, and started again.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kindex_harness::wait::WAIT_MAX;
use kindex_model::object::Uid;
use kindex_query::Life;
use kindex_store::{Arrival, CONVERT_PROGRESS, MetadataStorage};
use kindex_tests::kinds::trial::KIND;
use serde_json::{Value, json};

use super::trials::{OLD, image, in_v2, store_as, today, trial};
use crate::store::backend::Backend;
use crate::store::widget::at;

scenarios!(
    a_run_that_is_killed_is_gone_on_with,
    a_row_that_stays_makes_the_command_fail
);

/// More pages of the command than two runs have written by the time they save a place.
const ROWS: u64 = 9_000;

fn uid(row: u64) -> String {
    format!("u{row:04}")
}

/// The address as the command line takes it; `None` for a database in memory.
fn address(backend: &Backend) -> Option<String> {
    backend.can_be_reopened().then(|| backend.address.to_string())
}

fn start(address: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_traps"))
        .args(["versions", "convert", "--output", "json", "--database", address])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts")
}

/// Ends the run at once, as soon as it has saved another place than `last`.
async fn kill_after(store: &dyn MetadataStorage, mut run: Child, last: Option<String>) -> Option<String> {
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        let saved = store.state(&KIND, CONVERT_PROGRESS).await.expect("read");
        if saved.is_some() && saved != last {
            run.kill().expect("killed");
            run.wait().expect("ended");
            expect_done_before(store).await;
            return saved;
        }
        let ended = run.try_wait().expect("a child");
        assert!(ended.is_none(), "the run ended early: {ended:?}");
        assert!(Instant::now() < deadline, "no place is saved");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The saved place says nothing of rows that are not written.
async fn expect_done_before(store: &dyn MetadataStorage) {
    let saved = store.state(&KIND, CONVERT_PROGRESS).await.expect("read");
    let saved: Value = serde_json::from_str(&saved.expect("a place")).expect("JSON");
    let until = Arrival(saved["after"].as_i64().expect("a number"));
    let limit = u32::try_from(ROWS).expect("few");
    let page = store.rows_of_other_versions(&KIND, None, Some(until), limit).await;
    let left = page.expect("read").rows;
    assert!(
        left.is_empty(),
        "{} rows before the saved place are not converted",
        left.len()
    );
}

/// The exit code and the report.
fn outcome(run: Child) -> (Option<i32>, Value) {
    let output = run.wait_with_output().expect("ended");
    let report = serde_json::from_slice(&output.stdout);
    let report = report.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), report)
}

async fn a_run_that_is_killed_is_gone_on_with(backend: Backend) {
    let Some(address) = address(&backend) else { return };
    let store = today(&backend).await;
    let objects: Vec<(Value, Life)> = (0..ROWS).map(|row| (trial(&uid(row), 5), Life::Archived)).collect();
    store_as(store.as_ref(), &OLD, &objects, at(0)).await;
    let mut saved = None;
    for _ in 0..2 {
        saved = kill_after(store.as_ref(), start(&address), saved).await;
    }
    let (code, report) = outcome(start(&address));
    assert_eq!(
        (code, &report[0]["rows"], &report[0]["refused"]),
        (Some(0), &json!(ROWS), &json!(0))
    );
    let converted = report[0]["converted"].as_u64().expect("a number");
    assert!((1..ROWS).contains(&converted), "{converted} were left");
    for row in (0..ROWS).step_by(7) {
        let image = image(store.as_ref(), &uid(row)).await;
        let text = trial(&uid(row), 5).to_string();
        assert_eq!((image.text, image.evicted_time), (in_v2(&text), Some(at(0))), "{row}");
        let kept = store
            .kept_texts(&KIND, &Uid::from(uid(row).as_str()))
            .await
            .expect("read");
        assert_eq!(kept.len(), 1, "{row}");
        assert_eq!(kept[0].text, text);
    }
    assert_eq!(store.state(&KIND, CONVERT_PROGRESS).await.expect("read"), None);
}

async fn a_row_that_stays_makes_the_command_fail(backend: Backend) {
    let Some(address) = address(&backend) else { return };
    let store = today(&backend).await;
    let mut bad = trial("bad", 5);
    bad["spec"]["hours"] = json!("two");
    let objects = [(bad, Life::Archived), (trial("good", 5), Life::Deleted)];
    store_as(store.as_ref(), &OLD, &objects, at(0)).await;
    let (code, report) = outcome(start(&address));
    assert_eq!((code, &report[0]["converted"]), (Some(1), &json!(1)));
    let refusal = json!({"kind": "Trial", "namespace": "shop", "name": "name-bad", "uid": "bad",
        "groupVer": "traps.dev/v1", "path": "spec.seconds", "reason": "not a number of hours"});
    assert_eq!(report[0]["refusals"], json!([refusal]));
    let verdict = Command::new(env!("CARGO_BIN_EXE_traps"))
        .args([
            "versions",
            "--kind",
            "trials",
            "--output",
            "json",
            "--database",
            &address,
        ])
        .env_remove("KUBECONFIG")
        .env("HOME", "/nonexistent")
        .output()
        .expect("the command starts");
    let verdict: Value = serde_json::from_slice(&verdict.stdout).expect("JSON");
    let verdicts = verdict[0]["verdicts"].as_array().expect("a list");
    let of_v1 = verdicts.iter().find(|it| it["version"] == "v1").expect("a verdict");
    let because = "SQL has rows in it: 0 live, 1 archived, 0 deleted (1 could not be converted: \
                   `kindex versions convert --dry-run` lists them)";
    assert_eq!(of_v1["safe"], json!(false));
    assert!(
        of_v1["because"].as_array().expect("a list").contains(&json!(because)),
        "{of_v1}"
    );
}
