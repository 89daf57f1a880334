//! Over TLS: only a service with a certificate of a trusted authority gets anything.

use std::time::Duration;

use kindex_runs_client::{Error, Run, Status};

use crate::service::{Server, pem};
use crate::{TIMEOUT, log, points, settings};

#[test]
fn a_run_is_logged_over_tls_to_a_service_whose_authority_is_trusted() {
    let mut server = Server::secured("first");
    server.start();
    let run = Run::start(settings(&server.url()).ca_file(pem("first.crt"))).expect("a run");
    log(&run, 0..100);
    let id = run.id().to_owned();
    let report = run.finish(Status::Finished, TIMEOUT).expect("finished");
    assert_eq!((report.accepted, report.dropped), (200, 0));
    assert_eq!(server.series(&id, "loss"), points(100));
}

/// Its key is not sent either: the connection is refused before any request.
#[test]
fn a_service_of_another_authority_gets_nothing_and_the_timeout_says_why() {
    let mut server = Server::secured("first");
    server.start();
    let run = Run::start(settings(&server.url()).ca_file(pem("second.crt"))).expect("a run");
    log(&run, 0..1);
    let flush = || run.flush(Duration::from_secs(2)).expect_err("it is not trusted");
    let says_why = |late: &Error| matches!(late, Error::Timeout { why, .. } if why.contains("certificate"));
    // On a busy machine, the first attempt may take longer than one of these waits.
    assert!((0..30).any(|_| says_why(&flush())), "{}", flush());
    let plain = Run::start(settings(&server.url().replace("https", "http"))).expect("a run");
    log(&plain, 0..1);
    let late = plain
        .flush(Duration::from_secs(2))
        .expect_err("it does not speak in the clear");
    assert!(matches!(&late, Error::Timeout { .. }), "{late}");
    assert!(!server.knows(run.id()) && !server.knows(plain.id()));
}

#[test]
fn a_file_without_authorities_is_refused_at_once() {
    for (file, expected) in [("none.crt", "none.crt"), ("first.key", "there is no certificate")] {
        let with = settings("https://127.0.0.1:1").ca_file(pem(file));
        let refused = Run::start(with).expect_err(file).to_string();
        assert!(refused.contains(expected) && refused.contains("ca_file"), "{refused}");
    }
}
