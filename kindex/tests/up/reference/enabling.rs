//! Section 4.1: the ingester is enabled on a cluster that is in use.

use serde_json::Value;

use super::stage::{KINDS, STATUS, Stage};
use crate::process::wait_for;
use crate::site::{Site, on_clusters};

on_clusters!(enabling_on_a_running_cluster,);

fn enabling_on_a_running_cluster(site: &Site) {
    let Some(mut stage) = Stage::switched_off(site) else {
        return;
    };
    stage.wait_for_log("Metadata storage not configured, skipping ingester setup");
    assert!(!stage.run.log().contains("Ingester controller registered"));
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples");
    stage.kubectl(&format!("apply -f {samples}"));

    // Steps 2 to 4: both stanzas, a restart, 13 lines.
    stage.enable(&[]);
    let lines = |log: &str| {
        let lines = log
            .lines()
            .filter(|line| line.contains("Ingester controller registered"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    // What a ready process has written is read a moment later.
    wait_for("the lines", || lines(&stage.run.log()).len() >= 13);
    let registered = lines(&stage.run.log());
    assert_eq!(registered.len(), 13, "{registered:?}");
    for kind in KINDS {
        let controller = format!("\"ingester_{}\"", kind.to_lowercase());
        let lines = registered
            .iter()
            .filter(|line| line.contains(&controller) && line.contains(&format!("\"{kind}\"")));
        assert_eq!(lines.count(), 1, "{kind} in {registered:?}");
    }

    // Step 5: the loop over 13 tables is one command.
    let kinds = stage.report(&STATUS);
    for (status, kind) in kinds.iter().zip(KINDS) {
        assert_eq!(
            (&status["kind"], &status["state"]),
            (&Value::from(kind), &Value::from("settled"))
        );
        assert_eq!((&status["objects"], &status["live"]), (&1.into(), &1.into()), "{kind}");
        assert_eq!(stage.live(&kind.to_lowercase()), 1, "{kind}");
    }
    let (code, table, _) = stage.command(&STATUS);
    assert_eq!((code, table.lines().count()), (Some(0), 14), "{table}");

    // For programs, the same lines have the text and the fields apart.
    stage.enable(&["--log-format", "json"]);
    let lines = |log: &str| {
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let registered = lines.filter(|line| line["fields"]["message"] == "Ingester controller registered");
        registered.collect::<Vec<_>>()
    };
    wait_for("the lines as JSON", || lines(&stage.run.log()).len() >= 13);
    let registered = lines(&stage.run.log());
    assert_eq!(registered.len(), 13, "{registered:?}");
    assert_eq!(registered[2]["fields"]["kind"], "Model");
    assert_eq!(registered[2]["level"], "INFO");
}
