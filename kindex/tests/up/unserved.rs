//! A cluster that does not serve one kind, as where others define its CRD and have not installed it: commands over all
//! kinds do the others, and say which they skipped.

use serde_json::Value;

use super::process::{Running, kubectl_is_there};
use super::text_of;

/// Neither the first nor the last of all kinds.
const KIND: &str = "triggerruns";
const SKIPPED: &str = "note: TriggerRun is skipped: it waits for its CRD: the cluster serves no \
                       triggerruns.michelangelo.api in version v2";

/// Samples of all kinds, and then a cluster without one of the CRDs.
fn without_a_crd() -> Option<Running> {
    if !kubectl_is_there() {
        return None;
    }
    let run = Running::samples_without_ingester();
    // No deletion is to wait for an ingester.
    let released = run.command(&["release", "--kind", KIND, "--settle", "0"]);
    assert!(released.status.success(), "{}", text_of(&released.stderr));
    run.kubectl(&["delete", "crd", "triggerruns.michelangelo.api"], "");
    Some(run)
}

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{error}: {}", text_of(bytes)))
}

/// The kinds of a report, all but one of the registry's.
fn twelve(kinds: &Value) -> Vec<&str> {
    let kinds: Vec<&str> = kinds.as_array().expect("kinds").iter().map(kind).collect();
    assert!(kinds.len() == 12 && !kinds.contains(&"TriggerRun"), "{kinds:?}");
    kinds
}

fn kind(of: &Value) -> &str {
    of["kind"].as_str().expect("a kind")
}

#[test]
fn what_is_not_compared_is_said_and_is_no_success() {
    let Some(run) = without_a_crd() else { return };
    let verify = |more: &[&str]| run.command(&[&["verify", "--settle", "0.05"], more].concat());
    let output = verify(&["--output", "json"]);
    let (report, stderr) = (parsed(&output.stdout), text_of(&output.stderr));
    twelve(&report["kinds"]);
    assert_eq!(report["skipped"], serde_json::json!(["TriggerRun"]));
    assert_eq!(report["findings"], Value::Array(Vec::new()));
    assert_eq!(output.status.code(), Some(1), "not known to be equal: {stderr}");
    assert!(
        stderr.contains(SKIPPED) && stderr.contains("not compared: TriggerRun"),
        "{stderr}"
    );

    run.plant("UPDATE sparkjob SET content_hash = NULL");
    let output = verify(&[]);
    let (table, stderr) = (text_of(&output.stdout), text_of(&output.stderr));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        table.contains("content-hash") && stderr.contains(SKIPPED),
        "{table}{stderr}"
    );
    assert!(stderr.contains("1 objects or rows differ"), "{stderr}");
}

#[test]
fn the_other_kinds_are_stored_and_released() {
    let Some(run) = without_a_crd() else { return };
    for table in ["project", "sparkjob"] {
        run.plant(&format!(
            "DELETE FROM {table}_labels; DELETE FROM {table}_annotations; DELETE FROM {table}"
        ));
    }
    let filled = run.command(&["backfill", "--output", "json"]);
    assert!(filled.status.success(), "{}", text_of(&filled.stderr));
    assert!(text_of(&filled.stderr).contains(SKIPPED));
    let report = parsed(&filled.stdout);
    twelve(&report);
    let inserted = report.as_array().expect("kinds").iter();
    let inserted: Vec<&str> = inserted.filter(|of| of["inserted"] == 1).map(kind).collect();
    assert_eq!(inserted, ["Project", "SparkJob"]);

    let released = run.command(&["release", "--settle", "0", "--output", "json"]);
    let stderr = text_of(&released.stderr);
    assert!(released.status.success(), "{stderr}");
    assert_eq!(stderr.matches(SKIPPED).count(), 1, "{stderr}");
    let report = parsed(&released.stdout);
    twelve(&report);
    assert!(
        report.as_array().expect("kinds").iter().all(|of| of["released"] == 1),
        "{report}"
    );
}

#[test]
fn a_kind_that_is_asked_for_alone_and_not_served_is_an_error() {
    let Some(run) = without_a_crd() else { return };
    for command in ["verify", "backfill", "release"] {
        let output = run.command(&[command, "--kind", KIND]);
        let stderr = text_of(&output.stderr);
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(1), 0),
            "{command}: {stderr}"
        );
        let error = "error: TriggerRun: it waits for its CRD: the cluster serves no triggerruns.michelangelo.api";
        let hint = "`kubectl get crd triggerruns.michelangelo.api` shows whether it is there";
        assert!(stderr.contains(error) && stderr.contains(hint), "{command}: {stderr}");
    }
}

/// Nobody installs the CRD while it waits.
#[test]
fn who_waits_until_all_is_settled_waits_for_no_kind_that_is_not_served() {
    let Some(run) = without_a_crd() else { return };
    let status = |more: &[&str]| run.command(&[&["status", "--wait", "--output", "json"], more].concat());
    // Longer than anybody waits for a test.
    let output = status(&["--timeout", "86400"]);
    let stderr = text_of(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "it is not known to be settled: {stderr}");
    assert!(
        stderr.contains(SKIPPED) && stderr.contains("not settled: TriggerRun; all others are settled"),
        "{stderr}"
    );
    let kinds = parsed(&output.stdout);
    for of in kinds.as_array().expect("kinds") {
        let expected = if kind(of) == "TriggerRun" {
            "unserved"
        } else {
            "settled"
        };
        assert_eq!(of["state"], expected, "{of}");
    }

    let others = status(&["--timeout", "86400", "--kind", "models", "--kind", "projects"]);
    assert!(others.status.success(), "{}", text_of(&others.stderr));
    // It may be about to come, where it is all that is waited for.
    let alone = status(&["--timeout", "0", "--kind", KIND]);
    let stderr = text_of(&alone.stderr);
    assert_eq!(alone.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("1 of 1 kinds are not settled") && stderr.contains(SKIPPED),
        "{stderr}"
    );

    run.plant("UPDATE sparkjob SET evicted_time = update_time");
    let behind = status(&["--timeout", "0"]);
    let stderr = text_of(&behind.stderr);
    assert!(
        stderr.contains("2 of 13 kinds are not settled") && stderr.contains("SparkJob: "),
        "{stderr}"
    );
}
