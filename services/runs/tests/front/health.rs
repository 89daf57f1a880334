//! What is said of the health of a server that cannot write.

use http::StatusCode;
use tonic::Request;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::server::{Server, batch};

const INGEST: &str = "mlrun.v1.IngestService";
const QUERY: &str = "mlrun.v1.QueryService";

/// Waits until the health of a service is what is expected.
async fn follows(server: &Server, service: &str, expected: ServingStatus) {
    let origin = server.grpc.parse().expect("an address");
    let mut client = HealthClient::with_origin(Server::channel(), origin);
    let request = HealthCheckRequest {
        service: service.to_owned(),
    };
    let changes = client.watch(Request::new(request)).await.expect("a stream");
    let mut changes = changes.into_inner();
    while changes.message().await.expect("a change").expect("a change").status() != expected {}
}

#[tokio::test]
async fn a_server_that_cannot_write_is_not_ready_on_both_transports_until_it_can() {
    let server = Server::start().await;
    let run = server.run("r").await;
    server
        .ingest()
        .log_metrics(batch(&run, "a", &[("loss", 1, 1.0)]))
        .await
        .expect("stored");
    assert_eq!(server.get("/health").await.status, StatusCode::OK);
    let (file, aside) = (
        server.folder.path().join("runs/runs.db"),
        server.folder.path().join("aside"),
    );
    std::fs::rename(&file, &aside).expect("moved");
    for service in ["", INGEST] {
        follows(&server, service, ServingStatus::NotServing).await;
    }
    follows(&server, QUERY, ServingStatus::Serving).await;
    let health = server.get("/health").await;
    assert_eq!(health.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(health.headers.contains_key("retry-after"));
    let why = health.json()["error"]["message"].to_string();
    assert!(why.contains("runs.db") && why.contains("put it back"), "{why}");
    let refused = server.ingest().log_metrics(batch(&run, "b", &[("loss", 2, 2.0)])).await;
    assert_eq!(refused.expect_err("it is refused").code(), tonic::Code::Unavailable);
    std::fs::rename(&aside, &file).expect("moved back");
    for service in ["", INGEST] {
        follows(&server, service, ServingStatus::Serving).await;
    }
    assert_eq!(server.get("/health").await.status, StatusCode::OK);
    server
        .ingest()
        .log_metrics(batch(&run, "b", &[("loss", 2, 2.0)]))
        .await
        .expect("stored");
}
