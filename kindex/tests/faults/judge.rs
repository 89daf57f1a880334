//! The judgement after a scenario: `kindex verify` finds nothing, every object that the
//! load ever made is in SQL as the cluster last confirmed it, and nothing counts as lost.

use std::process::{Command, Output};
use std::time::Instant;

use kindex_runtime::store::{Life, Stored};
use kindex_tests::patience::PATIENCE;
use serde_json::Value;

use super::database::Database;
use super::ingester::KINDEX;
use super::load::{End, Line};
use super::stage::Stage;

/// Ends the load and judges; how many objects were judged.
pub(crate) fn judge(stage: &mut Stage) -> usize {
    let load = stage.load.take().expect("a scenario is judged once");
    let ledger = load.stop(&stage.runtime);
    let deadline = Instant::now() + PATIENCE;
    let mut said = verify(stage);
    while !said.status.success() {
        assert!(
            Instant::now() < deadline,
            "kindex verify: {}{}\nthe ingester's log ends with\n{}",
            String::from_utf8_lossy(&said.stdout),
            String::from_utf8_lossy(&said.stderr),
            stage.ingester.last_words()
        );
        said = verify(stage);
    }
    for line in &ledger {
        stage.eventually(&format!("the row of {line:?}"), |stage| {
            let row = stage.runtime.block_on(stage.storage.get_by_id(line.kind, &line.uid));
            matches!(row, Ok(Some(row)) if is_kept(line, &row))
        });
    }
    stage.wait_until_ready();
    assert_eq!(stage.ingester.lost(), 0.0, "nothing is counted as lost");
    ledger.len()
}

/// `kindex verify`, which reads past every proxy.
pub(crate) fn verify(stage: &Stage) -> Output {
    let config = stage.config.display().to_string();
    run_verify(stage, ["--config", &config])
}

/// The same against one node of several.
pub(crate) fn verify_on(stage: &Stage, port: u16) -> Output {
    run_verify(stage, ["--database", &Database::address(port)])
}

fn run_verify(stage: &Stage, database: [&str; 2]) -> Output {
    let mut command = Command::new(KINDEX);
    command.arg("verify").args(database);
    command.arg("--kubeconfig").arg(&stage.kubeconfig);
    command.output().expect("kindex runs")
}

/// Whether the row holds what the cluster last confirmed, in the life that its end asks for.
fn is_kept(line: &Line, row: &Stored) -> bool {
    let life = match line.end {
        End::Alive => Life::Live,
        End::Deleted => Life::Deleted,
        End::Evicted => Life::Evicted,
    };
    let text: Value = serde_json::from_str(row.object.text()).expect("rows hold JSON");
    let metadata = &row.object.metadata;
    row.life == life
        && text["spec"] == line.spec
        && metadata.labels.iter().eq(&line.labels)
        && metadata.annotations.iter().eq(&line.annotations)
}
