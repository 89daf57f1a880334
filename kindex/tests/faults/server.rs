//! The database server dies in the middle of batches, and its disk fills up.

use std::time::{Duration, Instant};

use kindex_harness::sql_server::SqlServer;
use sqlx::ConnectOptions;
use sqlx::mysql::MySqlConnectOptions;

use super::database::{Database, mariadb};
use super::judge::judge;
use super::report::Report;
use super::stage::{Setting, Stage};
use super::times;

#[test]
fn a_server_that_dies_in_the_middle_of_a_batch_loses_nothing() {
    let Some(mut server) = mariadb(&[]) else { return };
    let mut stage = Stage::begin(&Setting::on(Database::server(server.port)));
    let mut report = Report::new("mariadb", "server killed and restarted");
    stage.begin_load();
    stage.ingester.start();
    stage.wait_until_ready();
    for _ in 0..times(20, 3) {
        stage.run_for(Duration::from_millis(500));
        server.kill();
        report.fault();
        stage.eventually("the reason", |stage| {
            stage
                .ingester
                .not_ready()
                .is_some_and(|text| text.contains("cannot answer now"))
        });
        server.resume();
        report.recovered(stage.recovery(Instant::now()));
    }
    report.finish(judge(&mut stage));
}

/// Fills a server's tablespace with rows of somebody else, until nothing big fits any more.
async fn fill(server: &SqlServer) {
    let options = MySqlConnectOptions::new().host("127.0.0.1").port(server.port);
    let mut connection = options.username("root").connect().await.expect("the server answers");
    for statement in [
        "CREATE DATABASE IF NOT EXISTS ballast",
        "CREATE TABLE IF NOT EXISTS ballast.rows (id INT PRIMARY KEY AUTO_INCREMENT, bytes LONGBLOB)",
    ] {
        sqlx::query(statement).execute(&mut connection).await.expect("executed");
    }
    for bytes in [1_000_000, 100_000, 8_000] {
        let insert = "INSERT INTO ballast.rows (bytes) VALUES (REPEAT('x', ?))";
        let mut rows = 0;
        while let Ok(done) = sqlx::query(insert).bind(bytes).execute(&mut connection).await {
            rows += done.rows_affected();
            assert!(rows < 10_000, "the tablespace has no end");
        }
    }
}

/// One tablespace that may not grow beyond a size, as on a disk of that size.
fn disk(megabytes: usize) -> [String; 2] {
    let file = format!("--innodb-data-file-path=ibdata1:12M:autoextend:max:{megabytes}M");
    ["--innodb-file-per-table=OFF".to_owned(), file]
}

#[test]
fn a_full_disk_is_waited_for_and_loses_nothing() {
    let mut megabytes = 48;
    let [tables, file] = disk(megabytes);
    let Some(mut server) = mariadb(&[&tables, &file]) else {
        return;
    };
    let mut stage = Stage::begin(&Setting::on(Database::server(server.port)));
    let mut report = Report::new("mariadb", "disk full, and made larger with a restart");
    stage.begin_load();
    stage.ingester.start();
    stage.wait_until_ready();
    for _ in 0..times(5, 1) {
        stage.runtime.block_on(fill(&server));
        report.fault();
        stage.eventually("the reason", |stage| {
            stage.ingester.not_ready().is_some_and(|text| text.contains("is full"))
        });
        server.kill();
        megabytes += 32;
        server.set_options(&disk(megabytes));
        server.resume();
        report.recovered(stage.recovery(Instant::now()));
    }
    report.finish(judge(&mut stage));
}
