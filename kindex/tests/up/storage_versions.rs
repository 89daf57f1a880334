//! Storage versions in `kindex up`: the embedded cluster is migrated by itself, and by hand where that is wished.

use kindex_harness::scrape::Scrape;

use super::process::{Running, kubectl_is_there, wait_for};

const MODELS: &str = "models.michelangelo.api";

/// Migrations that ended well.
fn verified(run: &Running) -> f64 {
    let (_, text) = run.request("/metrics");
    let line = "kindex_migrator_runs_total{reason=\"Verified\"} ";
    let mut counts = text.lines().filter_map(|shown| shown.strip_prefix(line));
    counts.next().map_or(0.0, |count| count.parse().expect("a number"))
}

fn persisted(run: &Running) -> String {
    let path = "-o=jsonpath={.status.persistedStorageVersionHashes} {.status.currentStorageVersionHash}";
    run.kubectl(&["get", "storagestates", MODELS, path], "")
}

#[test]
fn every_kind_is_migrated_by_itself_and_its_state_lists_one_version() {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&["--samples"]);
    let kinds = kindex_generated::registry().kinds.len() as f64;
    wait_for("all migrations", || verified(&run) >= kinds);
    wait_for("the state of models", || {
        let versions = persisted(&run);
        let Some((persisted, current)) = versions.split_once(' ') else {
            return false;
        };
        !current.is_empty() && persisted == format!("[\"{current}\"]")
    });
    // The last one is counted before it is over.
    wait_for("the end of all", || {
        Scrape::parse(&run.request("/metrics").1).sum("kindex_migrator_running") == 0.0
    });
    // A kind whose definition was written a moment ago may be read anew just then.
    wait_for("readiness", || run.request("/readyz").0 == 200);
}

#[test]
fn without_the_trigger_people_start_and_stop_migrations() {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&["--samples", "--no-trigger"]);
    wait_for("the definitions", || {
        run.kubectl(&["get", "crds", "-o=name"], "")
            .contains("storageversionmigrations.migration.k8s.io")
    });
    run.kubectl(
        &[
            "wait",
            "--for=condition=established",
            "--timeout=240s",
            "crd/storageversionmigrations.migration.k8s.io",
        ],
        "",
    );
    let migration = "apiVersion: migration.k8s.io/v1alpha1\nkind: StorageVersionMigration\n\
                     metadata: {name: by-hand}\nspec: {resource: {group: michelangelo.api, resource: models}}\n";
    run.kubectl(&["create", "-f", "-"], migration);
    wait_for("its end", || verified(&run) >= 1.0);
    let listed = run.kubectl(&["get", "storageversionmigrations", "-o=name"], "");
    assert_eq!(listed.trim(), "storageversionmigration.migration.k8s.io/by-hand");
}
