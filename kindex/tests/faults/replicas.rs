//! Three ingesters divide the kinds by leases. Those that are killed or told to go leave their kinds to the others,
//! and get their part again when they come back.

use std::time::{Duration, Instant};

use super::database::{Database, mariadb};
use super::ingester::Ingester;
use super::judge::judge;
use super::objects;
use super::report::Report;
use super::stage::{Setting, Stage};
use super::times;

const FLAGS: [&str; 4] = ["--shards", "5", "--lease-seconds", "3"];

/// An object of each kind gets its row, whoever works on it.
fn recovery(stage: &mut Stage, round: usize, since: Instant) -> Duration {
    let made: Vec<_> = stage
        .registry
        .kinds
        .iter()
        .map(|kind| {
            (
                *kind,
                stage.create(kind, &objects::with_finalizer(kind, &format!("round-{round}"), 0)),
            )
        })
        .collect();
    for (kind, uid) in made {
        stage.eventually(&format!("the row of a new {}", kind.name), |stage| {
            let row = stage.runtime.block_on(stage.storage.get_by_id(kind, &uid));
            matches!(row, Ok(Some(_)))
        });
    }
    since.elapsed()
}

/// Kinds that each of them works on.
fn kinds(replicas: &[&Ingester]) -> Vec<f64> {
    let active = |replica: &&Ingester| Some(replica.metrics()?.sum("kindex_ingester_active"));
    replicas.iter().map(|replica| active(replica).unwrap_or(0.0)).collect()
}

/// Every kind has one replica, and none is idle.
fn wait_until_divided(stage: &mut Stage, others: &[Ingester]) {
    let all = stage.registry.kinds.len() as f64;
    stage.eventually("the kinds are divided", |stage| {
        let counts = kinds(&[&stage.ingester, &others[0], &others[1]]);
        counts.iter().sum::<f64>() == all && counts.iter().all(|count| *count > 0.0)
    });
}

fn replicas_come_and_go(name: &str, setting: &Setting) {
    let mut stage = Stage::begin(setting);
    stage.ingester.flags = FLAGS.map(str::to_owned).to_vec();
    stage.ingester.start();
    let mut others = [stage.ingester.beside(1), stage.ingester.beside(2)];
    others.iter_mut().for_each(Ingester::start);
    stage.begin_load();
    wait_until_divided(&mut stage, &others);
    let mut reports = Vec::new();
    for fault in ["kill of a replica", "stop of a replica"] {
        let mut report = Report::new(name, fault);
        for round in 0..times(10, 2) {
            let other = &mut others[round % 2];
            let since = Instant::now();
            if fault.starts_with("kill") {
                other.kill();
            } else {
                other.stop();
            }
            report.fault();
            let round = round + if fault.starts_with("kill") { 0 } else { 100 };
            report.recovered(recovery(&mut stage, round, since));
            others[round % 2].start();
            wait_until_divided(&mut stage, &others);
        }
        reports.push(report);
    }
    let judged = judge(&mut stage);
    assert!(judged > 0, "the load made objects");
    reports.into_iter().for_each(|report| report.finish(judged));
    for other in &others {
        assert_eq!(other.lost(), 0.0, "nothing is counted as lost");
        stage.eventually("a replica is ready, whatever it works on", |_| {
            other.not_ready().as_deref() == Some("")
        });
    }
}

#[test]
fn replicas_that_come_and_go_lose_nothing() {
    let Some(server) = mariadb(&[]) else { return };
    replicas_come_and_go("three replicas, mariadb", &Setting::on(Database::server(server.port)));
}
