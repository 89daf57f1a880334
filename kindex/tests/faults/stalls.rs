//! A database that takes what it is sent and answers nothing: the ingester says so long before its calls fail, and goes
//! on where it was.

use std::time::Duration;

use kindex_harness::proxy::{Mode, Proxy};

use super::database::{Database, mariadb};
use super::judge::judge;
use super::stage::{Setting, Stage};

/// A sixth of the time after which a call fails.
const WAIT_MAX: Duration = Duration::from_secs(10);
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn a_database_that_does_not_answer_is_a_reason_before_it_is_a_failure() {
    let Some(server) = mariadb(&[]) else { return };
    let network = Proxy::start(server.port);
    let mut stage = Stage::begin(&Setting::on(Database::Server {
        reported: network.port,
        direct: server.port,
    }));
    stage.begin_load();
    stage.ingester.start();
    stage.wait_until_ready();
    stage.run_for(Duration::from_millis(500));

    // A busy machine may have been as slow before, too.
    let reported = |stage: &Stage| stage.ingester.log().matches("The database does not answer").count();
    let answered = |stage: &Stage| stage.ingester.log().matches("The database answers again").count();
    let before = (reported(&stage), answered(&stage));
    network.set(Mode::Stall);
    let mut reasons = String::new();
    stage.eventually("a call that waits", |stage| {
        reasons = stage.ingester.not_ready().unwrap_or_default();
        reasons.contains("the database has not answered a ")
    });
    // The call may have begun before the stall: its own age is what counts.
    let age = reasons
        .split(" for ")
        .find_map(|rest| rest.split_once(" s")?.0.parse().ok());
    let age = Duration::from_secs(age.expect("it says for how long"));
    assert!(age < CALL_TIMEOUT / 2, "{reasons}");
    let metrics = stage.ingester.metrics().expect("it answers");
    assert!(metrics.sum("kindex_database_oldest_call_seconds") >= WAIT_MAX.as_secs_f64() - 1.0);
    assert_eq!(metrics.sum("kindex_ready"), 0.0);
    // The call logs it by a timer of its own, which may be later than whoever asks.
    stage.eventually("the line", |stage| reported(stage) > before.0);
    assert_eq!(reported(&stage), before.0 + 1);

    network.set(Mode::Pass);
    stage.wait_until_ready();
    stage.eventually("the answer is told", |stage| answered(stage) > before.1);
    judge(&mut stage);
}
