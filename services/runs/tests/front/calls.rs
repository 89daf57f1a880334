//! The calls of gRPC, and what both transports share.

use kindex_runs::wire::v1::{
    FinishRunRequest, GetMetricsRequest, GetRunRequest, HeartbeatRequest, InitRunRequest, LogParamsRequest,
    LogTagsRequest, Parameter, RunStatus, Tag,
};
use prost_reflect::DescriptorPool;
use tonic::Code;

use crate::server::{Server, batch, frame, gzip, project, run_id};

/// The paths of all calls of `mlrun.v1`.
pub(crate) fn paths() -> Vec<String> {
    let pool = DescriptorPool::decode(kindex_runs::wire::DESCRIPTORS).expect("descriptors");
    let services = pool.services().filter(|service| service.package_name() == "mlrun.v1");
    let paths = services.flat_map(|service| {
        let methods = service
            .methods()
            .map(|method| format!("/{}/{}", service.full_name(), method.name()));
        methods.collect::<Vec<_>>()
    });
    paths.collect()
}

#[tokio::test]
async fn every_declared_rpc_is_served() {
    let server = Server::start().await;
    let paths = paths();
    assert_eq!(paths.len(), 17);
    for path in paths {
        let (status, _) = server.raw(&path, &[], frame(&[], false)).await;
        assert_ne!(status, Code::Unimplemented as i32, "{path}");
    }
    let (status, _) = server
        .raw("/mlrun.v1.IngestService/Nothing", &[], frame(&[], false))
        .await;
    assert_eq!(status, Code::Unimplemented as i32);
    let (status, _) = server.raw("/grpc.health.v1.Health/Check", &[], frame(&[], false)).await;
    assert_eq!(status, Code::Ok as i32);
}

#[tokio::test]
async fn a_run_is_opened_logged_and_ended_over_grpc() {
    let server = Server::start().await;
    let mut ingest = server.ingest();
    let request = InitRunRequest {
        project_id: project("demo"),
        name: Some("first".to_owned()),
        ..InitRunRequest::default()
    };
    let opened = ingest.init_run(request).await.expect("a run").into_inner();
    let run = opened.run_id.expect("an id").value;
    assert!(!opened.resumed && !opened.resume_token.is_empty());
    assert_eq!(run.as_bytes()[14], b'7', "a UUID of version 7: {run}");

    let logged = ingest
        .log_metrics(batch(&run, "b", &[("loss", 1, 0.5), ("9", 1, 1.0)]))
        .await;
    let logged = logged.expect("stored").into_inner();
    assert_eq!((logged.accepted_count, logged.deduplicated_count), (1, 0));
    assert_eq!(logged.warnings[0].code, "INVALID_METRIC_NAME");
    assert_eq!(logged.warnings[0].field, "metrics.points[1].name");
    let again = ingest
        .log_metrics(batch(&run, "b", &[("loss", 1, 0.5), ("9", 1, 1.0)]))
        .await;
    let again = again.expect("a duplicate").into_inner();
    assert_eq!(
        (again.accepted_count, again.deduplicated_count),
        (0, 1),
        "the other one was dropped before, and is again"
    );
    assert_eq!(again.warnings[0].code, "DUPLICATE_BATCH");
}

#[tokio::test]
async fn what_belongs_to_a_run_is_stored_over_grpc_until_it_ends() {
    let server = Server::start().await;
    let run = server.run("r").await;
    let mut ingest = server.ingest();
    ingest
        .log_metrics(batch(&run, "b", &[("loss", 1, 0.5)]))
        .await
        .expect("stored");
    let param = |value: &str| LogParamsRequest {
        run_id: run_id(&run),
        params: vec![Parameter {
            name: "lr".to_owned(),
            value: value.to_owned(),
        }],
    };
    let stored = ingest.log_params(param("0.1")).await.expect("stored").into_inner();
    assert_eq!((stored.accepted_count, stored.existing_count), (1, 0));
    let again = ingest.log_params(param("0.1")).await.expect("stored").into_inner();
    assert_eq!((again.accepted_count, again.existing_count), (0, 1));
    let tags = LogTagsRequest {
        run_id: run_id(&run),
        tags: vec![Tag {
            key: "team".to_owned(),
            value: "vision".to_owned(),
        }],
        remove_keys: Vec::new(),
    };
    let set = ingest.log_tags(tags).await.expect("stored").into_inner();
    assert_eq!(set.updated_count, 1);
    let beat = HeartbeatRequest {
        run_id: run_id(&run),
        client_time: None,
    };
    assert!(!ingest.heartbeat(beat).await.expect("alive").into_inner().request_resync);
    let finish = FinishRunRequest {
        run_id: run_id(&run),
        status: RunStatus::Finished.into(),
        ..FinishRunRequest::default()
    };
    assert_eq!(
        ingest
            .finish_run(finish)
            .await
            .expect("ended")
            .into_inner()
            .total_metrics,
        1
    );

    let found = server
        .query()
        .get_run(GetRunRequest {
            run_id: run_id(&run),
            include_fields: vec![],
        })
        .await;
    let found = found.expect("a run").into_inner().run.expect("a run");
    assert_eq!((found.status(), found.metric_count), (RunStatus::Finished, 1));
    assert_eq!(
        (found.params[0].value.as_str(), found.tags[0].value.as_str()),
        ("0.1", "vision")
    );
    let late = ingest
        .log_metrics(batch(&run, "late", &[("loss", 2, 0.5)]))
        .await
        .expect_err("refused");
    assert_eq!(late.code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn a_batch_sent_over_grpc_is_a_duplicate_over_rest() {
    let server = Server::start().await;
    let run = server.run("r").await;
    server
        .ingest()
        .log_metrics(batch(&run, "b", &[("loss", 1, 0.5)]))
        .await
        .expect("stored");
    let same =
        r#"{"run_id":"r","batch_id":"b","metrics":[{"name":"loss","step":1,"value":0.5}],"params":[],"tags":[]}"#;
    let answer = server.post("/api/v1/ingest/batch", same).await.json();
    assert_eq!(
        (
            &answer["duplicate"],
            &answer["accepted"],
            &answer["deduplicated_points"]
        ),
        (&true.into(), &0.into(), &1.into())
    );
    assert_eq!(answer["warnings"][0]["code"], "DUPLICATE_BATCH");
    assert_eq!(answer["warnings"][0]["severity"], "warning");
}

#[tokio::test]
async fn a_reused_batch_id_with_other_content_is_a_conflict() {
    let server = Server::start().await;
    let run = server.run("r").await;
    let mut ingest = server.ingest();
    ingest
        .log_metrics(batch(&run, "b", &[("loss", 1, 0.5)]))
        .await
        .expect("stored");
    let conflict = ingest
        .log_metrics(batch(&run, "b", &[("loss", 1, 0.25)]))
        .await
        .expect_err("refused");
    assert_eq!(conflict.code(), Code::AlreadyExists);
    let other = r#"{"run_id":"r","batch_id":"b","metrics":[{"name":"loss","step":2,"value":0.5}]}"#;
    let answer = server.post("/api/v1/ingest/batch", other).await;
    assert_eq!(answer.status, 409);
    assert_eq!(answer.json()["error"]["details"][0]["code"], "BATCH_ID_CONFLICT");
}

#[tokio::test]
async fn a_batch_refused_as_not_found_is_stored_on_retry() {
    let server = Server::start().await;
    let mut ingest = server.ingest();
    let refused = ingest
        .log_metrics(batch("r", "b", &[("loss", 1, 0.5)]))
        .await
        .expect_err("refused");
    assert_eq!(refused.code(), Code::NotFound);
    server.run("r").await;
    let logged = ingest
        .log_metrics(batch("r", "b", &[("loss", 1, 0.5)]))
        .await
        .expect("stored")
        .into_inner();
    assert_eq!((logged.accepted_count, logged.warnings.len()), (1, 0));
}

#[tokio::test]
async fn an_empty_batch_id_is_refused() {
    let server = Server::start().await;
    let run = server.run("r").await;
    let refused = server
        .ingest()
        .log_metrics(batch(&run, "", &[("loss", 1, 0.5)]))
        .await
        .expect_err("refused");
    assert_eq!(refused.code(), Code::InvalidArgument);
    let without = r#"{"run_id":"r","metrics":[]}"#;
    assert_eq!(server.post("/api/v1/ingest/batch", without).await.status, 422);
}

#[tokio::test]
async fn every_float_class_round_trips_over_every_path() {
    let server = Server::start().await;
    let run = server.run("r").await;
    let nan = f64::from_bits(0x7ff8_dead_beef_0001);
    let sent = [
        nan,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -0.0,
        0.1,
        f64::MIN_POSITIVE,
        5e-324,
        -5e-324,
    ];
    let stored = [
        nan,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -0.0,
        0.1,
        f64::MIN_POSITIVE,
        0.0,
        -0.0,
    ];
    let points: Vec<_> = sent
        .iter()
        .zip(0..)
        .map(|(value, step)| ("grpc", step, *value))
        .collect();
    server
        .ingest()
        .log_metrics(batch(&run, "b", &points))
        .await
        .expect("stored");
    let body = r#"{"run_id":"r","batch_id":"c","metrics":[
        {"name":"rest","step":0,"value":NaN},{"name":"rest","step":1,"value":"Infinity"},
        {"name":"rest","step":2,"value":-Infinity},{"name":"rest","step":3,"value":-0.0},
        {"name":"rest","step":4,"value":0.1},{"name":"rest","step":5,"value":2.2250738585072014e-308},
        {"name":"rest","step":6,"value":5e-324},{"name":"rest","step":7,"value":-5e-324}]}"#;
    assert_eq!(server.post("/api/v1/ingest/batch", body).await.status, 200);
    let request = GetMetricsRequest {
        run_ids: run_id(&run).into_iter().collect(),
        ..GetMetricsRequest::default()
    };
    let found = server.query().get_metrics(request).await.expect("series").into_inner();
    for series in &found.run_metrics[0].series {
        let read: Vec<u64> = series.points.iter().map(|point| point.value.to_bits()).collect();
        let mut expected = stored.map(f64::to_bits);
        if series.name == "rest" {
            // JSON has one NaN.
            expected[0] = f64::NAN.to_bits();
        }
        assert_eq!(read, expected, "{}", series.name);
    }
    let shown = server.get("/api/v1/runs/r").await.json();
    assert_eq!(shown["metrics_summary"][0]["last_step"], 7);
}

#[tokio::test]
async fn what_cannot_be_read_is_the_clients_fault_and_not_the_servers() {
    let server = Server::start().await;
    server.run("r").await;
    for path in paths() {
        for message in [&[0x0a, 0xff][..], &[0xff; 20], &[0x08]] {
            let (status, _) = server.raw(&path, &[], frame(message, false)).await;
            assert_eq!(status, Code::InvalidArgument as i32, "{path} {message:?}");
        }
        let (status, _) = server
            .raw(&path, &[("grpc-encoding", "gzip")], frame(b"no gzip", true))
            .await;
        assert!(
            status == Code::InvalidArgument as i32 || path.ends_with("Stream"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_packed_batch_is_stored_and_a_bomb_is_not_unpacked() {
    use prost::Message as _;
    let server = Server::start().await;
    let run = server.run("r").await;
    let message = batch(&run, "b", &[("loss", 1, 0.5)]).encode_to_vec();
    let path = "/mlrun.v1.IngestService/LogMetrics";
    let packed = [("grpc-encoding", "gzip")];
    let (status, _) = server.raw(path, &packed, frame(&gzip(&message), true)).await;
    assert_eq!(status, Code::Ok as i32);
    let bomb = gzip(&vec![0; 64 * 1024 * 1024]);
    let (status, _) = server.raw(path, &packed, frame(&bomb, true)).await;
    assert_eq!(status, Code::InvalidArgument as i32);
    let request = || {
        server
            .request("POST", "/api/v1/ingest/batch")
            .header("content-encoding", "gzip")
    };
    let request = |body| server.ask(request().header("content-type", "application/json"), body);
    assert_eq!(request(bomb).await.status, 413);
    assert_eq!(request(b"no gzip".to_vec()).await.status, 400);
    let body = br#"{"run_id":"r","batch_id":"c","metrics":[{"name":"loss","step":1,"value":1}]}"#;
    assert_eq!(request(gzip(body)).await.status, 200);
}
