//! One script, two servers: each request goes to the embedded cluster and to a kube-apiserver, and the answers are
//! compared. What differs is listed, exactly, with its reason.

mod script;

mod server;

mod difference;
mod mask;

mod webhook;

mod listed;

mod sql_only;

use std::collections::BTreeSet;
use std::path::Path;

use kindex_cluster::ClusterOptions;
use kindex_harness::controlplane::ControlPlane;
use kindex_harness::kubectl;
use kindex_harness::require::require;
use kindex_tests::embedded::Embedded;
use tokio::sync::oneshot;

use script::{Request, parse};
use server::{Answer, Server};
use webhook::Webhook;

/// How many requests the scripts have at least.
const REQUESTS_MIN: usize = 300;
/// What every script finds on both servers, besides a namespace of its own.
const PREPARATION: &str = include_str!("scripts/preparation.http");

macro_rules! scripts {
    ($($name:ident),* $(,)?) => {
        /// Every script with its text.
        const SCRIPTS: &[(&str, &str)] = &[
            $((stringify!($name), include_str!(concat!("scripts/", stringify!($name), ".http")))),*
        ];
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                compare(stringify!($name), include_str!(concat!("scripts/", stringify!($name), ".http"))).await;
            }
        )*
    };
}

scripts!(
    create,
    definitions,
    delete,
    discovery,
    errors,
    namespaces,
    patch,
    read,
    rules,
    status,
    update,
    versions,
    watch,
    webhooks
);

/// Scripts with definitions of their own, which would show in the discovery of others: each has a kube-apiserver to
/// itself.
const APART: &[&str] = &["rules", "versions", "webhooks"];

async fn compare(name: &str, text: &str) {
    let apart = match APART.contains(&name) {
        true if !require("controlplane", ControlPlane::installed()) => return,
        true => Some(tokio::task::spawn_blocking(ControlPlane::start).await.unwrap()),
        false => None,
    };
    let Some(real) = apart.as_ref().or_else(|| ControlPlane::shared()) else {
        return;
    };
    if !require("kubectl", kubectl::installed()) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let (_stop, stopped) = oneshot::channel::<()>();
    let (embedded, _) = Embedded::serve(ClusterOptions::default(), async { drop(stopped.await) }).await;
    std::fs::write(&kubeconfig, embedded.kubeconfig()).unwrap();
    let mut ours = Server::new(&kubeconfig, name).await;
    let mut theirs = Server::new(real.kubeconfig(), name).await;
    let webhook = Webhook::start().await;
    for server in [&mut ours, &mut theirs] {
        server.saved.extend(webhook.words.clone());
    }
    for request in parse(PREPARATION) {
        tokio::join!(ours.send(&request), theirs.send(&request));
    }
    let mut findings = Vec::new();
    for request in parse(text) {
        let (left, right) = both(&mut ours, &mut theirs, &request).await;
        let found = difference::between(&left, &right);
        findings.extend(listed::judge(&format!("{name}/{}", request.name), &found));
    }
    assert!(
        findings.is_empty(),
        "{} findings:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

async fn both(ours: &mut Server, theirs: &mut Server, request: &Request) -> (Answer, Answer) {
    let (left, right) = tokio::join!(ours.send(request), theirs.send(request));
    (
        mask::masked(&left, &ours.address, &ours.saved),
        mask::masked(&right, &theirs.address, &theirs.saved),
    )
}

#[test]
fn the_scripts_ask_enough() {
    let count: usize = SCRIPTS.iter().map(|(_, text)| parse(text).len()).sum();
    assert!(count >= REQUESTS_MIN, "{count} requests, {REQUESTS_MIN} at least");
}

#[test]
fn what_is_listed_is_a_request_of_a_script() {
    let requests: BTreeSet<String> = SCRIPTS
        .iter()
        .flat_map(|(script, text)| {
            parse(text)
                .into_iter()
                .map(move |request| format!("{script}/{}", request.name))
        })
        .collect();
    let listed = listed::requests();
    let unknown: Vec<_> = listed.keys().filter(|request| !requests.contains(**request)).collect();
    assert!(unknown.is_empty(), "no script has {unknown:?}");
}

#[test]
fn the_page_tells_every_reason() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/reference/embedded-cluster.md");
    let page = std::fs::read_to_string(page).unwrap();
    let row = |(name, sentence): &(&str, &str)| format!("| {name} | {sentence} |");
    let wanted: Vec<String> = listed::reasons().iter().map(row).collect();
    let table = page.split("| Reason | What differs |").nth(1).unwrap_or_default();
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert_eq!(
        rows, wanted,
        "the table of the page, and the reasons of differences.txt"
    );
}
