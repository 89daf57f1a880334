//! A database that goes away and comes back is told by one line each, for all kinds together.

use kindex_harness::mariadb::MariaDb;
use kindex_harness::require::require;

use super::process::{Running, kubectl_is_there, wait_for};
use super::text_of;

#[test]
fn an_outage_is_reported_once_and_so_is_its_end() {
    if !kubectl_is_there() || !require("mariadb", MariaDb::installed()) {
        return;
    }
    let mut server = MariaDb::start(&["--innodb-flush-log-at-trx-commit=0"]);
    let address = format!("mysql://root@127.0.0.1:{}/michelangelo", server.port);
    let run = Running::start(&["--database", &address]);
    wait_for("readiness", || run.request("/readyz").0 == 200);
    server.kill();
    // Nothing changes, and it is told all the same.
    wait_for("the outage in the log", || run.log().contains("cannot be reached"));
    for number in 0..3 {
        for kind in ["Project", "ModelFamily"] {
            let metadata = format!("{{name: it-{number}, namespace: default}}");
            let object = format!("{{apiVersion: michelangelo.api/v2, kind: {kind}, metadata: {metadata}, spec: {{}}}}");
            run.kubectl(&["apply", "-f", "-"], &object);
        }
    }
    server.resume();
    wait_for("its end in the log", || run.log().contains("is back after"));
    for plural in ["projects", "modelfamilys"] {
        wait_for("the rows", || {
            let found = run.command(&["get", plural, "--database", &address, "-o", "name"]);
            text_of(&found.stdout).lines().count() == 3
        });
    }
    let log = run.log();
    let reported: Vec<&str> = log.lines().filter(|line| line.contains("The database ")).collect();
    let [lost, back] = reported[..] else { panic!("{log}") };
    assert!(lost.contains(&address) && back.contains(&address), "{reported:?}");
    assert!(back.contains(" s; ") && back.ends_with(" waited"), "{back}");
    for noise in ["sqlx", "metadata storage: ", "cannot answer", "cannot be read"] {
        assert!(!log.contains(noise), "{noise} in {log}");
    }
}
