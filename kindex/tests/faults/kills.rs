//! The ingester is killed at any moment, again and again, and nobody ever stops working.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::database::{Database, mariadb};
use super::judge::judge;
use super::report::Report;
use super::stage::{Setting, Stage};
use super::times;

/// Kills at random moments: some during the start, some in the middle of work.
fn kill_again_and_again(name: &str, kills: usize, setting: &Setting) {
    let mut stage = Stage::begin(setting);
    stage.begin_load();
    let mut rng = StdRng::seed_from_u64(kills as u64);
    let mut report = Report::new(name, "kill");
    let mut since = Instant::now();
    for _ in 0..kills {
        stage.ingester.start();
        if rng.random() {
            report.recovered(stage.recovery(since));
        }
        stage.run_for(Duration::from_millis(rng.random_range(0..300)));
        since = Instant::now();
        stage.ingester.kill();
        report.fault();
    }
    stage.ingester.start();
    report.recovered(stage.recovery(since));
    report.finish(judge(&mut stage));
}

#[test]
fn a_hundred_kills_lose_nothing_on_mariadb() {
    let Some(server) = mariadb(&[]) else { return };
    let setting = Setting::on(Database::server(server.port));
    kill_again_and_again("mariadb", times(100, 8), &setting);
}

#[test]
fn a_hundred_kills_lose_nothing_on_sqlite() {
    kill_again_and_again("sqlite", times(100, 4), &Setting::on(Database::Sqlite));
}

/// A cluster that forgets quickly: what happened while the ingester was dead is in no watch.
#[test]
fn kills_lose_nothing_where_each_restart_has_to_list() {
    let setting = Setting {
        history_max: 20,
        ..Setting::on(Database::Sqlite)
    };
    kill_again_and_again("sqlite, short history", times(30, 4), &setting);
}
