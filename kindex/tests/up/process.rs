//! Starts and stops `kindex up` and talks to it with kubectl, `kindex get` and HTTP.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use kindex_harness::require::require;
use kindex_harness::wait::{WAIT_MAX, wait_until};
use kindex_harness::{kubectl, scrape};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Row as _};
use tempfile::TempDir;

use super::site::Site;

pub(crate) const KINDEX: &str = env!("CARGO_BIN_EXE_kindex");

/// Whether kubectl is installed; its absence fails the test where it is required.
pub(crate) fn kubectl_is_there() -> bool {
    require("kubectl", kubectl::installed())
}

/// Polls until the condition holds; the condition's last words are in the panic.
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    wait_until(what, || {
        condition()
            .then_some(())
            .ok_or_else(|| "the condition does not hold".to_owned())
    });
}

/// A process of ours with a directory of its own.
pub(crate) struct Running {
    binary: PathBuf,
    directory: TempDir,
    flags: Vec<String>,
    environment: Vec<(String, String)>,
    /// Of a cluster that is not the embedded one.
    kubeconfig: Option<PathBuf>,
    child: Option<Child>,
    /// Known once the process says that it is up.
    health: Option<SocketAddr>,
    /// The API server's, known at the same time.
    api: Option<SocketAddr>,
    runs: Option<SocketAddr>,
    /// What all its lives wrote to stderr since they were up.
    log: Arc<Mutex<String>>,
}

impl Running {
    /// Starts `kindex up` and waits until it says that it is up.
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_binary(Path::new(KINDEX), flags)
    }

    /// The same with another kindex.
    pub(crate) fn start_binary(binary: &Path, flags: &[&str]) -> Self {
        Self::start_binary_in(binary, &[], flags)
    }

    /// The same with more environment.
    pub(crate) fn start_binary_in(binary: &Path, environment: &[(&str, &str)], flags: &[&str]) -> Self {
        let mut run = Self::prepare(binary, flags);
        run.environment = owned(environment);
        run.begin();
        run.wait_until_up();
        run
    }

    /// Starts `kindex up` with more environment and waits until it says that it is up.
    pub(crate) fn start_in(environment: &[(&str, &str)], flags: &[&str]) -> Self {
        let mut run = Self::once_on(&Site::Embedded, environment, flags);
        run.wait_until_up();
        run
    }

    /// Starts `kindex up` on a cluster and waits until it says that it is up.
    pub(crate) fn start_on(site: &Site, flags: &[&str]) -> Self {
        let mut run = Self::once_on(site, &[], flags);
        run.wait_until_up();
        run
    }

    /// The same with another kindex.
    pub(crate) fn start_binary_on(binary: &Path, site: &Site) -> Self {
        Self::start_binary_with(binary, site, &[])
    }

    /// The same with flags.
    pub(crate) fn start_binary_with(binary: &Path, site: &Site, flags: &[&str]) -> Self {
        let mut run = Self::prepare(binary, flags);
        run.kubeconfig = site.kubeconfig().map(Path::to_owned);
        run.begin();
        run.wait_until_up();
        run
    }

    /// Starts `kindex up` on a cluster without waiting, with more environment.
    pub(crate) fn once_on(site: &Site, environment: &[(&str, &str)], flags: &[&str]) -> Self {
        let mut run = Self::prepare(Path::new(KINDEX), flags);
        run.environment = owned(environment);
        run.kubeconfig = site.kubeconfig().map(Path::to_owned);
        run.begin();
        run
    }

    /// Starts `kindex up` without waiting.
    pub(crate) fn once(flags: &[&str]) -> Self {
        Self::spawn(Path::new(KINDEX), flags)
    }

    fn spawn(binary: &Path, flags: &[&str]) -> Self {
        let mut run = Self::prepare(binary, flags);
        run.begin();
        run
    }

    fn prepare(binary: &Path, flags: &[&str]) -> Self {
        Self {
            binary: binary.to_owned(),
            directory: tempfile::tempdir().expect("a temporary directory"),
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            environment: Vec::new(),
            kubeconfig: None,
            child: None,
            health: None,
            api: None,
            runs: None,
            log: Arc::default(),
        }
    }

    /// Starts again on the same files.
    pub(crate) fn restart(&mut self) {
        self.begin();
        self.wait_until_up();
    }

    fn begin(&mut self) {
        self.end();
        let mut command = Command::new(&self.binary);
        command
            .args(["up", "--data-dir"])
            .arg(self.data_dir())
            .args(&self.flags);
        if let Some(path) = &self.kubeconfig {
            command.arg("--kubeconfig").arg(path);
        }
        for address in [
            "--api-addr",
            "--health-addr",
            "--listen",
            "--runs-grpc-addr",
            "--runs-rest-addr",
        ] {
            if !self.flags.iter().any(|flag| flag == address) {
                command.args([address, "127.0.0.1:0"]);
            }
        }
        if self.flags.iter().any(|flag| flag == "--samples" || flag == "--once") {
            command.args(["--timeout", "240"]);
        }
        let child = command
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        self.child = Some(child.expect("kindex starts"));
    }

    /// What an endpoint of the health address answers: status code and text.
    pub(crate) fn request(&self, path: &str) -> (u16, String) {
        let health = self.health.expect("the process is up");
        scrape::get(health, path).expect("the health address answers")
    }

    /// Where the API server is, where there is one.
    pub(crate) fn api(&self) -> Option<SocketAddr> {
        self.api
    }

    /// Where runs are over REST.
    pub(crate) fn runs(&self) -> SocketAddr {
        self.runs.expect("the process is up")
    }

    /// Where the embedded cluster is.
    pub(crate) fn cluster(&self) -> SocketAddr {
        let text = std::fs::read_to_string(self.data_dir().join("kubeconfig")).expect("a kubeconfig");
        let server = text.lines().find_map(|line| line.trim().strip_prefix("server: "));
        let (_, address) = server.and_then(|server| server.split_once('@')).expect("a server");
        address.parse().expect("an address")
    }

    /// What the embedded cluster wants to be shown.
    pub(crate) fn token(&self) -> String {
        let token = std::fs::read_to_string(self.data_dir().join("token"));
        token.expect("a token").trim().to_owned()
    }

    /// The most memory that it has taken so far.
    pub(crate) fn peak_kib(&self) -> u64 {
        let process = self.child.as_ref().expect("it was started").id();
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let amount = line.and_then(|line| line.split_whitespace().next());
        amount.and_then(|amount| amount.parse().ok()).expect("a peak")
    }

    /// From now on the most memory is that which it takes from now on.
    pub(crate) fn forget_peak(&self) {
        let process = self.child.as_ref().expect("it was started").id();
        std::fs::write(format!("/proc/{process}/clear_refs"), "5").expect("a process of ours");
    }

    /// What it logged so far, in all its lives.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        let child = self.child.as_mut().expect("it was started");
        child.kill().expect("it runs");
        child.wait().expect("it was started");
    }

    /// Starts again on the same files with other flags.
    pub(crate) fn restart_with(&mut self, flags: &[&str]) {
        self.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        self.restart();
    }

    /// The same of one that ends by itself.
    pub(crate) fn finish_with(&mut self, flags: &[&str]) -> Output {
        self.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        self.begin();
        self.finish()
    }

    /// Starts another kindex on the same files, with other flags.
    pub(crate) fn restart_as(&mut self, binary: &Path, flags: &[&str]) {
        binary.clone_into(&mut self.binary);
        self.restart_with(flags);
    }

    /// Stores the samples and goes on as a cluster alone: nothing changes what is planted.
    pub(crate) fn samples_without_ingester() -> Self {
        Self::samples_without_ingester_on(&Site::Embedded)
    }

    /// The same on a cluster.
    pub(crate) fn samples_without_ingester_on(site: &Site) -> Self {
        const ALONE: &str = "--deletion=false";
        let mut run = Self::once_on(site, &[], &[ALONE, "--samples", "--once"]);
        let child = run.child.take().expect("it was started");
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let config = run.directory.path().join("off.yaml");
        std::fs::write(&config, "metadataStorage: {enableMetadataStorage: false}\n").expect("writable");
        run.restart_with(&[ALONE, "--config", config.to_str().expect("a path of letters")]);
        run
    }

    /// Any command of kindex on the run's files.
    pub(crate) fn command(&self, args: &[&str]) -> Output {
        let mut command = Command::new(&self.binary);
        command.args(args).arg("--data-dir").arg(self.data_dir());
        if let Some(path) = &self.kubeconfig {
            command.env("KUBECONFIG", path);
        }
        command.output().expect("kindex runs")
    }

    /// Executes SQL on the run's database, as anybody could.
    pub(crate) fn until_verified(&self) {
        wait_until("equality", || {
            let verified = self.command(&["verify", "--settle", "0.2"]);
            let is_equal = verified.status.success();
            is_equal
                .then_some(())
                .ok_or_else(|| String::from_utf8_lossy(&verified.stdout).into_owned())
        });
    }

    pub(crate) fn plant(&self, sql: &str) {
        assert!(self.execute(sql) > 0, "{sql} changed nothing");
    }

    /// The same of what changes no row; how many were changed.
    pub(crate) fn execute(&self, sql: &str) -> u64 {
        let planted = async {
            let mut connection = self.database().connect().await?;
            let done = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await?;
            connection.close().await?;
            Ok::<_, sqlx::Error>(done.rows_affected())
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(planted).expect(sql)
    }

    /// One text of the run's database.
    pub(crate) fn text(&self, sql: &str) -> String {
        let read = async {
            let mut connection = self.database().connect().await?;
            let row = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_one(&mut connection).await?;
            connection.close().await?;
            let text: String = row.try_get_unchecked(0)?;
            Ok::<_, sqlx::Error>(text)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(read).expect(sql)
    }

    fn database(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(self.data_dir().join("kindex.db"))
            .busy_timeout(WAIT_MAX)
    }

    /// Waits for the end.
    pub(crate) fn finish(&mut self) -> Output {
        let child = self.child.take().expect("it was started");
        child.wait_with_output().expect("it ends")
    }

    /// kubectl against the run's cluster; what it prints, once it succeeds.
    pub(crate) fn kubectl(&self, args: &[&str], input: &str) -> String {
        let output = self.run_kubectl(args, input);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {args:?}: {said}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The same; why it fails.
    pub(crate) fn refused(&self, args: &[&str], input: &str) -> String {
        let output = self.run_kubectl(args, input);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success(), "kubectl {args:?} succeeds: {said}");
        String::from_utf8(output.stderr).expect("text")
    }

    /// The same, however it ends.
    pub(crate) fn run_kubectl(&self, args: &[&str], input: &str) -> Output {
        let own = || self.data_dir().join("kubeconfig");
        let mut command = kubectl::command(self.directory.path());
        command
            .args(args)
            .env("KUBECONFIG", self.kubeconfig.clone().unwrap_or_else(own));
        kubectl::run(command, input)
    }

    /// `kindex get` on the run's database; what it prints.
    pub(crate) fn get(&self, args: &[&str]) -> String {
        let output = Command::new(&self.binary)
            .arg("get")
            .args(args)
            .arg("--data-dir")
            .arg(self.data_dir())
            .output()
            .expect("kindex runs");
        assert!(
            output.status.success(),
            "kindex get {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("text")
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Its stderr must not fill the pipe.
    fn keep_log(&mut self) {
        let stderr = self.child.as_mut().and_then(|child| child.stderr.take());
        let (stderr, log) = (BufReader::new(stderr.expect("piped")), self.log.clone());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                log.push_str(&line);
                log.push('\n');
            }
        });
    }

    fn wait_until_up(&mut self) {
        self.keep_log();
        let stdout = self
            .child
            .as_mut()
            .and_then(|child| child.stdout.take())
            .expect("piped");
        let mut lines = BufReader::new(stdout).lines();
        let (mut health, mut api, mut runs) = (None, None, None);
        let up = lines.by_ref().map_while(Result::ok).any(|line| {
            if let Some((_, address)) = line.split_once("readiness    http://") {
                health = address.trim_end_matches("/readyz").parse().ok();
            }
            if let Some((_, address)) = line.split_once("api          http://") {
                api = address.parse().ok();
            }
            if let Some((_, addresses)) = line.split_once("runs         http://") {
                runs = addresses.split(' ').next().and_then(|address| address.parse().ok());
            }
            line.contains("kubectl")
        });
        if !up {
            let child = self.child.as_mut().expect("it was started");
            let ended = child.wait().expect("its output has ended");
            panic!("kindex up ended early, {ended}: {}", self.log());
        }
        (self.health, self.api, self.runs) = (health, api, runs);
        // Its later output must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
    }
}

fn owned(environment: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect()
}

impl Running {
    /// Whatever runs: a process that another one replaces would outlive the test.
    fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ended = child.kill();
            let _reaped = child.wait();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
