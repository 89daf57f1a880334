//! Two transports of one service: whichever a client takes, the same is stored, and once.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use kindex_runs::domain::{Clock, timestamp};
use kindex_runs::wire::v1::{GetMetricsRequest, GetMetricsResponse, GetRunRequest, Run, RunStatus};
use tokio::io::AsyncWriteExt as _;

use crate::both::{Client, Refused, Transport};
use crate::server::{Server, batch, run_id};

const NOW: i64 = 1_790_000_000_000_000_000;

async fn stored(server: &Server, run: &str) -> (Run, GetMetricsResponse) {
    let request = GetRunRequest {
        run_id: run_id(run),
        include_fields: vec![],
    };
    let found = server.query().get_run(request).await.expect("a run").into_inner();
    let request = GetMetricsRequest {
        run_ids: run_id(run).into_iter().collect(),
        ..GetMetricsRequest::default()
    };
    let series = server.query().get_metrics(request).await.expect("series").into_inner();
    (found.run.expect("a run"), series)
}

#[tokio::test]
async fn one_scenario_leaves_the_same_state_over_both_transports() {
    let mut states = Vec::new();
    for transport in Transport::BOTH {
        let clock: Clock = Arc::new(|| timestamp(NOW));
        let server = Server::with(|options| options.clock = clock).await;
        let client = Client {
            server: &server,
            transport,
        };
        client
            .open("r", "", &[("team", "vision"), ("bad key", "x")])
            .await
            .expect("a run");
        client
            .params("r", &[("lr", "0.1"), ("lr", "0.2")])
            .await
            .expect("stored");
        let points = [
            ("loss", 2, 0.5, None),
            ("loss", 1, f64::INFINITY, Some(7)),
            ("9", 1, 1.0, None),
        ];
        client.log("r", "second", Some(2), &points).await.expect("held");
        client
            .log("r", "first", Some(1), &[("loss", 2, 9.0, None)])
            .await
            .expect("stored");
        let conflict = client
            .log("r", "first", Some(1), &[("loss", 2, 8.0, None)])
            .await
            .expect_err("refused");
        assert_eq!(conflict.reason, "BATCH_ID_CONFLICT");
        client.tags("r", &[("best", "yes")], &["team"]).await.expect("stored");
        client.heartbeat("r").await.expect("alive");
        assert_eq!(client.finish("r", RunStatus::Failed).await, Ok(3));
        states.push(stored(&server, "r").await);
    }
    assert_eq!(states[0], states[1]);
    let (run, series) = &states[0];
    assert_eq!(
        (run.status(), run.params.len(), run.tags.len()),
        (RunStatus::Failed, 1, 1)
    );
    let values: Vec<f64> = series.run_metrics[0].series[0]
        .points
        .iter()
        .map(|point| point.value)
        .collect();
    assert_eq!(
        values,
        [f64::INFINITY, 0.5],
        "the second batch was applied after the first"
    );
}

#[tokio::test]
async fn what_grpc_writes_rest_reads() {
    let server = Server::start().await;
    let grpc = Client {
        server: &server,
        transport: Transport::Grpc,
    };
    grpc.open("r", "", &[("team", "vision")]).await.expect("a run");
    grpc.params("r", &[("lr", "0.1")]).await.expect("stored");
    grpc.log("r", "b", None, &[("loss", 3, 0.5, None)])
        .await
        .expect("stored");
    let shown = server.get("/api/v1/runs/r").await.json();
    assert_eq!(
        (&shown["tags"]["team"], &shown["params"]["lr"]),
        (&"vision".into(), &"0.1".into())
    );
    assert_eq!(shown["metrics_summary"][0]["last_value"], 0.5);
    let rest = Client {
        server: &server,
        transport: Transport::Rest,
    };
    rest.log("r", "c", None, &[("loss", 4, 0.25, None)])
        .await
        .expect("stored");
    let (run, series) = stored(&server, "r").await;
    assert_eq!(run.metric_count, 2);
    let points = &series.run_metrics[0].series[0].points;
    assert_eq!((points[1].step, points[1].value), (4, 0.25));
}

#[tokio::test]
async fn a_missing_batch_id_is_refused() {
    let server = Server::start().await;
    server.run("r").await;
    for transport in Transport::BOTH {
        let client = Client {
            server: &server,
            transport,
        };
        let refused = client
            .log("r", "", None, &[("loss", 1, 0.5, None)])
            .await
            .expect_err("refused");
        assert_eq!(
            refused,
            Refused {
                code: tonic::Code::InvalidArgument,
                reason: "REQUIRED".to_owned()
            }
        );
    }
    let without = r#"{"run_id":"r","metrics":[{"name":"loss","step":1,"value":1}]}"#;
    let refused = server.post("/api/v1/ingest/batch", without).await;
    assert_eq!(
        (
            refused.status.as_u16(),
            refused.json()["error"]["details"][0]["field"].as_str()
        ),
        (422, Some("batch_id"))
    );
    assert_eq!(server.get("/api/v1/runs/r").await.json()["metrics_count"], 0);
}

#[tokio::test]
async fn sixty_four_retries_over_both_transports_and_a_restart_store_one() {
    let mut server = Server::start().await;
    server.run("r").await;
    for round in 0..2 {
        let retries = (0..64).map(|retry| {
            let transport = Transport::BOTH[retry % 2];
            let client = Client {
                server: &server,
                transport,
            };
            async move {
                client
                    .log("r", "b", None, &[("loss", 1, 0.5, None), ("loss", 2, 0.25, None)])
                    .await
            }
        });
        let answers = futures::future::join_all(retries).await;
        let counts = answers.into_iter().map(|answer| answer.expect("answered").counts);
        let sums = counts.fold((0, 0), |sums, counts| (sums.0 + counts.0, sums.1 + counts.1));
        assert_eq!(sums, if round == 0 { (2, 126) } else { (0, 128) });
        server = Server::open(server.stop().await, |_| {}).await;
    }
    assert_eq!(server.get("/api/v1/runs/r").await.json()["metrics_count"], 2);
}

#[tokio::test]
async fn parameters_keep_their_first_value_over_both_transports() {
    let server = Server::start().await;
    for transport in Transport::BOTH {
        let client = Client {
            server: &server,
            transport,
        };
        let run = format!("{transport:?}");
        client.open(&run, "", &[]).await.expect("a run");
        assert_eq!(
            client.params(&run, &[("lr", "1")]).await.expect("stored").counts,
            (1, 0)
        );
        assert_eq!(
            client.params(&run, &[("lr", "1")]).await.expect("stored").counts,
            (0, 1)
        );
        let other = client
            .params(&run, &[("lr", "2"), ("seed", "7")])
            .await
            .expect("stored");
        let warning = (
            "PARAM_IMMUTABLE".to_owned(),
            "params[lr]".to_owned(),
            "warning".to_owned(),
        );
        assert_eq!((other.counts, other.warnings), ((1, 1), vec![warning]), "{transport:?}");
        let shown = server.get(&format!("/api/v1/runs/{run}/params")).await.json();
        assert_eq!(shown["params"], serde_json::json!({"lr": "1", "seed": "7"}));
    }
}

#[tokio::test]
async fn tags_are_set_overwritten_and_removed_over_both_transports() {
    let server = Server::start().await;
    for transport in Transport::BOTH {
        let client = Client {
            server: &server,
            transport,
        };
        let run = format!("{transport:?}");
        client.open(&run, "", &[("a", "1"), ("b", "1")]).await.expect("a run");
        let changed = client
            .tags(&run, &[("a", "2"), ("c", "1")], &["b", "absent"])
            .await
            .expect("stored");
        assert_eq!((changed.counts, changed.warnings), ((2, 1), vec![]), "{transport:?}");
        let shown = server.get(&format!("/api/v1/runs/{run}")).await.json();
        assert_eq!(shown["tags"], serde_json::json!({"a": "2", "c": "1"}));
    }
}

/// A job on a slow network has sent the half of its batch.
#[tokio::test]
async fn a_slow_run_never_delays_another() {
    // Each byte buys a slow one a second, so that none is cut off before the longest time of a body is over.
    let server = Server::with(|options| options.body_rate_min = NonZeroU32::MIN).await;
    server.run("slow").await;
    server.run("fast").await;
    let address = server.rest.trim_start_matches("http://");
    let begun = " ".repeat(100);
    let mut slow = Vec::new();
    for _ in 0..32 {
        let mut stream = tokio::net::TcpStream::connect(address).await.expect("a connection");
        let head = "POST /api/v1/ingest/batch HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100000\r\n\r\n{";
        stream
            .write_all(format!("{head}{begun}").as_bytes())
            .await
            .expect("sent");
        slow.push(stream);
    }
    let logged = async {
        for number in 0..20 {
            let sent = batch("fast", &number.to_string(), &[("loss", number, 0.5)]);
            server.ingest().log_metrics(sent).await.expect("stored");
        }
    };
    let within = tokio::time::timeout(Duration::from_secs(45), logged);
    within.await.expect("nothing waits for what the slow ones send");
    assert_eq!(server.get("/api/v1/runs/fast").await.json()["metrics_count"], 20);
}
