//! The network between the ingester and its two sides refuses, stalls, resets and goes
//! half-open, while the cluster goes on changing.

use std::time::{Duration, Instant};

use kindex_harness::proxy::{Mode, Proxy};

use super::database::{Database, mariadb};
use super::judge::judge;
use super::report::Report;
use super::stage::{Setting, Stage};
use super::times;

const MODES: [Mode; 4] = [Mode::Refuse, Mode::Stall, Mode::Reset, Mode::HalfOpen];
/// How long the network is broken each time.
const OUTAGE: Duration = Duration::from_millis(1500);

#[test]
fn a_broken_network_to_the_database_loses_nothing() {
    let Some(server) = mariadb(&[]) else { return };
    let network = Proxy::start(server.port);
    let mut stage = Stage::begin(&Setting::on(Database::Server {
        reported: network.port,
        direct: server.port,
    }));
    stage.begin_load();
    stage.ingester.start();
    stage.wait_until_ready();
    let mut report = Report::new("network to mariadb", "refused, stalled, reset, half-open");
    for mode in MODES.repeat(times(5, 1)) {
        stage.run_for(Duration::from_millis(300));
        network.set(mode);
        report.fault();
        stage.run_for(OUTAGE);
        network.set(Mode::Pass);
        report.recovered(stage.recovery(Instant::now()));
    }
    report.finish(judge(&mut stage));
}

#[test]
fn a_broken_network_to_the_cluster_loses_nothing() {
    let mut stage = Stage::begin(&Setting::on(Database::Sqlite));
    stage.begin_load();
    stage.ingester.start();
    stage.wait_until_ready();
    let mut report = Report::new("network to the cluster", "refused, stalled, reset, half-open");
    for mode in MODES.repeat(times(5, 1)) {
        stage.run_for(Duration::from_millis(300));
        stage.network.set(mode);
        report.fault();
        stage.run_for(OUTAGE);
        stage.network.set(Mode::Pass);
        report.recovered(stage.recovery(Instant::now()));
    }
    report.finish(judge(&mut stage));
}

#[test]
fn a_cluster_that_refuses_is_a_reason_for_every_kind() {
    let mut stage = Stage::begin(&Setting::on(Database::Sqlite));
    stage.begin_load();
    stage.ingester.start();
    stage.wait_until_ready();
    stage.network.set(Mode::Refuse);
    let kinds = stage.registry.kinds.len();
    stage.eventually("a reason for each kind", |stage| {
        let reasons = stage.ingester.not_ready().unwrap_or_default();
        reasons.lines().filter(|reason| reason.contains("refused")).count() == kinds
    });
    stage.network.set(Mode::Pass);
    stage.wait_until_ready();
    judge(&mut stage);
}
