//! The scripts again, where the objects are of kinds that no cluster has: the same requests, answered from SQL on each
//! engine, against a kube-apiserver that has the definitions.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http_body_util::BodyExt as _;
use kindex_cluster::ClusterOptions;
use kindex_harness::controlplane::ControlPlane;
use kindex_model::kind::{Kind, Registry, Scope};
use kindex_tests::databases::mariadb::Flavor;
use kindex_tests::databases::{Engine, engines, patient};
use kindex_tests::embedded::Embedded;
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::script::parse;
use super::server::Server;
use super::{PREPARATION, SCRIPTS, both, difference, listed};
use crate::store::widget::{KEEPSAKE_PARTS, PARTS, REGISTRY};

/// Answers that differ beside those of the embedded cluster: a namespace need not exist, and what becomes of dependents
/// is nobody's to see to.
const DIFFERENT: &[&str] = &[
    "create/in-a-missing-namespace",
    "delete/foreground",
    "delete/orphan",
    "delete/orphan-dependents",
    // It says the address of the server behind the one that is asked.
    "discovery/api",
];
/// Requests that are not sent: their answers depend on a garbage collector.
const LEFT_OUT: &[&str] = &[
    "delete/child-follows",
    "delete/dependent-follows",
    "delete/make-child",
    "delete/make-dependent",
    "delete/make-owner",
    "delete/make-parent",
    "delete/make-stray",
    "delete/owner-follows",
    "delete/owner-in-the-foreground",
    "delete/parent-in-the-background",
    "delete/stray-goes",
];

/// Scripts of which nothing applies.
const OF_A_CLUSTER: &[&str] = &[
    // They create and change definitions: those of SQL-only kinds are fixed when a program starts.
    "definitions",
    "rules",
    "versions",
    "webhooks",
    // A namespace is a part of the names of such objects: it is neither created for them nor deleted with them.
    "namespaces",
];

/// Scripts that store nothing: what is answered depends on no engine, and one of them is enough.
const STORING_NOTHING: &[&str] = &["discovery", "errors"];

macro_rules! scripts {
    ($($name:ident),* $(,)?) => {
        /// The scripts that apply.
        const COMPARED: &[&str] = &[$(stringify!($name)),*];
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                compare(stringify!($name), include_str!(concat!("scripts/", stringify!($name), ".http"))).await;
            }
        )*
    };
}

scripts!(create, delete, discovery, errors, patch, read, status, update, watch);

#[test]
fn every_script_is_compared_or_says_why_not() {
    let known: BTreeSet<&str> = [COMPARED, OF_A_CLUSTER].concat().into_iter().collect();
    let all: BTreeSet<&str> = SCRIPTS.iter().map(|(name, _)| *name).collect();
    assert_eq!(known, all);
}

/// The same requests with other stages: these are objects of the whole cluster, and the comparisons of the embedded
/// cluster and of other engines create them on the same kube-apiserver.
fn of_other_stages(script: &str, engine: &str) -> String {
    let names = ["create-stage", "create-other"].into_iter();
    names.fold(script.to_owned(), |script, name| {
        script.replace(name, &format!("{engine}-{name}"))
    })
}

/// The kinds of the scripts, with these definitions.
fn registry() -> Registry {
    let definition = |name: &str| -> &'static str {
        let requests = parse(PREPARATION);
        let request = requests.into_iter().find(|request| request.name == name);
        Box::leak(request.expect("a definition").body.into_boxed_str())
    };
    let widget = Kind {
        cluster: false,
        group: "example.com",
        manifest: definition("widgets"),
        ..PARTS
    };
    let stage = Kind {
        cluster: false,
        name: "Stage",
        group: "example.com",
        plural: "stages",
        singular: "stage",
        scope: Scope::Cluster,
        manifest: definition("stages"),
        ..KEEPSAKE_PARTS
    };
    Registry {
        kinds: Box::leak(Box::new([&*Box::leak(Box::new(widget)), &*Box::leak(Box::new(stage))])),
        ..REGISTRY
    }
}

#[derive(Clone)]
struct Both {
    cluster: Client,
    sql_only: Client,
}

/// What these kinds are, to whoever asks for no more than their group.
const DOCUMENTS: &[&str] = &["/apis/example.com", "/apis/example.com/v1"];

/// Requests about these kinds go to SQL, and all others to the cluster.
async fn answer(State(both): State<Both>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    let is_ours = ["/widgets", "/stages"].iter().any(|plural| path.contains(plural)) && path.contains("example.com");
    let is_ours = is_ours || DOCUMENTS.contains(&path);
    let client = if is_ours { &both.sql_only } else { &both.cluster };
    let body = body.collect().await.unwrap().to_bytes();
    let request = http::Request::from_parts(parts, kube::client::Body::from(body));
    let (parts, body) = client.send(request).await.unwrap().into_parts();
    Response::from_parts(parts, Body::from_stream(body.into_data_stream()))
}

async fn served(embedded: &Embedded, sql_only: Client) -> SocketAddr {
    let cluster = Client::try_from(Config::new(embedded.url().parse().unwrap())).unwrap();
    let router = axum::Router::new()
        .fallback(answer)
        .with_state(Both { cluster, sql_only });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

async fn compare(script: &str, text: &str) {
    let Some(real) = ControlPlane::shared() else { return };
    let directory = tempfile::tempdir().unwrap();
    let engines = match STORING_NOTHING.contains(&script) {
        true => vec![Engine::sqlite()],
        false => engines(&[Flavor::Plain]),
    };
    for engine in engines {
        let findings = findings_on(&engine, real, directory.path(), script, text).await;
        assert!(
            findings.is_empty(),
            "{} findings on {}:\n{}",
            findings.len(),
            engine.name,
            findings.join("\n")
        );
    }
}

async fn findings_on(engine: &Engine, real: &ControlPlane, directory: &Path, script: &str, text: &str) -> Vec<String> {
    let registry = registry();
    let store = kindex_store::open(&engine.address, registry, &patient()).unwrap();
    store.prepare().await.unwrap();
    let sql_only = kindex::sql_only::client(&registry, store.clone())
        .await
        .unwrap()
        .expect("two kinds");
    let (_stop, stopped) = oneshot::channel::<()>();
    let (embedded, _) = Embedded::serve(ClusterOptions::default(), async { drop(stopped.await) }).await;
    let address = served(&embedded, sql_only).await;
    let kubeconfig = directory.join(format!("kubeconfig-{}", engine.name));
    std::fs::write(&kubeconfig, kindex_cluster::kubeconfig(address, &embedded.token)).unwrap();
    let namespace = format!("{}-{script}", engine.name);
    let mut ours = Server::new(&kubeconfig, &namespace).await;
    let mut theirs = Server::new(real.kubeconfig(), &namespace).await;
    for request in parse(PREPARATION) {
        tokio::join!(ours.send(&request), theirs.send(&request));
    }
    let mut findings = Vec::new();
    for request in parse(&of_other_stages(text, engine.name)) {
        let name = format!("{script}/{}", request.name);
        if LEFT_OUT.contains(&name.as_str()) {
            continue;
        }
        let (left, right) = both(&mut ours, &mut theirs, &request).await;
        let found = difference::between(&left, &right);
        if DIFFERENT.contains(&name.as_str()) {
            assert!(!found.is_empty(), "{name} does not differ any more");
            continue;
        }
        findings.extend(listed::judge(&name, &found));
    }
    store.close().await;
    findings
}
