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

/// Two ingesters of all kinds at once, as two replicas that both take themselves for the one at work. Now one of them
/// is killed, now the other, now both.
fn kill_one_of_two(name: &str, kills: usize, setting: &Setting) {
    let mut stage = Stage::begin(setting);
    stage.begin_load();
    let mut rng = StdRng::seed_from_u64(kills as u64);
    let mut report = Report::new(name, "kill of one of two, or of both");
    let mut other = stage.ingester.beside(1);
    stage.ingester.start();
    other.start();
    for _ in 0..kills {
        stage.run_for(Duration::from_millis(rng.random_range(100..600)));
        let which = rng.random_range(0..3);
        let (one, two) = (which != 0, which != 1);
        if one {
            stage.ingester.kill();
        }
        if two {
            other.kill();
        }
        stage.run_for(Duration::from_millis(rng.random_range(0..200)));
        let since = Instant::now();
        if one {
            stage.ingester.start();
        }
        if two {
            other.start();
        }
        report.fault();
        report.recovered(stage.recovery(since));
    }
    report.finish(judge(&mut stage));
    assert_eq!(other.lost(), 0.0, "nothing is counted as lost");
}

#[test]
fn kills_of_one_of_two_leave_no_stale_text_of_what_others_held() {
    let Some(server) = mariadb(&[]) else { return };
    let setting = Setting::on(Database::server(server.port));
    kill_one_of_two("two ingesters, mariadb", times(40, 8), &setting);
}

/// Where each restart has to list, what others let go of meanwhile is in no watch.
#[test]
fn kills_of_one_of_two_leave_no_stale_text_where_each_restart_has_to_list() {
    let Some(server) = mariadb(&[]) else { return };
    let setting = Setting {
        history_max: 20,
        ..Setting::on(Database::server(server.port))
    };
    kill_one_of_two("two ingesters, mariadb, short history", times(40, 6), &setting);
}
