//! The past as a user looks into it: `kindex get --at`, `kindex history` and `kindex diff` on
//! versions that kubectl made.

use std::process::Output;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::process::{Running, kubectl_is_there, wait_for};
use super::site::{Site, on_clusters};
use super::{MODEL, text_of};

const WITHOUT_HISTORY: &str = "pipeline/train";

/// Creates the model and waits until SQL has it with all finalizers: from here on nobody but the test changes it.
fn create(site: &Site, run: &Running) {
    run.kubectl(&["apply", "-f", "-"], MODEL);
    wait_for("the row of the object with its finalizers", || {
        let object = run.kubectl(&["get", "model", "fraud", "-o", "json"], "");
        let row = text_of(&run.command(&["get", "model/fraud", "-o", "json"]).stdout);
        let [object, row] = [&object, &row].map(|text| serde_json::from_str::<Value>(text).unwrap_or_default());
        let is_same = row["metadata"]["resourceVersion"] == object["metadata"]["resourceVersion"];
        let finalizers = object["metadata"]["finalizers"].to_string();
        site.finalizers().iter().all(|finalizer| finalizers.contains(finalizer)) && is_same
    });
}

/// Sets the algorithm and waits for the row, so that every version is seen by itself.
fn retrain(run: &Running, algorithm: &str) {
    let patch = format!(r#"{{"spec":{{"algorithm":"{algorithm}"}}}}"#);
    run.kubectl(&["patch", "model", "fraud", "--type=merge", "-p", &patch], "");
    wait_for(algorithm, || run.get(&["models", "-o", "wide"]).contains(algorithm));
}

fn succeed(output: &Output) -> String {
    assert!(output.status.success(), "{}", text_of(&output.stderr));
    text_of(&output.stdout)
}

/// The versions whose algorithm changed, the oldest first: number and time.
fn retrained(run: &Running) -> Vec<(String, Timestamp)> {
    let text = succeed(&run.command(&["history", "model/fraud", "-o", "json"]));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let versions = report["versions"].as_array().expect("versions").iter().rev();
    let changed = |line: &&Value| {
        let paths = line["changed"].as_array();
        paths.is_none_or(|paths| paths.iter().any(|path| path == "spec.algorithm"))
    };
    versions
        .filter(changed)
        .map(|line| {
            let seen = line["seen"].as_str().expect("a time").parse().expect("a time");
            (line["resourceVersion"].as_str().expect("a number").to_owned(), seen)
        })
        .collect()
}

on_clusters!(
    an_object_is_shown_as_it_was_at_any_moment,
    two_versions_are_compared_and_listed,
);

fn an_object_is_shown_as_it_was_at_any_moment(site: &Site) {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start_on(site, &[]);
    create(site, &run);
    retrain(&run, "lightgbm");
    retrain(&run, "catboost");

    let versions = retrained(&run);
    assert_eq!(versions.len(), 3, "{versions:?}");
    for ((_, seen), algorithm) in versions.iter().zip(["xgboost", "lightgbm", "catboost"]) {
        let yaml = run.get(&["model/fraud", "--at", &seen.to_string(), "-o", "yaml"]);
        assert!(yaml.contains(&format!("algorithm: {algorithm}")), "{yaml}");
    }
    let early = versions[0].1 - SignedDuration::from_secs(1);
    let output = run.command(&["get", "model/fraud", "--at", &early.to_string()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text_of(&output.stderr).contains("not stored yet"), "{output:?}");

    run.kubectl(&["delete", "model", "fraud"], "");
    wait_for("the soft delete", || {
        run.get(&["models", "--deleted"]).contains("deleted")
    });
    let output = run.command(&["get", "model/fraud", "--at", &Timestamp::now().to_string()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text_of(&output.stderr).contains("deleted at"), "{output:?}");
    let before = run.get(&["model/fraud", "--at", &versions[1].1.to_string(), "-o", "json"]);
    assert!(before.contains(r#""algorithm":"lightgbm""#), "{before}");
    let last = run.get(&["model/fraud", "--deleted", "-o", "json"]);
    assert!(last.contains(r#""algorithm":"catboost""#), "{last}");
}

fn two_versions_are_compared_and_listed(site: &Site) {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start_on(site, &[]);
    create(site, &run);
    retrain(&run, "lightgbm");
    retrain(&run, "catboost");
    let versions = retrained(&run);
    let [first, second, third] = [0, 1, 2].map(|index| versions[index].0.as_str());

    let table = succeed(&run.command(&["history", "model", "fraud"]));
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("VERSION"), "{table}");
    assert!(
        lines[1].starts_with(third) && lines[1].ends_with("spec.algorithm"),
        "{table}"
    );
    assert!(
        lines.last().expect("lines").ends_with("the first version that is kept"),
        "{table}"
    );

    let diff = succeed(&run.command(&["diff", "model/fraud"]));
    assert!(
        diff.contains("-  algorithm: lightgbm\n+  algorithm: catboost\n"),
        "{diff}"
    );
    assert!(
        !diff.contains("resourceVersion") && !diff.contains("managedFields"),
        "{diff}"
    );
    let at = versions[1].1.to_string();
    let diff = succeed(&run.command(&["diff", "model/fraud", "--from", first, "--to", &at, "-o", "json"]));
    let report: Value = serde_json::from_str(&diff).expect("JSON");
    assert_eq!(report["from"]["resourceVersion"], first);
    assert_eq!(report["to"]["resourceVersion"], second);
    let changes = report["changes"].as_array().expect("changes");
    let algorithm = changes
        .iter()
        .find(|change| change["path"] == "spec.algorithm")
        .expect("changed");
    assert_eq!(
        (&algorithm["from"], &algorithm["to"]),
        (&"xgboost".into(), &"lightgbm".into())
    );

    let output = run.command(&["diff", "model/fraud", "--from", "1", "--to", second]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text_of(&output.stderr).contains("version 1 is not kept"), "{output:?}");
}

#[test]
fn a_kind_without_a_history_says_how_to_get_one() {
    let run = Running::samples_without_ingester();
    for args in [
        &["get", WITHOUT_HISTORY, "--at", "1h"][..],
        &["history", WITHOUT_HISTORY],
        &["diff", WITHOUT_HISTORY],
    ] {
        let output = run.command(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let text = text_of(&output.stderr);
        assert!(
            text.contains("Pipeline keeps no history") && text.contains("models, deployments"),
            "{text}"
        );
    }
    let output = run.command(&["get", "models", "--at", "1h", "-o", "name"]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let output = run.command(&["history", "model/nobody"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text_of(&output.stderr).contains("never stored"), "{output:?}");
}
