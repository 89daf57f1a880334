//! Section 4.4: the ingester is disabled, nothing is lost and no deletion hangs, and it is enabled again. `kindex
//! release` takes the finalizers off meanwhile.

use serde_json::{Value, json};

use super::stage::{STATUS, Stage, WITH_FINALIZER};
use crate::process::wait_for;
use crate::site::{Site, on_clusters};

on_clusters!(
    disabled_and_enabled_again_loses_nothing,
    nothing_is_released_beside_a_running_ingester,
    an_object_that_sql_refuses_keeps_its_finalizer_until_it_is_forced,
);

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples");

fn sum(report: &[Value], field: &str) -> u64 {
    report.iter().map(|kind| kind[field].as_u64().expect("a number")).sum()
}

fn with_finalizer(stage: &Stage) -> usize {
    let kinds = kindex_generated::registry().kinds;
    let plurals: Vec<String> = kinds
        .iter()
        .map(|kind| format!("{}.{}", kind.plural, kind.group))
        .collect();
    let objects = stage.kubectl(&format!("get {} -A -o json", plurals.join(",")));
    objects.matches("\"michelangelo/Ingester\"").count()
}

fn disabled_and_enabled_again_loses_nothing(site: &Site) {
    let Some(mut stage) = Stage::start(site, "") else {
        return;
    };
    stage.kubectl(&format!("apply -f {SAMPLES}"));
    stage.report(&STATUS);
    wait_for("the finalizers", || with_finalizer(&stage) == 13);
    wait_for("the rows with them", || stage.command(&["verify"]).0 == Some(0));

    // Without the ingester a deletion waits, and `release` is what it waits for.
    stage.disable();
    stage.kubectl("delete project ingester-test -n ingester-test --wait=false");
    stage.kubectl("patch model ingester-test-model -n ingester-test --type=merge -p {\"spec\":{\"algorithm\":\"a\"}}");
    let rehearsed = stage.report(&["release", "--dry-run"]);
    assert_eq!((sum(&rehearsed, "guarded"), sum(&rehearsed, "stored")), (13, 2));
    assert_eq!(with_finalizer(&stage), 13, "a dry run changes nothing");
    let released = stage.report(&["release", "--objects-per-second", "50"]);
    assert_eq!((sum(&released, "released"), sum(&released, "gone")), (13, 1));
    assert_eq!((with_finalizer(&stage), stage.live("project")), (0, 0));
    assert_eq!(
        stage.of_row("algorithm").as_deref(),
        Some("a"),
        "what SQL lacked is stored"
    );
    let (code, stdout, _) = stage.command(&["verify", "--settle", "0"]);
    assert_eq!(code, Some(0), "equal at once: {stdout}");
    let again = stage.report(&["release"]);
    assert_eq!((sum(&again, "guarded"), sum(&again, "objects")), (0, 12));

    // The cluster goes on alone: these would hang.
    stage.kubectl("delete pipeline ingester-test-pipeline -n ingester-test");
    stage.kubectl("label sparkjob ingester-test-sparkjob -n ingester-test while=disabled");
    stage.run.kubectl(&["apply", "-f", "-"], WITH_FINALIZER);

    stage.enable(&[]);
    stage.report(&STATUS);
    wait_for("a settled state", || stage.command(&["verify"]).0 == Some(0));
    assert_eq!(
        (stage.live("project"), stage.live("pipeline"), stage.live("model")),
        (0, 0, 2)
    );
    let label = stage.sql("SELECT CAST(value AS CHAR) FROM sparkjob_labels WHERE `key` = 'while'");
    assert_eq!(label.as_deref(), Some("disabled"));
    assert_eq!(
        stage
            .sql("SELECT CAST(COUNT(*) AS CHAR) FROM project WHERE delete_time IS NOT NULL")
            .as_deref(),
        Some("1")
    );
    // And everything has its finalizer again.
    wait_for("the finalizers", || with_finalizer(&stage) == 12);
}

fn nothing_is_released_beside_a_running_ingester(site: &Site) {
    let Some(mut stage) = Stage::start(site, "") else {
        return;
    };
    stage.run.kubectl(&["apply", "-f", "-"], WITH_FINALIZER);
    stage.wait_for_row();
    // It ends as soon as the ingester shows itself, however busy that is.
    let (code, _, stderr) = stage.command(&["release", "--settle", "240"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.contains("an ingester is running") && stderr.contains("default/test-model"),
        "{stderr}"
    );
    assert!(stderr.contains("hint: the object has its finalizers again"), "{stderr}");
    wait_for("the finalizer", || {
        let object = stage.object().expect("it is there");
        object["metadata"]["finalizers"] == json!(["michelangelo/Ingester"])
    });

    // A finalizer of others is none of ours.
    stage.disable();
    let finalizers = r#"{"metadata":{"finalizers":["example.com/other","michelangelo/Ingester"]}}"#;
    stage
        .run
        .kubectl(&["patch", "model", "test-model", "--type=merge", "-p", finalizers], "");
    assert_eq!(sum(&stage.report(&["release", "--kind", "models"]), "released"), 1);
    let object = stage.object().expect("it is there");
    assert_eq!(object["metadata"]["finalizers"], json!(["example.com/other"]));
}

fn an_object_that_sql_refuses_keeps_its_finalizer_until_it_is_forced(site: &Site) {
    let Some(mut stage) = Stage::start(site, "") else {
        return;
    };
    stage.disable();
    stage.execute("CREATE TRIGGER poison BEFORE INSERT ON model FOR EACH ROW SIGNAL SQLSTATE '45000'");
    stage.run.kubectl(&["apply", "-f", "-"], WITH_FINALIZER);
    let (code, stdout, stderr) = stage.command(&["release", "--output", "json"]);
    assert_eq!(code, Some(1), "{stdout}");
    assert!(
        stderr.contains("the finalizers of Kindex stay on 1 that the database refuses"),
        "{stderr}"
    );
    let report: Vec<Value> = serde_json::from_str(&stdout).expect("a list");
    assert_eq!((sum(&report, "unstored"), sum(&report, "released")), (1, 0));
    assert!(
        stage
            .object()
            .is_some_and(|object| object["metadata"]["finalizers"].is_array())
    );

    stage.server.kill();
    let (code, _, stderr) = stage.command(&["release", "--force"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(
        stderr.contains("finalizers of Kindex off 1 object, whether or not SQL holds"),
        "{stderr}"
    );
    let forced = stage.report(&["release", "--force", "--yes"]);
    assert_eq!((sum(&forced, "guarded"), sum(&forced, "released")), (1, 1));
    stage.kubectl("delete model test-model");
    stage.wait_until_gone();
}
