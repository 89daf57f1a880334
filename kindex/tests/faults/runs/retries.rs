//! Many clients send one batch at once, over both transports, and the service is killed meanwhile: it is stored once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use kindex_harness::grpc_call;
use kindex_harness::wait::wait_until;
use kindex_runs::wire::MetricColumns;
use kindex_runs::wire::v1::{LogMetricsRequest, RunId};
use prost::Message as _;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::server::{Server, read, send};
use crate::times;

/// Clients of each transport.
const CLIENTS: usize = 32;
const POINTS: i64 = 50;

fn over_grpc(run: &str, id: &str) -> Vec<u8> {
    let mut columns = MetricColumns::default();
    for step in 0..POINTS {
        columns.push("loss", step, step as f64 / 8.0, None);
    }
    let request = LogMetricsRequest {
        run_id: Some(RunId { value: run.to_owned() }),
        metrics: Some(columns),
        batch_id: id.to_owned(),
        sequence: None,
    };
    request.encode_to_vec()
}

fn over_rest(run: &str, id: &str) -> Value {
    let metrics = (0..POINTS).map(|step| json!({ "name": "loss", "step": step, "value": step as f64 / 8.0 }));
    json!({ "run_id": run, "batch_id": id, "metrics": metrics.collect::<Vec<_>>() })
}

/// Status 14 is a server that is away, 8 one that is busy.
fn call(server: &Server, message: &[u8]) {
    let path = "/mlrun.v1.IngestService/LogMetrics";
    wait_until(path, || match grpc_call::call(server.grpc, path, message) {
        Ok(0) => Ok(()),
        Ok(status @ (8 | 14)) => Err(format!("status {status}")),
        Ok(status) => panic!("{path} is answered {status}"),
        Err(error) => Err(error.to_string()),
    });
}

#[test]
fn a_batch_that_sixty_four_clients_send_at_once_during_a_restart_is_stored_once() {
    let server = Server::new(&[]);
    server.start();
    send(
        server.rest,
        "/api/v1/runs",
        &json!({ "project": "vision", "run_id": "r" }),
    );
    let mut chance = StdRng::seed_from_u64(64);
    for round in 0..times(50, 3) {
        let id = format!("b{round}");
        let (message, body) = (over_grpc("r", &id), over_rest("r", &id));
        let kill_after = chance.random_range(0..2 * CLIENTS);
        let (answers, new) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    call(&server, &message);
                    answers.fetch_add(1, Ordering::SeqCst);
                });
                scope.spawn(|| {
                    let answer = send(server.rest, "/api/v1/ingest/batch", &body);
                    new.fetch_add(usize::from(answer["duplicate"] == json!(false)), Ordering::SeqCst);
                    answers.fetch_add(1, Ordering::SeqCst);
                });
            }
            wait_until("answers", || match answers.load(Ordering::SeqCst) {
                enough if enough >= kill_after => Ok(()),
                few => Err(format!("{few} of {kill_after}")),
            });
            server.kill();
            server.start();
        });
        assert!(
            new.load(Ordering::SeqCst) <= 1,
            "round {round}: several answers call it new"
        );
        let shown = read(server.rest, "/api/v1/runs/r");
        let points = (round as i64 + 1) * POINTS;
        assert_eq!(shown["metrics_count"], json!(points), "round {round}: {shown}");
    }
    server.kill();
    server.verify();
}
