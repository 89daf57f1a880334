//! The judgment after a scenario: `kindex verify` finds nothing, every object that the
//! load ever made is in SQL as the cluster last confirmed it, and nothing counts as lost.

use std::process::{Command, Output};
use std::time::Instant;

use kindex_harness::wait::WAIT_MAX;
use kindex_query::Stored;
use serde_json::Value;

use super::database::Database;
use super::ingester::KINDEX;
use super::load::{KINDS, Ledger, Line};
use super::objects::{End, Stale, find, with_finalizer};
use super::stage::Stage;

/// Ends the load and judges; how many objects were judged.
pub(crate) fn judge(stage: &mut Stage) -> usize {
    let load = stage.load.take().expect("a scenario is judged once");
    let ledger = load.stop(&stage.runtime);
    let deadline = Instant::now() + WAIT_MAX;
    let mut verified = verify(stage);
    while !verified.status.success() {
        assert!(
            Instant::now() < deadline,
            "kindex verify: {}{}\nthe ingester's log ends with\n{}",
            String::from_utf8_lossy(&verified.stdout),
            String::from_utf8_lossy(&verified.stderr),
            stage.ingester.last_words()
        );
        verified = verify(stage);
    }
    nothing_is_stale(stage, &ledger);
    stage.wait_until_ready();
    assert_eq!(stage.ingester.lost(), 0.0, "nothing is counted as lost");
    ledger.lines.len() + ledger.held.len()
}

/// SQL has the last version of everything, whether it lives, was deleted or archived. An ingester that has settled what
/// came after all of it has nothing left to do: what is stale then stays stale.
fn nothing_is_stale(stage: &mut Stage, ledger: &Ledger) {
    let markers = KINDS.map(|name| {
        let kind = find(&stage.registry, name);
        let name = format!("after-all-{}", kind.singular);
        (kind, stage.create_at(kind, &with_finalizer(kind, &name, 0)))
    });
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        let settled = stage.ingester.metrics().is_some_and(|metrics| {
            markers.iter().all(|(kind, version)| {
                let labels = [("kind", kind.name)];
                metrics.sum_of("kindex_ingester_settled_resource_version", &labels) >= *version
            })
        });
        let found = stale(stage, ledger);
        if found.is_empty() {
            return;
        }
        let report = report(stage, &found);
        assert!(!settled && Instant::now() < deadline, "{report}");
    }
}

fn stale(stage: &Stage, ledger: &Ledger) -> Vec<Stale> {
    let row = |kind, uid| {
        let row = stage.runtime.block_on(stage.storage.get_by_id(kind, uid));
        row.expect("readable")
    };
    let lines = ledger.lines.iter();
    let lines = lines.filter_map(|line| line_is_stale(line, row(line.kind, &line.uid).as_ref()));
    let held = ledger.held.iter();
    lines
        .chain(held.filter_map(|held| held.stale(row(held.kind, &held.uid).as_ref())))
        .collect()
}

/// How many there are, which, and what was logged of the first.
fn report(stage: &Stage, found: &[Stale]) -> String {
    let of = |end| found.iter().filter(|stale| stale.end == end).count();
    let named: Vec<String> = found.iter().map(ToString::to_string).collect();
    let logged = found
        .first()
        .map(|stale| stage.logged(&format!("default/{}", stale.name)));
    format!(
        "{} objects are stale in SQL: {} deleted, {} archived, {} live\n{}\n{}",
        found.len(),
        of(End::Deleted),
        of(End::Archived),
        of(End::Alive),
        named.join("\n"),
        logged.unwrap_or_default()
    )
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

/// The row must hold what the cluster last confirmed, in the life that its end asks for.
fn line_is_stale(line: &Line, row: Option<&Stored>) -> Option<Stale> {
    let is_kept = |row: &Stored| {
        let text: Value = serde_json::from_str(row.object.text()).expect("rows hold JSON");
        let metadata = &row.object.metadata;
        row.life == line.end.life()
            && text["spec"] == line.spec
            && metadata.labels.iter().eq(&line.labels)
            && metadata.annotations.iter().eq(&line.annotations)
    };
    (!row.is_some_and(is_kept)).then(|| Stale {
        kind: line.kind.name,
        name: line.name.clone(),
        end: line.end,
        last: line.version.clone(),
        held: row.map(|row| (row.object.metadata.resource_version, row.life)),
    })
}
