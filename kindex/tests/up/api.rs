//! The API server as people start it: beside everything, and as a role of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use kindex_tests::scrape;

use super::process::{Running, wait_for};

const MODELS: &str = "/apis/michelangelo.api/v2/models";

/// Whether the API server at this address lists the sample.
fn lists_the_sample(address: SocketAddr) -> bool {
    scrape::get(address, MODELS).is_ok_and(|(code, text)| code == 200 && text.contains("ingester-test-model"))
}

#[test]
fn up_serves_what_it_stores() {
    let run = Running::start(&["--samples"]);
    let api = run.api().expect("it says where");
    wait_for("the sample", || lists_the_sample(api));
}

#[test]
fn the_role_serves_a_cluster_and_a_database_of_others() {
    let run = Running::start(&["--samples"]);
    let database = format!("sqlite:{}", run.data_dir().join("kindex.db").display());
    let mut child = Command::new(env!("CARGO_BIN_EXE_kindex"))
        .args([
            "api",
            "--listen",
            "127.0.0.1:0",
            "--rights",
            "server",
            "--database",
            &database,
        ])
        .arg("--kubeconfig")
        .arg(run.data_dir().join("kubeconfig"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("kindex starts");
    let stdout = child.stdout.take().expect("piped");
    let line = BufReader::new(stdout).lines().next().expect("a line").expect("text");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split(' ').next());
    let address = address.expect("an address").parse().expect("an address");
    wait_for("the sample", || lists_the_sample(address));
    child.kill().expect("it runs");
    child.wait().expect("it was started");
}

#[test]
fn an_address_that_others_reach_takes_keys_and_the_callers_own_rights() {
    let refused = |args: &[&str], why: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_kindex"))
            .args(["api", "--database", "sqlite::memory:", "--kubeconfig", "kubeconfig"])
            .args(args)
            .current_dir(kubeconfig().path())
            .output()
            .expect("kindex runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    };
    refused(&["--listen", "0.0.0.0:0"], "tokens would pass in the clear");
    refused(
        &["--listen", "0.0.0.0:0", "--rights", "server"],
        "everybody who reaches it",
    );
    refused(&["--tls-cert", "nothing.crt"], "--tls-key");
    refused(
        &["--tls-cert", "nothing.crt", "--tls-key", "nothing.key"],
        "nothing.crt",
    );
}

fn kubeconfig() -> &'static tempfile::TempDir {
    static DIRECTORY: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let text = kindex_cluster::kubeconfig(([127, 0, 0, 1], 1).into());
        std::fs::write(directory.path().join("kubeconfig"), text).expect("writable");
        directory
    })
}
