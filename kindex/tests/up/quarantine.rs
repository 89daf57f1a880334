//! `kindex quarantine` as it is typed: an object that the database refuses is listed with its
//! reason, shown, tried again until it is stored, and dropped only on demand.

use serde_json::{Value, json};

use super::process::{Running, kubectl_is_there, wait_for};
use super::site::{Site, on_clusters};

const POISON: &str = "CREATE TRIGGER poison BEFORE INSERT ON model WHEN NEW.name = 'fraud' \
     BEGIN SELECT RAISE(ABORT, 'poisonous'); END";

fn records(run: &Running) -> Vec<Value> {
    let output = run.command(&["quarantine", "list", "--output", "json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a list")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

on_clusters!(a_refused_object_is_listed_shown_retried_and_dropped,);

fn a_refused_object_is_listed_shown_retried_and_dropped(site: &Site) {
    if !kubectl_is_there() {
        return;
    }
    // The ingester tries again at every change of the object: the graph must not add its finalizer meanwhile.
    let run = Running::start_on(site, &["--deletion=false"]);
    wait_for("the tables", || run.command(&["get", "models"]).status.success());
    run.execute(POISON);
    run.kubectl(&["apply", "-f", "-"], super::MODEL);
    wait_for("the record", || !records(&run).is_empty());
    let record = records(&run).remove(0);
    let uid = record["uid"].as_str().expect("a uid").to_owned();
    assert_eq!((&record["kind"], &record["name"]), (&json!("Model"), &json!("fraud")));
    assert!(
        record["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("poisonous"))
    );

    let shown = run.command(&["quarantine", "show", &uid]);
    let object: Value = serde_json::from_slice(&shown.stdout).expect("the object and nothing else");
    assert_eq!(object["spec"]["algorithm"], "xgboost");
    assert!(text(&shown.stderr).contains("poisonous"));

    let refused = run.command(&["quarantine", "retry", "--all"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stdout).contains("refused again"));
    assert!(records(&run)[0]["attempts"].as_u64() > record["attempts"].as_u64());

    let output = run.command(&["quarantine", "drop", &uid]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("--yes") && records(&run).len() == 1);
    let unnamed = run.command(&["quarantine", "drop", "--yes"]);
    assert_eq!(unnamed.status.code(), Some(2), "nothing is meant by silence");

    run.execute("DROP TRIGGER poison");
    let stored = run.command(&["quarantine", "retry", &uid]);
    assert!(stored.status.success(), "{}", text(&stored.stderr));
    assert!(records(&run).is_empty());
    assert!(run.get(&["models"]).contains("fraud"));
    let absent = run.command(&["quarantine", "retry", &uid]);
    assert!(text(&absent.stderr).contains("is not in quarantine"));
}
