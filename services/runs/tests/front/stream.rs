//! The two-way stream.

use std::time::Duration;

use futures::{StreamExt, stream};
use kindex_runs::domain::RunId;
use kindex_runs::keys::KeyStore;
use kindex_runs::limits;
use kindex_runs::wire::v1::{LogMetricsRequest, LogMetricsStreamRequest};
use tonic::{Code, Request};
use tonic_types::StatusExt as _;

use crate::server::{Server, batch};

fn requests(batches: Vec<LogMetricsRequest>) -> impl futures::Stream<Item = LogMetricsStreamRequest> + Send {
    stream::iter(
        batches
            .into_iter()
            .map(|batch| LogMetricsStreamRequest { batch: Some(batch) }),
    )
}

#[tokio::test]
async fn a_stream_answers_each_batch_in_order_and_goes_on_after_a_refused_one() {
    let server = Server::start().await;
    let run = server.run("r").await;
    let mut batches = Vec::new();
    for number in 0..50_usize {
        let points: Vec<_> = (0..=number as i64).map(|step| ("loss", step, number as f64)).collect();
        let id = if number == 20 {
            String::new()
        } else {
            number.to_string()
        };
        batches.push(batch(if number == 30 { "unknown" } else { &run }, &id, &points));
    }
    let answers = server
        .ingest()
        .log_metrics_stream(Request::new(requests(batches)))
        .await
        .expect("a stream");
    let answers: Vec<_> = answers.into_inner().collect().await;
    assert_eq!(answers.len(), 50);
    for (number, answer) in answers.into_iter().enumerate() {
        let response = answer.expect("an answer").response.expect("an answer");
        let code = response
            .warnings
            .first()
            .map(|warning| (warning.code.as_str(), warning.severity));
        let expected = match number {
            20 => (0, Some(("REQUIRED", 2))),
            30 => (0, Some(("RUN_NOT_FOUND", 2))),
            _ => (number as i64 + 1, None),
        };
        assert_eq!((response.accepted_count, code), expected, "{number}");
    }
    // The last batch wins.
    let shown = server.get("/api/v1/runs/r").await.json();
    assert_eq!(shown["metrics_summary"][0]["last_value"], 49.0);
}

#[tokio::test]
async fn a_stream_ends_for_who_may_not_write() {
    let server = Server::start().await;
    server.run("r").await;
    let key = server.key(Some("speech"), "ingest").await;
    let mut request = Request::new(requests(vec![
        batch("r", "a", &[("loss", 1, 1.0)]),
        batch("r", "b", &[]),
    ]));
    request
        .metadata_mut()
        .insert("authorization", format!("Bearer {key}").parse().expect("a header"));
    let answers = server.ingest().log_metrics_stream(request).await.expect("a stream");
    let answers: Vec<_> = answers.into_inner().collect().await;
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].as_ref().expect_err("denied").code(), Code::PermissionDenied);
}

#[tokio::test]
async fn many_streams_with_large_messages_share_little_memory_and_all_are_answered() {
    // Room for one of the messages at a time.
    let server = Server::with(|options| options.body_bytes = 256 * 1024).await;
    let run = server.run("r").await;
    let points: Vec<_> = (0..3000).map(|step| ("loss", step, step as f64)).collect();
    let streams = (0..12).map(|number| {
        let batches = (0..3).map(|batch_no| batch(&run, &format!("{number}-{batch_no}"), &points));
        let requests = Request::new(requests(batches.collect()));
        let mut client = server.ingest();
        async move {
            let answers = client
                .log_metrics_stream(requests)
                .await
                .expect("a stream")
                .into_inner();
            answers
                .map(|answer| answer.expect("an answer").response)
                .collect::<Vec<_>>()
                .await
        }
    });
    for answers in futures::future::join_all(streams).await {
        let accepted: Vec<_> = answers
            .into_iter()
            .flatten()
            .map(|answer| answer.accepted_count)
            .collect();
        assert_eq!(accepted, [3000; 3]);
    }
}

#[tokio::test]
async fn a_stream_ends_once_its_key_is_revoked_and_stores_nothing_more() {
    let server = Server::start().await;
    let run = server.run("r").await;
    let key = server.key(None, "ingest").await;
    let (sender, receiver) = futures::channel::mpsc::unbounded();
    let mut request = Request::new(receiver);
    let header = format!("Bearer {key}").parse().expect("a header");
    request.metadata_mut().insert("authorization", header);
    let send = |number: i64| {
        let batch = Some(batch(&run, &number.to_string(), &[("loss", number, 0.5)]));
        sender
            .unbounded_send(LogMetricsStreamRequest { batch })
            .expect("it is open");
    };
    send(0);
    let answers = server.ingest().log_metrics_stream(request).await.expect("a stream");
    let mut answers = answers.into_inner();
    answers.next().await.expect("an answer").expect("stored");
    let keys = KeyStore::open(&server.folder.path().join("runs/keys.db"))
        .await
        .expect("the keys");
    let id = keys.all().await.expect("keys")[0].id.clone();
    assert!(keys.revoke(&id, 1).await.expect("revoked"));
    let ended = async {
        for number in 1.. {
            send(number);
            if let Err(status) = answers.next().await.expect("an answer") {
                return (number, status);
            }
        }
        unreachable!("there are many numbers")
    };
    // Promised within a second.
    let (number, status) = tokio::time::timeout(Duration::from_secs(30), ended)
        .await
        .expect("it ends");
    assert_eq!(status.code(), Code::Unauthenticated, "{status}");
    assert!(answers.next().await.is_none(), "the stream has ended");
    let stored = server.store.run(&RunId::new(run.as_str())).await.expect("readable");
    assert_eq!(stored.expect("a run").points, number as u64);
}

#[tokio::test]
async fn a_caller_opens_as_many_streams_as_the_limit_allows() {
    let server = Server::start().await;
    // It says nothing, and ends when the sender is dropped.
    let open = || async {
        let (sender, silent) = futures::channel::mpsc::unbounded::<LogMetricsStreamRequest>();
        let answers = server.ingest().log_metrics_stream(Request::new(silent)).await;
        answers.map(|answers| (sender, answers))
    };
    let mut streams = Vec::new();
    for number in 0..limits::STREAMS_OF_CALLER.max {
        streams.push(open().await.unwrap_or_else(|status| panic!("{number}: {status}")));
    }
    let refused = open().await.expect_err("one too many");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.get_error_details().retry_info().is_some(), "{refused:?}");
    streams.pop();
    let given_back = async { while open().await.is_err() {} };
    tokio::time::timeout(Duration::from_secs(240), given_back)
        .await
        .expect("the place is free again");
}

/// The header that clients of gRPC send for a deadline.
#[tokio::test]
async fn a_call_ends_at_the_deadline_of_its_client() {
    let server = Server::start().await;
    server.run("r").await;
    let heartbeat = crate::server::frame(&[0x0a, 0x03, 0x0a, 0x01, b'r'], false);
    for (timeout, expected) in [
        ("0n", Code::DeadlineExceeded),
        ("1n", Code::DeadlineExceeded),
        ("1M", Code::Ok),
        ("99999999H", Code::Ok),
        ("soon", Code::InvalidArgument),
        ("123456789S", Code::InvalidArgument),
    ] {
        let path = "/mlrun.v1.IngestService/Heartbeat";
        let (status, _) = server.raw(path, &[("grpc-timeout", timeout)], heartbeat.clone()).await;
        assert_eq!(status, expected as i32, "{timeout}");
    }
}

/// A client that sends one batch and then nothing.
#[tokio::test]
async fn a_stream_ends_at_the_deadline_of_its_client() {
    let server = Server::start().await;
    server.run("r").await;
    let mut deadline = Duration::from_millis(500);
    // On a busy machine, the batch may be answered only before a later deadline. It is the same each time.
    let answers = loop {
        let silent = requests(vec![batch("r", "b", &[("loss", 1, 0.5)])]).chain(stream::pending());
        let mut request = Request::new(silent);
        request.set_timeout(deadline);
        let answers = match server.ingest().log_metrics_stream(request).await {
            Ok(answers) => {
                let answers = answers.into_inner().collect::<Vec<_>>();
                let answers = tokio::time::timeout(deadline + Duration::from_secs(60), answers).await;
                answers.expect("it ends")
            }
            Err(late) => vec![Err(late)],
        };
        deadline *= 2;
        if answers.len() > 1 || deadline > Duration::from_secs(30) {
            break answers;
        }
    };
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert!(answers[0].is_ok(), "what was stored is answered: {answers:?}");
    assert_eq!(answers[1].as_ref().expect_err("late").code(), Code::DeadlineExceeded);
    assert_eq!(server.get("/api/v1/runs/r").await.json()["metrics_count"], 1);
}
