//! The process under test: `kindex ingester`, started, killed, asked.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kindex_harness::ports;
use kindex_harness::scrape::{self, Scrape};

pub(crate) const KINDEX: &str = env!("CARGO_BIN_EXE_kindex");

/// One ingester, through all its lives.
pub(crate) struct Ingester {
    config: PathBuf,
    kubeconfig: PathBuf,
    log: PathBuf,
    health: SocketAddr,
    /// Beside those that every ingester has.
    pub(crate) flags: Vec<String>,
    child: Option<Child>,
    /// What former lives had counted as lost when they were last asked.
    lost_before: f64,
}

impl Ingester {
    /// One that has not been started.
    pub(crate) fn new(directory: &Path, config: PathBuf, kubeconfig: PathBuf) -> Self {
        Self {
            config,
            kubeconfig,
            log: directory.join("ingester.log"),
            // It comes back there, life after life.
            health: ([127, 0, 0, 1], ports::reserve()).into(),
            flags: Vec::new(),
            child: None,
            lost_before: 0.0,
        }
    }

    /// Another one like this, with a log of its own.
    pub(crate) fn beside(&self, number: usize) -> Self {
        let directory = self.log.parent().expect("the log is in a directory");
        let mut beside = Self::new(directory, self.config.clone(), self.kubeconfig.clone());
        beside.log = directory.join(format!("ingester-{number}.log"));
        beside.flags.clone_from(&self.flags);
        beside
    }

    pub(crate) fn start(&mut self) {
        assert!(self.child.is_none(), "one life at a time");
        let log = File::options().append(true).create(true).open(&self.log);
        let child = Command::new(KINDEX)
            .arg("ingester")
            .arg("--config")
            .arg(&self.config)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(["--health-addr", &self.health.to_string()])
            .args(&self.flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("the log is writable"))
            .spawn();
        self.child = Some(child.expect("kindex starts"));
    }

    /// SIGKILL, wherever it is.
    pub(crate) fn kill(&mut self) {
        self.lost_before = self.lost();
        let mut child = self.child.take().expect("it was started");
        child.kill().expect("it runs");
        child.wait().expect("it was started");
    }

    /// SIGTERM, and what it does then.
    pub(crate) fn stop(&mut self) {
        self.lost_before = self.lost();
        let mut child = self.child.take().expect("it was started");
        let reported = Command::new("kill").arg(child.id().to_string()).status();
        assert!(reported.expect("kill runs").success(), "it runs");
        let ended = child.wait().expect("it was started");
        assert!(ended.success(), "{ended}: {}", self.last_words());
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        let child = self.child.as_mut().expect("it was started");
        child.try_wait().expect("it was started").is_some()
    }

    /// The reasons why it is not ready; `None` while it does not answer.
    pub(crate) fn not_ready(&self) -> Option<String> {
        let (status, text) = scrape::get(self.health, "/readyz").ok()?;
        Some(if status == 200 { String::new() } else { text })
    }

    /// What it counts; `None` while it does not answer.
    pub(crate) fn metrics(&self) -> Option<Scrape> {
        let (_, text) = scrape::get(self.health, "/metrics").ok()?;
        Some(Scrape::parse(&text))
    }

    /// Deletions of objects that SQL never held, in all lives.
    pub(crate) fn lost(&self) -> f64 {
        let now = self.metrics().map(|metrics| metrics.sum("kindex_ingester_lost_total"));
        self.lost_before + now.unwrap_or(0.0)
    }

    /// All that it logged, in all lives. A load soon puts hundreds of lines after any one.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The end of what it logged, for people.
    pub(crate) fn last_words(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Ingester {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ended = child.kill();
            let _reaped = child.wait();
        }
    }
}
