//! `kindex verify` as it is typed: clean where nothing was planted, exit 1 and every class
//! of difference by kind and uid where something was.

use std::process::Output;

use serde_json::Value;

use super::process::Running;
use super::site::{Site, on_clusters};

fn report(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| {
        let log = String::from_utf8_lossy(&output.stderr);
        panic!("{error}: {text}\n{log}")
    })
}

/// Kind and class of everything that is found, sorted.
fn found(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let findings = report["findings"].as_array().expect("findings");
    let mut pairs: Vec<_> = findings
        .iter()
        .flat_map(|finding| {
            let differences = finding["differences"].as_array().expect("differences");
            differences
                .iter()
                .map(|one| (text(&finding["kind"]), text(&one["class"])))
        })
        .collect();
    pairs.sort();
    pairs
}

/// A difference of each class, each in the row of another kind.
const PLANTS: &[(&str, &str, &str)] = &[
    (
        "Project",
        "missing",
        "DELETE FROM project; DELETE FROM project_labels; DELETE FROM project_annotations",
    ),
    ("Model", "column", "UPDATE model SET algorithm = 'other'"),
    ("Pipeline", "content-hash", "UPDATE pipeline SET content_hash = NULL"),
    (
        "PipelineRun",
        "label",
        "INSERT INTO pipelinerun_labels (obj_uid, key, value) SELECT uid, 'x', 'y' FROM pipelinerun",
    ),
    (
        "InferenceServer",
        "annotation",
        "INSERT INTO inferenceserver_annotations (obj_uid, key, value) SELECT uid, 'x', 'y' FROM inferenceserver",
    ),
    (
        "Revision",
        "deleted",
        "UPDATE revision SET delete_time = '2026-01-01T00:00:00.000000Z'",
    ),
    (
        "Cluster",
        "evicted",
        "UPDATE cluster SET evicted_time = '2026-01-01T00:00:00.000000Z'",
    ),
    (
        "RayCluster",
        "payload",
        "UPDATE raycluster SET json = replace(json, '\"apiVersion\"', ' \"apiVersion\"')",
    ),
    ("RayJob", "metadata", "UPDATE rayjob SET name = 'other'"),
    ("TriggerRun", "proto", "UPDATE triggerrun SET proto = x'00'"),
    (
        "Deployment",
        "stray",
        "INSERT INTO deployment_labels (obj_uid, key, value) VALUES ('nobody', 'x', 'y')",
    ),
];

on_clusters!(a_clean_run_exits_0_and_every_planted_class_is_found,);

fn a_clean_run_exits_0_and_every_planted_class_is_found(site: &Site) {
    let run = Running::samples_without_ingester_on(site);
    let verify = |more: &[&str]| run.command(&[&["verify", "--settle", "0.05"], more].concat());
    let clean = verify(&["--output", "json"]);
    assert_eq!(report(&clean)["findings"], Value::Array(Vec::new()));
    assert!(clean.status.success());

    for (_, _, sql) in PLANTS {
        run.plant(sql);
    }
    let differing = verify(&["--output", "json"]);
    assert_eq!(differing.status.code(), Some(1));
    let mut expected: Vec<_> = PLANTS
        .iter()
        .map(|(kind, class, _)| ((*kind).to_owned(), (*class).to_owned()))
        .collect();
    // Another text has another hash.
    expected.push(("RayCluster".to_owned(), "content-hash".to_owned()));
    expected.sort();
    assert_eq!(found(&report(&differing)), expected);

    let one = verify(&["--kind", "models"]);
    let text = String::from_utf8_lossy(&one.stdout);
    assert!(text.contains("`algorithm` is \"other\", the text says"), "{text}");
    assert!(!text.contains("Project"), "one kind alone: {text}");
    let log = String::from_utf8_lossy(&one.stderr);
    assert!(
        log.contains("1 objects or rows differ") && log.contains("hint:"),
        "{log}"
    );
}

#[test]
fn an_unknown_kind_is_a_usage_error_that_names_the_known_ones() {
    let run = Running::samples_without_ingester();
    let output = run.command(&["verify", "--kind", "pods"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("modelfamilys"));
}
