//! Sections 6.3 and 6.4: the finalizer holds an object until SQL is done with it, the annotation does without, and an
//! operator who reads the log sees each step in the document's words.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::stage::{KINDS, STATUS, Stage, WITH_FINALIZER};
use crate::process::wait_for;
use crate::site::{Site, on_clusters};

/// Of `deletionDelay`, the grace period: long enough to look at what is under way.
const GRACE: Duration = Duration::from_secs(5);

on_clusters!(
    finalizer_blocks_deletion_until_mysql_is_updated,
    annotation_based_delete_path,
    mysql_unavailable_finalizer_holds,
    sandbox_validation,
);

fn finalizer_blocks_deletion_until_mysql_is_updated(site: &Site) {
    let delay = format!("  deletionDelay: {}s", GRACE.as_secs());
    let Some(stage) = Stage::start(site, &delay) else {
        return;
    };
    // 1, 2: created through the API server, which injects the finalizer.
    let without_finalizer = WITH_FINALIZER.replace(", finalizers: [michelangelo/Ingester]", "");
    let server = format!("http://{}", stage.run.api().expect("it listens"));
    let created = stage.run.kubectl(
        &["--server", &server, "create", "-f", "-", "-o", "json"],
        &without_finalizer,
    );
    assert!(
        created.contains("michelangelo/Ingester"),
        "from its first moment: {created}"
    );
    stage.wait_for_row();

    // 3, 4: deleted, and held.
    let began = Instant::now();
    stage.kubectl("delete model test-model --wait=false");
    stage.wait_for_log("Object is being deleted");
    let (is_held, closed) = (stage.is_terminating(), stage.of_row("delete_time"));
    // Deletion timestamps have whole seconds. Whoever looks later than that has nothing to see any more.
    if began.elapsed() < GRACE - Duration::from_secs(1) {
        assert_eq!((is_held, closed), (true, None), "within the grace period");
    }

    // 5, 6, 7: the log tells, SQL knows, the object goes.
    stage.wait_until_gone();
    assert!(stage.of_row("delete_time").is_some());
    stage.wait_for_log("Grace period expired");
    let log = stage.run.log();
    let requested = log.find("Object is being deleted").expect("it was waited for");
    let expired = log.find("Grace period expired, deleting from metadata storage");
    assert!(expired.is_some_and(|expired| requested < expired), "{log}");
    let line = log.lines().find(|line| line.contains("Grace period expired"));
    assert!(
        line.is_some_and(|line| line.contains("Model") && line.contains("default/test-model")),
        "{line:?} names the object"
    );
    let object = stage.of_row("json").expect("the final version");
    let object: Value = serde_json::from_str(&object).expect("JSON");
    let [deleted, expired] = [
        object["metadata"]["deletionTimestamp"].as_str(),
        line.and_then(|line| line.split_whitespace().next()),
    ]
    .map(|time| time.and_then(|time| time.parse::<Timestamp>().ok()).expect("a time"));
    let waited = expired.duration_since(deleted);
    assert!(
        waited >= SignedDuration::try_from(GRACE).expect("short"),
        "the grace period: {waited}"
    );
}

fn annotation_based_delete_path(site: &Site) {
    let Some(mut stage) = Stage::start(site, "") else {
        return;
    };
    stage.run.kubectl(&["apply", "-f", "-"], WITH_FINALIZER);
    stage.wait_for_row();

    // SQL is away: what is asked for cannot be finished, and is answered all the same.
    stage.server.kill();
    stage.kubectl("annotate model test-model michelangelo/Deleting=true");
    stage.wait_for_log("Failed to delete from metadata storage");
    let object = stage.object().expect("nothing leaves before SQL knows");
    let metadata = &object["metadata"];
    assert_eq!(metadata["annotations"]["michelangelo/Deleting"], "true");
    assert!(
        metadata["deletionTimestamp"].is_null() && metadata["finalizers"][0] == "michelangelo/Ingester",
        "not terminating: {metadata}"
    );

    stage.server.resume();
    stage.wait_until_gone();
    stage.wait_for_log("Object marked for deletion via annotation");
    assert!(stage.of_row("delete_time").is_some());
    let json = stage.of_row("json").expect("the final version");
    assert!(
        !json.contains("deletionTimestamp"),
        "stored before it was deleted: {json}"
    );
}

fn mysql_unavailable_finalizer_holds(site: &Site) {
    let Some(mut stage) = Stage::start(site, "") else {
        return;
    };
    stage.run.kubectl(&["apply", "-f", "-"], WITH_FINALIZER);
    stage.wait_for_row();

    stage.server.kill();
    stage.kubectl("delete model test-model --wait=false");
    stage.wait_for_log("Failed to delete from metadata storage");
    let log = stage.run.log();
    let line = log.lines().find(|line| line.contains("Failed to delete"));
    let line = line.expect("it was waited for");
    assert!(
        line.contains("Model") && line.contains("default/test-model"),
        "names the object: {line}"
    );
    assert!(stage.is_terminating());
    wait_for("another attempt", || {
        stage
            .run
            .log()
            .matches("Failed to delete from metadata storage")
            .count()
            > 2
    });
    let object = stage.object().expect("held");
    assert_eq!(object["metadata"]["finalizers"][0], "michelangelo/Ingester");

    stage.server.resume();
    stage.wait_until_gone();
    assert!(stage.of_row("delete_time").is_some());
    assert_eq!(stage.command(&["verify", "--settle", "0"]).0, Some(0));
}

/// 6.3: the objects of all kinds, their rows, and a patch that is seen in SQL.
fn sandbox_validation(site: &Site) {
    let Some(stage) = Stage::start(site, "") else { return };
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples");
    stage.kubectl(&format!("apply -f {samples}"));
    stage.report(&STATUS);
    for kind in KINDS {
        let table = kind.to_lowercase();
        let query = format!("SELECT CAST(COUNT(*) AS CHAR) FROM {table} WHERE namespace = 'ingester-test'");
        assert_eq!(stage.sql(&query).as_deref(), Some("1"), "{table}");
    }
    let version = || -> u64 {
        let version = stage.of_row("res_version").expect("a row");
        version.parse().expect("a number")
    };
    let before = version();
    let patch = [
        "patch",
        "model",
        "ingester-test-model",
        "-n",
        "ingester-test",
        "--type=merge",
        "-p",
        r#"{"spec":{"algorithm":"lightgbm"}}"#,
    ];
    stage.run.kubectl(&patch, "");
    wait_for("the patch", || stage.of_row("algorithm").as_deref() == Some("lightgbm"));
    assert!(version() > before, "{} after {before}", version());
}
