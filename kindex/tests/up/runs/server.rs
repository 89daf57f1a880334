//! `kindex runs serve` in a folder of its own, and the commands that ask it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use kindex_harness::ports;
use kindex_harness::scrape;
use kindex_harness::wait::wait_until;
use tempfile::TempDir;

use crate::process::KINDEX;
use crate::text_of;

/// A service that ends with the test.
pub(super) struct Server {
    folder: TempDir,
    pub(super) grpc: SocketAddr,
    pub(super) rest: SocketAddr,
    child: Child,
}

impl Server {
    pub(super) fn start() -> Self {
        let address = || SocketAddr::from(([127, 0, 0, 1], ports::reserve()));
        let (grpc, rest) = (address(), address());
        let folder = tempfile::tempdir().expect("a folder");
        let log = std::fs::File::create(folder.path().join("log")).expect("the log is writable");
        let child = Command::new(KINDEX)
            .args(["runs", "serve", "--health-addr", "127.0.0.1:0", "--data-dir"])
            .arg(folder.path().join("runs"))
            .args(["--grpc-addr", &grpc.to_string(), "--rest-addr", &rest.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        let server = Self {
            folder,
            grpc,
            rest,
            child: child.expect("kindex starts"),
        };
        wait_until("the service", || match scrape::get(rest, "/health") {
            Ok((200, _)) => Ok(()),
            Ok((status, text)) => Err(format!("{status} {text}")),
            Err(error) => Err(format!("{error}: {}", server.log())),
        });
        server
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub(super) fn data(&self) -> PathBuf {
        self.folder.path().join("runs")
    }

    /// `kindex runs …`, for this service.
    pub(super) fn runs(&self, args: &[&str]) -> Output {
        Command::new(KINDEX)
            .arg("runs")
            .args(args)
            .env("KINDEX_RUNS_URL", format!("http://{}", self.rest))
            .env("KINDEX_RUNS_DATA_DIR", self.data())
            .stdin(Stdio::null())
            .output()
            .expect("kindex runs")
    }

    /// What a command prints that succeeds.
    pub(super) fn shows(&self, args: &[&str]) -> String {
        let output = self.runs(args);
        assert!(output.status.success(), "{args:?}: {}", text_of(&output.stderr));
        text_of(&output.stdout)
    }

    /// What a command says that fails.
    pub(super) fn refuses(&self, args: &[&str]) -> String {
        let output = self.runs(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", text_of(&output.stdout));
        text_of(&output.stderr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A program that people have, with its input; what it prints if it succeeds.
pub(super) fn program(program: &str, args: &[&str], input: &str) -> Result<String, String> {
    use std::io::Write as _;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    match output.status.success() {
        true => Ok(text_of(&output.stdout)),
        false => Err(text_of(&output.stderr)),
    }
}
