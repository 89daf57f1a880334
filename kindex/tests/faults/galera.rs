//! Nodes of a Galera cluster die under load. The ingester knows one address, behind which
//! the test leads it to a node that lives, as a load balancer would.

use std::time::{Duration, Instant};

use kindex_harness::galera::Galera;
use kindex_harness::proxy::Proxy;
use kindex_harness::require::require;
use kindex_harness::wait::wait_until;

use super::database::Database;
use super::judge::{judge, verify_on};
use super::report::Report;
use super::stage::{Setting, Stage};
use super::times;

const NODES: usize = 3;

#[test]
fn nodes_of_a_cluster_that_die_lose_nothing() {
    if !require("galera", Galera::installed()) {
        return;
    }
    let mut galera = Galera::start(NODES, &["--innodb-buffer-pool-size=32M"]);
    let balancer = Proxy::start(galera.port(0));
    let mut stage = Stage::begin(&Setting::on(Database::server(balancer.port)));
    let mut report = Report::new("galera, 3 nodes", "node killed");
    stage.begin_load();
    stage.ingester.start();
    stage.wait_until_ready();
    for round in 0..times(9, 2) {
        let used = round % NODES;
        // Every third time a node that nobody writes to: the others have to notice.
        let victim = if round % 3 == 2 { (used + 1) % NODES } else { used };
        stage.run_for(Duration::from_millis(500));
        galera.kill(victim);
        report.fault();
        let died = Instant::now();
        balancer.lead_to(galera.port((used + 1 + usize::from(victim != used)) % NODES));
        report.recovered(stage.recovery_beside(died, || galera.tend()));
        galera.resume(victim);
        balancer.lead_to(galera.port((used + 1) % NODES));
    }
    report.finish(judge(&mut stage));
    for node in 0..NODES {
        // A commit is on all of them, and is read on each a moment later.
        wait_until(&format!("equality on node {node}"), || {
            let found = verify_on(&stage, galera.port(node));
            let output = [found.stdout, found.stderr].concat();
            found
                .status
                .success()
                .then_some(())
                .ok_or_else(|| String::from_utf8_lossy(&output).into_owned())
        });
    }
}
