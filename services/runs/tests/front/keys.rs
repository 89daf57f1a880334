//! Keys: whoever has none, another project's or too narrow a one gets nothing.

use std::time::Duration;

use kindex_runs::keys::{KeyStore, Scope};
use kindex_runs::rest::ROUTES;
use kindex_runs::wire::v1::{GetRunRequest, InitRunRequest, ListRunsRequest};
use tonic::{Code, Request};

use crate::calls::paths;
use crate::server::{Server, batch, frame, project, run_id};

fn with<T>(key: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request
        .metadata_mut()
        .insert("authorization", format!("Bearer {key}").parse().expect("a header"));
    request
}

#[tokio::test]
async fn every_rpc_refuses_a_missing_key() {
    let server = Server::start().await;
    server.key(None, "admin").await;
    // The first caller with a key makes it known.
    server
        .raw(
            "/mlrun.v1.QueryService/GetRun",
            &[("authorization", "Bearer x")],
            frame(&[], false),
        )
        .await;
    for path in paths() {
        for headers in [
            &[][..],
            &[("authorization", "Bearer mlrun_0")],
            &[("authorization", "Basic eDp5")],
        ] {
            let (status, _) = server.raw(&path, headers, frame(&[], false)).await;
            assert_eq!(status, Code::Unauthenticated as i32, "{path} {headers:?}");
        }
    }
    for route in ROUTES {
        let path = route.path.replace(['{', '}'], "");
        for key in ["", "mlrun_0"] {
            let request = server.request(route.method, &path).header("x-api-key", key);
            let expected = if route.scope.is_some() { 401 } else { 200 };
            assert_eq!(
                server.ask(request, "").await.status,
                expected,
                "{} {path}",
                route.method
            );
        }
    }
}

#[tokio::test]
async fn every_rpc_refuses_a_key_that_is_too_narrow() {
    let server = Server::start().await;
    let ingest = server.key(None, "ingest").await;
    let query = server.key(None, "query").await;
    for path in paths() {
        let narrow = if path.contains("Query") { &ingest } else { &query };
        let key = format!("bearer {narrow}");
        // A message that names project and run at once, whatever it is: both are messages of one text.
        let message: &[u8] = match path.ends_with("Stream") {
            true => &[0x0a, 0x05, 0x0a, 0x03, 0x0a, 0x01, b'r'],
            false => &[0x0a, 0x03, 0x0a, 0x01, b'r'],
        };
        let (status, _) = server
            .raw(&path, &[("authorization", &key)], frame(message, false))
            .await;
        assert_eq!(status, Code::PermissionDenied as i32, "{path}");
    }
    for route in ROUTES {
        let Some(scope) = route.scope else { continue };
        let narrow = if scope == Scope::Query { &ingest } else { &query };
        let path = route.path.replace(['{', '}'], "") + "?project=demo&query=x";
        let bodies = r#"{"project":"demo","run_id":"r","run_ids":["r"],"metrics":[],"params":[],"status":"killed"}"#;
        let body = if route.method == "POST" { bodies } else { "" };
        let request = server.request(route.method, &path).header("x-api-key", narrow);
        let answer = server
            .ask(request.header("content-type", "application/json"), body)
            .await;
        assert_eq!(answer.status, 403, "{} {path} {:?}", route.method, answer.body);
    }
}

#[tokio::test]
async fn a_key_of_another_project_is_denied() {
    let server = Server::start().await;
    let run = server.run("r").await;
    let own = server.key(Some("demo"), "ingest,query").await;
    let other = server.key(Some("speech"), "ingest,query").await;
    let (mut ingest, mut query) = (server.ingest(), server.query());
    let one = || batch(&run, "b", &[("loss", 1, 0.5)]);
    assert_eq!(
        ingest
            .log_metrics(with(&other, one()))
            .await
            .expect_err("denied")
            .code(),
        Code::PermissionDenied
    );
    ingest.log_metrics(with(&own, one())).await.expect("stored");
    let get = || GetRunRequest {
        run_id: run_id(&run),
        include_fields: vec![],
    };
    assert_eq!(
        query.get_run(with(&other, get())).await.expect_err("denied").code(),
        Code::PermissionDenied
    );
    query.get_run(with(&own, get())).await.expect("a run");
    let list = || ListRunsRequest {
        project_id: project("demo"),
        ..ListRunsRequest::default()
    };
    assert_eq!(
        query.list_runs(with(&other, list())).await.expect_err("denied").code(),
        Code::PermissionDenied
    );
    let request = server
        .request("GET", "/api/v1/runs/r")
        .header("authorization", format!("Bearer {other}"));
    assert_eq!(server.ask(request, "").await.status, 403);
}

#[tokio::test]
async fn a_run_of_another_project_is_not_disclosed() {
    let server = Server::start().await;
    server.run("r").await;
    let other = server.key(Some("speech"), "ingest").await;
    let request = InitRunRequest {
        project_id: project("speech"),
        run_id: Some("r".to_owned()),
        ..InitRunRequest::default()
    };
    let denied = server
        .ingest()
        .init_run(with(&other, request))
        .await
        .expect_err("denied");
    assert_eq!(denied.code(), Code::PermissionDenied);
    assert!(!denied.message().contains("demo"));
}

#[tokio::test]
async fn a_revoked_key_is_refused_within_seconds() {
    let server = Server::start().await;
    let run = server.run("r").await;
    let key = server.key(None, "query").await;
    let get = || {
        with(
            &key,
            GetRunRequest {
                run_id: run_id(&run),
                include_fields: vec![],
            },
        )
    };
    server.query().get_run(get()).await.expect("a run");
    let store = KeyStore::open(&server.folder.path().join("runs/keys.db"))
        .await
        .expect("the keys");
    let id = store.all().await.expect("keys")[0].id.clone();
    assert!(store.revoke(&id, 1).await.expect("revoked"));
    let refused = async {
        while server.query().get_run(get()).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    // Promised within a second.
    tokio::time::timeout(Duration::from_secs(30), refused)
        .await
        .expect("it is refused");
}
