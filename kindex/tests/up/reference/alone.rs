//! Section 7: trouble with one kind is no trouble of another. In the reference a SparkJob's own controller took the
//! ingesters of all kinds with it.

use kindex_harness::wait::wait_until;
use serde_json::Value;

use super::stage::Stage;
use crate::process::wait_for;
use crate::site::{Site, on_clusters};

on_clusters!(
    a_spark_job_whose_controller_crashes_is_stored_and_nobody_notices,
    a_kind_that_the_database_refuses_delays_no_other,
);

const SPARK_JOB: &str = r#"
apiVersion: michelangelo.api/v2
kind: SparkJob
metadata: {name: nightly, namespace: default, finalizers: [example.com/spark-controller]}
spec: {sparkVersion: 3.3.0, mainClass: com.example.Nightly}
"#;

fn status_patch(stage: &Stage, status: &str) {
    let patch = [
        "patch",
        "sparkjob",
        "nightly",
        "--subresource=status",
        "--type=merge",
        "-p",
    ];
    stage.run.kubectl(&[&patch[..], &[status]].concat(), "");
}

fn a_spark_job_whose_controller_crashes_is_stored_and_nobody_notices(site: &Site) {
    let Some(stage) = Stage::start(site, "") else { return };
    let column = |column: &str| stage.sql(&format!("SELECT CAST({column} AS CHAR) FROM sparkjob"));
    stage.run.kubectl(&["apply", "-f", "-"], SPARK_JOB);
    let finalizers = || stage.kubectl("get sparkjob nightly -o jsonpath={.metadata.finalizers}");
    // Two that change an object at a time meet a conflict, which is none of the trouble that is looked for.
    wait_for("our finalizer", || finalizers().contains("michelangelo/Ingester"));
    // The controller writes half of what it wanted to say, and is no more; its finalizer stays.
    status_patch(
        &stage,
        r#"{"status":{"applicationId":"spark-17","statusConditions":[{"type":"Submitted"}]}}"#,
    );
    wait_for("the half of a status", || {
        column("json").is_some_and(|json| json.contains("spark-17"))
    });
    stage.kubectl("delete sparkjob nightly --wait=false");
    wait_for("the deletion in the row", || {
        column("json").is_some_and(|json| json.contains("deletionTimestamp") && json.contains("spark-17"))
    });

    // Theirs holds the object, and ours waits for the last that they write.
    assert_eq!(column("delete_time"), None, "it is in the cluster");
    assert!(finalizers().contains("michelangelo/Ingester"), "{}", finalizers());
    stage.run.kubectl(&["apply", "-f", "-"], super::stage::WITH_FINALIZER);
    stage.wait_for_row();
    stage.wait_until_ready();
    let retries = |log: &str| {
        log.lines()
            .filter(|line| line.contains("SparkJob") && line.contains("Failed"))
            .count()
    };
    assert_eq!(retries(&stage.run.log()), 0, "{}", stage.run.log());

    // It comes back, and finishes its work.
    status_patch(&stage, r#"{"status":{"applicationId":"spark-18"}}"#);
    let ours_alone = [
        "patch",
        "sparkjob",
        "nightly",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":["michelangelo/Ingester"]}}"#,
    ];
    stage.run.kubectl(&ours_alone, "");
    wait_for("the end", || stage.kubectl("get sparkjobs").is_empty());
    wait_for("the soft delete", || column("delete_time").is_some());
    let json = column("json").expect("a row");
    assert!(json.contains("spark-18"), "{json}");
    wait_for("a settled state", || stage.command(&["verify"]).0 == Some(0));
}

fn a_kind_that_the_database_refuses_delays_no_other(site: &Site) {
    let Some(stage) = Stage::start(site, "") else { return };
    stage.execute("CREATE TRIGGER poison BEFORE INSERT ON model FOR EACH ROW SIGNAL SQLSTATE '45000'");
    let models: Vec<String> = (0..40)
        .map(|number| super::stage::WITH_FINALIZER.replace("test-model", &format!("model-{number}")))
        .collect();
    stage.run.kubectl(&["apply", "-f", "-"], &models.join("---"));
    let quarantined = || stage.report(&["quarantine", "list"]).len();
    wait_for("all of them to be refused", || quarantined() == 40);

    let projects: Vec<String> = (0..40)
        .map(|number| {
            format!("apiVersion: michelangelo.api/v2\nkind: Project\nmetadata: {{name: project-{number}, namespace: default}}\nspec: {{tier: 1}}\n")
        })
        .collect();
    stage.run.kubectl(&["apply", "-f", "-"], &projects.join("---\n"));
    wait_for("the projects", || stage.live("project") == 40);
    assert_eq!(stage.live("model"), 0);
    // What a kind is called follows its saved position, which comes after its rows.
    wait_until("the state of each kind", || {
        let (code, stdout, _) = stage.command(&["status", "--output", "json"]);
        let kinds: Vec<Value> = serde_json::from_str(&stdout).map_err(|error| error.to_string())?;
        let state = |kind: &Value| {
            if kind["kind"] == "Model" {
                "quarantine"
            } else {
                "settled"
            }
        };
        let as_it_should = kinds.len() == 13 && kinds.iter().all(|kind| kind["state"] == state(kind));
        (code == Some(1) && as_it_should).then_some(()).ok_or(stdout)
    });

    stage.execute("DROP TRIGGER poison");
    let (code, stdout, stderr) = stage.command(&["quarantine", "retry", "--all"]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_eq!((stage.live("model"), quarantined()), (40, 0));
    wait_for("a settled state", || stage.command(&["verify"]).0 == Some(0));
}
