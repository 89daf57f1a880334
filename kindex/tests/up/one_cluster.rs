//! Two clusters and one database: the second one is refused, and closes no row, until somebody says that the database
//! follows it. Then the first one is refused.

use std::process::{Command, Output};

use super::api::Role;
use super::process::{KINDEX, Running, kubectl_is_there, wait_for};
use super::text_of;

const MODEL: &str = "
apiVersion: michelangelo.api/v2
kind: Model
metadata: {name: a, namespace: default}
spec: {algorithm: xgboost}
";

/// The uid of the cluster for which a start was refused, by the flag that lets it in.
pub(crate) fn refused_for(output: &Output) -> String {
    let text = text_of(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("has the objects of another cluster"), "{text}");
    let (_, rest) = text.split_once("--follow-cluster ").expect("the way out");
    let (uid, _) = rest.split_once(':').expect("what follows from it");
    uid.to_owned()
}

#[test]
fn a_second_cluster_is_refused_until_somebody_says_that_the_database_follows_it() {
    if !kubectl_is_there() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let database = format!("sqlite:{}", directory.path().join("rows.db").display());
    let flags = ["--database", &database];
    let mut first = Running::start(&flags);
    first.kubectl(&["apply", "-f", "-"], MODEL);
    let is = |run: &Running, state: &str| {
        let output = run.command(&[&["get", "models", "--deleted"][..], &flags].concat());
        output.status.success() && text_of(&output.stdout).contains(state)
    };
    wait_for("the row", || is(&first, "live"));

    let mut second = Running::once(&flags);
    let uid = refused_for(&second.finish());
    assert!(is(&first, "live") && !is(&first, "deleted"));
    // A flag that names another cluster, as one that is left over from an earlier move.
    let flag = ["--follow-cluster", "another"];
    assert_eq!(refused_for(&second.finish_with(&[flags, flag].concat())), uid);
    // It is compared with the cluster that its data directory has, and that is still the first one.
    first.kill();
    first.restart();
    wait_for("readiness", || first.request("/readyz").0 == 200);
    assert!(is(&first, "live") && !is(&first, "deleted"));

    first.kill();
    second.restart_with(&[flags, ["--follow-cluster", &uid]].concat());
    wait_for("the closed row", || is(&second, "deleted"));
    refused_for(&first.finish_with(&flags));
}

#[test]
fn every_program_that_works_on_both_sides_is_refused_by_the_database_of_another_cluster() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = format!("sqlite:{}", directory.path().join("rows.db").display());
    let database = ["--database", &database];
    let first = Running::once(&[&database[..], &["--once"]].concat()).finish();
    assert!(first.status.success(), "{}", text_of(&first.stderr));

    let second = Running::start(&[]);
    for command in [
        &["backfill"][..],
        &["verify", "--settle", "0"],
        &["release"],
        &["restore", "models", "--deleted"],
        &["versions"],
        &["why", "model/a"],
    ] {
        let uid = refused_for(&second.command(&[command, &database].concat()));
        assert!(!uid.is_empty(), "{command:?}");
    }
    let kubeconfig = second.data_dir().join("kubeconfig");
    for service in [
        &["api", "--listen", "127.0.0.1:0", "--rights", "server"][..],
        &["deletion"],
    ] {
        // One that is not refused would never end.
        let mut limited = Command::new("timeout");
        limited.args(["240", KINDEX]).args(service).args(database);
        limited
            .args(["--health-addr", "127.0.0.1:0", "--kubeconfig"])
            .arg(&kubeconfig);
        refused_for(&limited.output().expect("coreutils"));
    }
}

/// As if a service that started during an outage worked with the objects of another cluster for ever.
#[test]
fn a_service_ends_when_its_database_is_found_to_be_of_another_cluster() {
    let run = Running::start(&[]);
    let mut role = Role::start(&run, &run.data_dir().join("kubeconfig"), &[]);
    wait_for("readiness", || role.is_ready().is_ok());
    run.plant("UPDATE kindex_state SET value = 'another' WHERE kind = 'kindex' AND name = 'cluster'");
    let mut ended = None;
    wait_for("the end", || {
        ended = role.ended(&run);
        ended.is_some()
    });
    let (code, said) = ended.expect("it has ended");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("has the objects of another cluster"), "{said}");
}
