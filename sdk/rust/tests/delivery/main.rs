//! What the client guarantees, against the real service: it is away, restarted, and its answers are lost.

mod service;

mod proxy;
mod secured;

use std::time::Duration;

use kindex_runs::domain::Status as Stored;
use kindex_runs::lifecycle::SilenceRules;
use kindex_runs_client::{Error, Run, Settings, Status};

use proxy::Proxy;
use service::Server;

const TIMEOUT: Duration = Duration::from_secs(60);

fn settings(url: &str) -> Settings {
    Settings::new(url, "demo")
}

fn log(run: &Run, steps: std::ops::Range<i64>) {
    for step in steps {
        let taken = run.log(step, &[("loss", step as f64 / 2.0), ("accuracy", 0.5)]);
        taken.expect("there is room");
    }
}

fn points(steps: i64) -> Vec<(i64, f64)> {
    (0..steps).map(|step| (step, step as f64 / 2.0)).collect()
}

#[test]
fn each_point_is_stored_once_though_the_service_is_away_and_is_restarted() {
    let mut server = Server::new();
    let run = Run::start(
        settings(&server.url())
            .name("first")
            .tag("team", "red")
            .param("lr", 0.1),
    )
    .expect("a run");
    log(&run, 0..100);
    let late = run.flush(Duration::from_millis(1)).expect_err("nobody is there");
    assert!(matches!(late, Error::Timeout { points: 200, .. }), "{late}");

    server.start();
    run.flush(TIMEOUT).expect("answered");
    log(&run, 100..200);
    server.stop();
    log(&run, 200..300);
    server.start();
    let id = run.id().to_owned();
    let report = run.finish(Status::Finished, TIMEOUT).expect("finished");
    assert_eq!((report.accepted + report.deduplicated, report.dropped), (600, 0));
    assert_eq!(server.series(&id, "loss"), points(300));
    let stored = server.run(&id);
    assert_eq!(stored.status, Stored::Finished);
    assert_eq!(stored.name, "first");
    assert_eq!(server.accepted(&id), 600);
}

/// The service has stored what it answers: asked again with another id, it would store it twice.
#[test]
fn a_batch_whose_answer_is_lost_is_sent_again_as_the_same_batch() {
    let mut server = Server::new();
    server.start();
    let proxy = Proxy::before(server.address());
    let run = Run::start(settings(&proxy.url())).expect("a run");
    run.log(0, &[("loss", 0.0)]).expect("room");
    run.flush(TIMEOUT).expect("answered");
    proxy.lose_answers(3);
    log(&run, 0..50);
    let report = run.flush(TIMEOUT).expect("answered at last");
    // A busy machine may log so slowly that a second batch is sent, whose answer arrives.
    assert_eq!(report.accepted + report.deduplicated, 101, "{report:?}");
    assert!(report.deduplicated > 0, "{report:?}");
    assert_eq!(server.accepted(run.id()), 101);
    assert_eq!(server.series(run.id(), "loss"), points(50));
    proxy.lose_answers(2);
    let id = run.id().to_owned();
    run.finish(Status::Failed, TIMEOUT)
        .expect("ended, though its answer was lost");
    assert_eq!(server.run(&id).status, Stored::Failed);
}

#[test]
fn a_full_buffer_is_told_of_and_has_room_again_once_the_service_is_there() {
    let mut server = Server::new();
    let run = Run::start(settings(&server.url()).buffer_points(10)).expect("a run");
    log(&run, 0..5);
    let full = run.log(5, &[("loss", 2.5), ("accuracy", 0.5)]).expect_err("no room");
    assert_eq!(full, Error::Full { points: 10 });
    server.start();
    run.flush(TIMEOUT).expect("answered");
    log(&run, 5..6);
    run.flush(TIMEOUT).expect("answered");
    assert_eq!(server.series(run.id(), "loss"), points(6));
}

#[test]
fn what_the_service_refuses_for_good_is_told_with_its_reason() {
    let mut server = Server::new();
    server.start();
    let run = Run::start(Settings::new(server.url(), "Not a project")).expect("a run");
    let refused = run.flush(Duration::ZERO).and_then(|_| {
        run.log(0, &[("loss", 0.0)])?;
        run.flush(TIMEOUT)
    });
    let Err(Error::Refused(refusal)) = refused else {
        panic!("{refused:?}");
    };
    assert!(refusal.message.contains("project"), "{refusal}");
    assert_eq!(run.log(1, &[("loss", 0.5)]), Err(Error::Refused(refusal)));
}

#[test]
fn points_that_the_service_drops_are_counted() {
    let mut server = Server::new();
    server.start();
    let run = Run::start(settings(&server.url())).expect("a run");
    run.log(0, &[("loss", f64::NAN), ("not a name!", 1.0)]).expect("room");
    let report = run.flush(TIMEOUT).expect("answered");
    assert_eq!((report.accepted, report.dropped), (1, 1));
    assert!(server.series(run.id(), "loss")[0].1.is_nan());
}

#[test]
fn a_run_that_is_dropped_stays_running() {
    let mut server = Server::new();
    server.start();
    let run = Run::start(settings(&server.url())).expect("a run");
    log(&run, 0..1);
    run.flush(TIMEOUT).expect("answered");
    let id = run.id().to_owned();
    drop(run);
    server.stop();
    server.start();
    assert_eq!(server.run(&id).status, Stored::Running);
}

#[test]
fn a_run_that_crashed_in_silence_goes_on_where_it_was() {
    let mut server = Server::with(SilenceRules {
        crash_after: 300_000_000,
        ..SilenceRules::default()
    });
    server.start();
    let run = Run::start(settings(&server.url())).expect("a run");
    log(&run, 0..10);
    run.flush(TIMEOUT).expect("answered");
    server.wait_for(run.id(), Stored::Crashed);
    log(&run, 10..20);
    let id = run.id().to_owned();
    run.finish(Status::Finished, TIMEOUT).expect("finished");
    assert_eq!(server.series(&id, "loss"), points(20));
    assert_eq!(server.run(&id).status, Stored::Finished);
}
