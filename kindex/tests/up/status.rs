//! `kindex status` as it is typed: what it counts, what it calls it, and that it waits.

use serde_json::{Value, json};

use super::process::{Running, kubectl_is_there};
use super::site::{Site, on_clusters};
use super::text_of;

fn status(run: &Running, more: &[&str]) -> (Option<i32>, Vec<Value>) {
    let output = run.command(&[&["status", "--output", "json"], more].concat());
    let kinds = serde_json::from_slice(&output.stdout);
    let kinds = kinds.unwrap_or_else(|error| panic!("{error}: {}", text_of(&output.stderr)));
    (output.status.code(), kinds)
}

on_clusters!(
    kinds_are_settled_or_say_why_not,
    a_script_waits_until_what_it_applied_is_stored,
);

fn kinds_are_settled_or_say_why_not(site: &Site) {
    let run = Running::samples_without_ingester_on(site);
    let (code, kinds) = status(&run, &[]);
    assert_eq!((code, kinds.len()), (Some(0), 13));
    for kind in &kinds {
        assert_eq!(
            (&kind["state"], &kind["objects"], &kind["live"]),
            (&json!("settled"), &json!(1), &json!(1))
        );
    }
    run.plant("UPDATE model SET evicted_time = update_time");
    let (code, models) = status(&run, &["--kind", "models", "--wait", "--timeout", "0"]);
    assert_eq!((code, models.len()), (Some(1), 1));
    assert_eq!(
        (&models[0]["state"], &models[0]["live"], &models[0]["evicted"]),
        (&json!("behind"), &json!(0), &json!(1))
    );

    run.plant("DELETE FROM kindex_checkpoint WHERE kind = 'Project'");
    let output = run.command(&["status", "--kind", "project"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text_of(&output.stdout).contains("not yet synced"));
    assert!(
        text_of(&output.stderr).contains("kindex backfill"),
        "what to do: {}",
        text_of(&output.stderr)
    );
}

fn a_script_waits_until_what_it_applied_is_stored(site: &Site) {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start_on(site, &[]);
    run.kubectl(&["apply", "-f", "-"], super::MODEL);
    let waited = run.command(&["status", "--wait", "--timeout", "240"]);
    assert!(waited.status.success(), "{}", text_of(&waited.stderr));
    assert!(run.get(&["models"]).contains("fraud"));
}
