//! What stands beside the kinds' services: reflection, in both of its versions, and health; and what is none of these.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use kindex_api::metrics::Metrics;
use kindex_api::server::{self, Limits};
use kindex_generated::kinds::model;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::{v1, v1alpha};
use tonic_types::StatusExt;

use super::client::{Body, Client};
use crate::api::stage::{MODELS, Stage, send, send_with};

macro_rules! reflected {
    ($client:expr, $version:ident, $request:ident($argument:expr), $response:ident) => {{
        let mut reflection = $version::server_reflection_client::ServerReflectionClient::new($client.channel());
        let request = $version::ServerReflectionRequest {
            host: String::new(),
            message_request: Some($version::server_reflection_request::MessageRequest::$request($argument)),
        };
        let request = tokio_stream::once(request);
        let mut answers = reflection.server_reflection_info(request).await.unwrap().into_inner();
        match answers.message().await.unwrap().unwrap().message_response {
            Some($version::server_reflection_response::MessageResponse::$response(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }};
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_names_every_service_and_has_its_messages() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    let mut known: Vec<String> = kindex_generated::registry()
        .kinds
        .iter()
        .map(|kind| format!("{}.{}.{}Service", kind.group, kind.version, kind.name))
        .collect();
    known.push("kindex.references.v1.References".to_owned());
    known.push("kindex.events.v1.Events".to_owned());
    known.sort();
    let own = |names: Vec<String>| {
        let mut names: Vec<String> = names.into_iter().filter(|name| !name.starts_with("grpc.")).collect();
        names.sort();
        names
    };
    let v1 = reflected!(client, v1, ListServices(String::new()), ListServicesResponse);
    assert_eq!(own(v1.service.into_iter().map(|service| service.name).collect()), known);
    let v1alpha = reflected!(client, v1alpha, ListServices(String::new()), ListServicesResponse);
    assert_eq!(
        own(v1alpha.service.into_iter().map(|service| service.name).collect()),
        known
    );
    for symbol in [
        "michelangelo.api.v2.Model",
        "michelangelo.api.ListOptionsExt",
        "google.rpc.BadRequest",
        "google.protobuf.StringValue",
        "grpc.health.v1.Health",
        "michelangelo.api.v2.ModelService",
    ] {
        let file = reflected!(
            client,
            v1,
            FileContainingSymbol(symbol.to_owned()),
            FileDescriptorResponse
        );
        assert!(!file.file_descriptor_proto.is_empty(), "{symbol}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stream_of_reflection_asks_for_so_many_names() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    let answered = async |count: usize| {
        let request = v1::ServerReflectionRequest {
            host: String::new(),
            message_request: Some(
                v1::server_reflection_request::MessageRequest::AllExtensionNumbersOfType("x".repeat(10_000)),
            ),
        };
        let requests = tokio_stream::iter(vec![request; count]);
        let mut reflection = v1::server_reflection_client::ServerReflectionClient::new(client.channel());
        let mut answers = reflection.server_reflection_info(requests).await.unwrap().into_inner();
        let mut answered = 0;
        while let Ok(Some(_)) = answers.message().await {
            answered += 1;
        }
        answered
    };
    assert_eq!(answered(20).await, 20);
    assert!((20..30).contains(&answered(200).await), "256 KiB of names");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_told_for_the_server_and_for_each_service() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    let mut health = HealthClient::new(client.channel());
    for service in ["", "michelangelo.api.v2.ModelService"] {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let answer = health.check(request).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    let request = HealthCheckRequest {
        service: "michelangelo.api.v2.NoService".to_owned(),
    };
    assert_eq!(health.check(request).await.unwrap_err().code(), Code::NotFound);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_call_is_unimplemented() {
    let stage = Stage::on_sqlite().await;
    let path = "/michelangelo.api.v2.ModelService/GetModel";
    // HTTP/1.1 has no trailers that clients of gRPC could read.
    let headers = [("content-type", "application/grpc")];
    let (code, _) = send_with(&stage.api, "POST", path, &headers, String::new()).await;
    assert_eq!(code, 426);
    // Everything else is Kubernetes', also at the path of a call.
    let (code, answer) = send(&stage.api, "POST", path, &Value::Null).await;
    assert_eq!(code, 404, "{answer}");
    // A kind that is not among those of this server.
    let client = Client::plain(stage.address).await;
    let answer = client
        .call(&kindex_generated::kinds::pipeline::KIND, "List*", json!({}))
        .await;
    assert_eq!(answer.unwrap_err().code(), Code::Unimplemented);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_call_has_its_retry_time_in_grpc() {
    let stop = CancellationToken::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = Limits {
        changes: 0,
        ..Limits::default()
    };
    let metrics = Metrics::default();
    tokio::spawn(server::serve(
        listener,
        Router::new(),
        Arc::new(()),
        None,
        limits,
        metrics,
        stop.clone(),
    ));
    let client = Client::plain(address).await;
    let refused = client.call(&model::KIND, "Create*", json!({})).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert!(refused.get_error_details().retry_info().is_some(), "{refused:?}");
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_browser_gets_nothing_of_a_server_without_credentials() {
    let stage = Stage::on_sqlite().await;
    let mut client = Client::plain(stage.address).await;
    client.call(&model::KIND, "List*", json!({})).await.unwrap();
    client
        .metadata
        .insert("origin", "https://elsewhere.example".parse().unwrap());
    let refused = client.call(&model::KIND, "List*", json!({})).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_too_large_is_refused_by_its_length() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    let large = vec![0; 3 * 1024 * 1024 + 1];
    let refused = client
        .answered(&model::KIND, "Create*", Body::Bytes(&large))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert!(refused.message().contains("3145728"), "{refused:?}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_ends_a_call_and_a_watch() {
    let stage = Stage::on_sqlite().await;
    let client = Client::plain(stage.address).await;
    let name = json!({"model": {"metadata": {"name": "late", "namespace": "default"}}});
    let late = client
        .call_within(&model::KIND, "Create*", name, Duration::from_nanos(1))
        .await;
    let code = match late {
        Err(status) => status.code(),
        Ok(mut stream) => stream.message().await.unwrap_err().code(),
    };
    assert!(matches!(code, Code::DeadlineExceeded | Code::Cancelled), "{code:?}");
    let (_, list) = send(&stage.cluster, "GET", MODELS, &Value::Null).await;
    assert_eq!(list["items"], json!([]), "nothing was begun");

    let mut client = client;
    client.metadata.insert("grpc-timeout", "300m".parse().unwrap());
    // On a slow machine that ends before the watch begins.
    let late = match client
        .watch_as_sent(&model::KIND, json!({"namespace": "default"}))
        .await
    {
        Ok(mut watch) => watch.next().await.unwrap_err(),
        Err(late) => late,
    };
    assert_eq!(late.code(), Code::DeadlineExceeded);
    client.metadata.insert("grpc-timeout", "soon".parse().unwrap());
    let refused = client.call(&model::KIND, "List*", json!({})).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    stage.end().await;
}
