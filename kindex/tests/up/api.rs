//! The API server as people start it: beside everything, and as a role of its own.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kindex_harness::mariadb::MariaDb;
use kindex_harness::require::require;
use kindex_harness::scrape::{self, Scrape};
use sqlx::Connection as _;
use sqlx::mysql::MySqlConnection;

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

/// `kindex api` over the database and the cluster of a running `kindex up`.
pub(crate) struct Role {
    child: Child,
    pub(crate) api: SocketAddr,
    health: SocketAddr,
}

impl Role {
    /// With the server's own rights, where the flags do not say `--rights`.
    pub(crate) fn start(run: &Running, kubeconfig: &Path, flags: &[&str]) -> Self {
        let database = format!("sqlite:{}", run.data_dir().join("kindex.db").display());
        Self::start_on(run, &database, kubeconfig, flags)
    }

    fn start_on(run: &Running, database: &str, kubeconfig: &Path, flags: &[&str]) -> Self {
        Self::start_with(run, &["--database", database], kubeconfig, flags)
    }

    /// With flags that say where rows are.
    fn start_with(run: &Running, rows: &[&str], kubeconfig: &Path, flags: &[&str]) -> Self {
        let rights: &[&str] = if flags.contains(&"--rights") {
            &[]
        } else {
            &["--rights", "server"]
        };
        let log = run.data_dir().join("api.log");
        let mut child = Command::new(env!("CARGO_BIN_EXE_kindex"))
            .args(["api", "--listen", "127.0.0.1:0", "--health-addr", "127.0.0.1:0"])
            .args(rows)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(rights)
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(File::create(&log).expect("writable"))
            .spawn()
            .expect("kindex starts");
        let ended = || format!("it ended: {}", std::fs::read_to_string(&log).unwrap_or_default());
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut address = || {
            let line = lines.next().unwrap_or_else(|| panic!("{}", ended())).expect("text");
            let address = line.split("://").nth(1).expect("an address");
            let end = address.find([' ', '/']).unwrap_or(address.len());
            address[..end].parse().expect("an address")
        };
        let (api, health) = (address(), address());
        // Nothing that it says later may meet a closed pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, api, health }
    }

    /// Its exit code and what it said on stderr, once it has ended.
    pub(crate) fn ended(&mut self, run: &Running) -> Option<(Option<i32>, String)> {
        let status = self.child.try_wait().expect("a process of ours")?;
        let said = std::fs::read_to_string(run.data_dir().join("api.log")).expect("its log");
        Some((status.code(), said))
    }

    pub(crate) fn is_ready(&self) -> Result<(), String> {
        match scrape::get(self.health, "/readyz") {
            Ok((200, _)) => Ok(()),
            Ok((_, why)) => Err(why),
            Err(error) => Err(error.to_string()),
        }
    }

    fn metrics(&self) -> Scrape {
        let (code, text) = scrape::get(self.health, "/metrics").expect("the health address answers");
        assert_eq!(code, 200, "{text}");
        Scrape::parse(&text)
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[test]
fn the_role_serves_a_cluster_and_a_database_of_others_and_says_how_it_goes() {
    let mut run = Running::start(&["--samples"]);
    let role = Role::start(&run, &run.data_dir().join("kubeconfig"), &[]);
    wait_for("the sample", || lists_the_sample(role.api));
    wait_for("readiness", || role.is_ready().is_ok());
    let metrics = role.metrics();
    let lists = metrics.sum_of(
        "kindex_api_requests_total",
        &[("verb", "list"), ("kind", "Model"), ("code", "200")],
    );
    assert!(lists >= 1.0, "{lists} lists");
    run.kill();
    wait_for("a reason", || {
        role.is_ready()
            .is_err_and(|why| why.contains("the cluster does not answer"))
    });
    let (code, _) = scrape::get(role.health, "/healthz").expect("it lives");
    assert_eq!(code, 200, "a cluster that is away is not a reason to be started again");
}

#[test]
fn a_database_that_does_not_answer_is_a_reason_of_the_role() {
    if !require("mariadb", MariaDb::installed()) {
        return;
    }
    let server = MariaDb::start(&[]);
    let database = format!("mysql://root@127.0.0.1:{}/kindex", server.port);
    let run = Running::start(&["--database", &database]);
    let role = Role::start_on(&run, &database, &run.data_dir().join("kubeconfig"), &[]);
    wait_for("readiness", || role.is_ready().is_ok());
    assert!(role.metrics().sum("kindex_database_connections_max") > 0.0);

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let run_sql = async |connection: &mut MySqlConnection, text: &'static str| {
        sqlx::query(text).execute(connection).await.expect("done");
    };
    let mut other = runtime.block_on(async {
        let mut other = MySqlConnection::connect(&database).await.expect("connected");
        // The table that the role reads all the time.
        run_sql(&mut other, "LOCK TABLES kindex_feed WRITE").await;
        other
    });
    let mut seconds = None;
    wait_for("the reason", || {
        let reason = role.is_ready().err().unwrap_or_default();
        let rest = reason.split("the database has not answered a read for ").nth(1);
        seconds = rest.and_then(|rest| rest.split_once(" s")?.0.parse::<u64>().ok());
        seconds.is_some()
    });
    assert!(seconds < Some(30), "half of the time after which it fails: {seconds:?}");
    assert!(role.metrics().sum("kindex_database_oldest_call_seconds") > 9.0);
    runtime.block_on(run_sql(&mut other, "UNLOCK TABLES"));
    wait_for("readiness", || role.is_ready().is_ok());
}

#[test]
fn connections_that_ask_nothing_keep_nobody_out() {
    const CONNECTIONS: usize = 10_000;
    // Here and, by inheritance, in the server.
    allow_files(CONNECTIONS + 2_000);
    let run = Running::start(&["--samples"]);
    let api = run.api().expect("it says where");
    wait_for("the sample", || lists_the_sample(api));
    let silent: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|_| TcpStream::connect(api).expect("a connection"))
        .collect();
    assert!(lists_the_sample(api), "beside {} connections", silent.len());
    let open = || Scrape::parse(&run.request("/metrics").1).sum("kindex_api_connections");
    assert!(lists_the_sample(api));
    wait_for("the end of the connections that asked nothing", || open() < 10.0);
    assert!(lists_the_sample(api));
}

/// Raises this process' own limit of open files, where it is lower.
fn allow_files(files: usize) {
    let limits = std::fs::read_to_string("/proc/self/limits").expect("Linux");
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let allowed = line.and_then(|line| line.split_whitespace().next()).expect("a limit");
    if allowed.parse().is_ok_and(|allowed: usize| allowed < files) {
        let process = std::process::id().to_string();
        let limit = format!("--nofile={files}:");
        let raised = Command::new("prlimit").args(["--pid", &process, &limit]).status();
        assert!(
            raised.is_ok_and(|status| status.success()),
            "{files} open files, of which {allowed} are allowed"
        );
    }
}

/// Such flags are refused, for this reason.
fn refused(args: &[&str], why: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_kindex"))
        .args(["api", "--database", "sqlite::memory:", "--kubeconfig", "kubeconfig"])
        .args(args)
        .current_dir(kubeconfig().path())
        .output()
        .expect("kindex runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    assert!(stderr.contains(why), "{args:?}: {stderr}");
}

#[test]
fn an_address_of_a_service_that_is_not_declared_is_refused() {
    refused(&["--service", "nonsense"], "no NAME=URL");
    refused(
        &["--service", "region=http://127.0.0.1:1"],
        "crds.toml declares no service region",
    );
}

#[test]
fn an_address_that_others_reach_takes_keys_and_the_callers_own_rights() {
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

#[test]
fn a_database_file_that_is_not_there_is_refused_and_not_made() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("none.db");
    let output = Command::new(env!("CARGO_BIN_EXE_kindex"))
        .args(["api", "--kubeconfig", "kubeconfig", "--database"])
        .arg(format!("sqlite:{}", file.display()))
        .current_dir(kubeconfig().path())
        .output()
        .expect("kindex runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("there is no such file"), "{stderr}");
    assert!(!file.exists(), "{} was made", file.display());
}

fn kubeconfig() -> &'static tempfile::TempDir {
    static DIRECTORY: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let text = kindex_cluster::kubeconfig(([127, 0, 0, 1], 1).into(), &kindex_cluster::Token::random());
        std::fs::write(directory.path().join("kubeconfig"), text).expect("writable");
        directory
    })
}

/// A configuration with the ingester off.
fn storage_off(directory: &Path) -> PathBuf {
    let path = directory.join("off.yaml");
    std::fs::write(&path, "metadataStorage: {enableMetadataStorage: false}\n").expect("writable");
    path
}

#[test]
fn storage_that_is_switched_off_takes_no_api_server_away() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = storage_off(directory.path());
    let config = config.to_str().expect("a path of letters");
    let run = Running::start(&["--config", config]);
    let lists = |address| scrape::get(address, MODELS).is_ok_and(|(code, _)| code == 200);
    assert!(lists(run.api().expect("it opens a port")), "beside everything");
    let role = Role::start_with(&run, &["--config", config], &run.data_dir().join("kubeconfig"), &[]);
    assert!(lists(role.api), "as a role of its own");
    wait_for("readiness", || role.is_ready().is_ok());
    let (_, body) = scrape::get(role.health, "/readyz").expect("it answers");
    assert!(
        body.contains("metadata storage is off: metadataStorage.enableMetadataStorage"),
        "{body}"
    );
    let log = std::fs::read_to_string(run.data_dir().join("api.log")).expect("its log");
    assert!(log.contains("Metadata storage is off"), "{log}");
}
