//! Section 6.1: the six scenarios of the reconciler, each under its name there.

use super::stage::{STATUS, Stage, WITH_FINALIZER};
use crate::process::wait_for;
use crate::site::{Site, on_clusters};

on_clusters!(
    handle_sync,
    handle_deletion,
    handle_deletion_annotation,
    handle_immutable_object,
    object_not_found,
    helper_functions,
);

/// A normal object is stored by one write.
fn handle_sync(site: &Site) {
    let Some(stage) = Stage::start(site, "") else { return };
    stage.run.kubectl(&["apply", "-f", "-"], WITH_FINALIZER);
    stage.wait_for_row();
    assert_eq!(stage.of_row("algorithm").as_deref(), Some("xgboost"));
    assert_eq!(stage.of_row("delete_time"), None);
    let team = stage.sql("SELECT CAST(value AS CHAR) FROM model_labels WHERE `key` = 'team'");
    assert_eq!(team.as_deref(), Some("risk"));
    assert_eq!(stage.report(&STATUS).len(), 13);
    // A row is counted after it was written.
    wait_for("the count", || stage.written("Model", "inserted") > 0.0);
    assert_eq!(
        (
            stage.written("Model", "inserted"),
            stage.written("Model", "updated"),
            stage.written("Model", "superseded")
        ),
        (1.0, 0.0, 0.0),
        "stored once"
    );
}

/// An object with a deletion timestamp is closed in SQL, then the finalizer goes.
fn handle_deletion(site: &Site) {
    let Some(stage) = Stage::start(site, "") else { return };
    stage.run.kubectl(&["apply", "-f", "-"], WITH_FINALIZER);
    stage.wait_for_row();
    // It waits for the end, which the finalizer holds up until SQL is done.
    stage.kubectl("delete model test-model");
    assert!(stage.of_row("delete_time").is_some());
    let json = stage.of_row("json").expect("the final version");
    assert!(json.contains("deletionTimestamp"), "{json}");
}

/// The annotation closes the row, then the object goes.
fn handle_deletion_annotation(site: &Site) {
    let Some(stage) = Stage::start(site, "") else { return };
    stage.run.kubectl(&["apply", "-f", "-"], WITH_FINALIZER);
    stage.wait_for_row();
    stage.kubectl("annotate model test-model michelangelo/Deleting=true");
    stage.wait_until_gone();
    assert!(stage.of_row("delete_time").is_some() && stage.of_row("evicted_time").is_none());
    let json = stage.of_row("json").expect("the final version");
    assert!(json.contains("michelangelo/Deleting"), "{json}");
}

/// An immutable object is stored for the last time, live, then it leaves the cluster.
fn handle_immutable_object(site: &Site) {
    let Some(stage) = Stage::start(site, "") else { return };
    stage.run.kubectl(&["apply", "-f", "-"], WITH_FINALIZER);
    stage.wait_for_row();
    stage.kubectl("annotate model test-model michelangelo/Immutable=true");
    stage.wait_until_gone();
    assert!(stage.of_row("delete_time").is_none() && stage.of_row("evicted_time").is_some());
    let json = stage.of_row("json").expect("the final version");
    assert!(json.contains("michelangelo/Immutable"), "{json}");
}

/// An object that is gone before anybody looked leaves no trace.
fn object_not_found(site: &Site) {
    let Some(mut stage) = Stage::switched_off(site) else {
        return;
    };
    let without_finalizer = WITH_FINALIZER.replace(", finalizers: [michelangelo/Ingester]", "");
    stage.run.kubectl(&["apply", "-f", "-"], &without_finalizer);
    stage.kubectl("delete model test-model");
    stage.enable(&[]);
    stage.report(&STATUS);
    assert_eq!(stage.of_row("uid"), None);
    let written: f64 = ["inserted", "updated", "unchanged", "superseded"]
        .map(|result| stage.written("Model", result))
        .iter()
        .sum();
    assert_eq!(written, 0.0, "the store was not called for it");
}

/// `isDeletingAnnotationSet` and `isImmutable` mean "true" and nothing else. What `getRequeuePeriod` says is a test of
/// the configuration.
fn helper_functions(site: &Site) {
    let Some(stage) = Stage::start(site, "") else {
        return;
    };
    stage.run.kubectl(&["apply", "-f", "-"], WITH_FINALIZER);
    stage.wait_for_row();
    for annotations in [
        "michelangelo/Deleting=false michelangelo/Immutable=false",
        "michelangelo/Deleting=True michelangelo/Immutable=yes",
        "michelangelo/Deleting= michelangelo/Immutable=1",
    ] {
        stage.kubectl(&format!("annotate --overwrite model test-model {annotations}"));
        let object = stage.object().expect("it is there");
        let version = object["metadata"]["resourceVersion"].as_str().map(str::to_owned);
        wait_for("the version", || stage.of_row("res_version") == version);
        assert_eq!(
            (stage.of_row("delete_time"), stage.of_row("evicted_time")),
            (None, None),
            "{annotations}"
        );
    }
    assert!(!stage.is_terminating());
}
