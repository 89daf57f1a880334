//! A private NATS server with JetStream, the published one that `tests/nats/build` builds. Knows no subjects.

use std::fs;
use std::io::Read as _;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::ports;
use crate::process::Process;
use crate::tools::tools;
use crate::wait::wait_until;

/// A server on a loopback port of its own, with its disk in a folder of its own.
pub struct Nats {
    directory: TempDir,
    port: u16,
    flags: Vec<String>,
    has_jetstream: bool,
    process: Option<Process>,
}

impl Nats {
    /// Whether `tests/nats/build` was run.
    pub fn installed() -> bool {
        tools().join("nats-server").is_file()
    }

    /// Starts a server with JetStream.
    ///
    /// # Panics
    /// When it does not answer in time.
    pub fn start() -> Self {
        Self::start_with(&[], true)
    }

    /// Starts a server with more flags, with JetStream or without.
    ///
    /// # Panics
    /// When it does not answer in time.
    pub fn start_with(flags: &[&str], has_jetstream: bool) -> Self {
        let directory = tempfile::Builder::new().prefix("kindex-nats-").tempdir();
        let mut server = Self {
            directory: directory.expect("a temporary directory"),
            port: ports::reserve(),
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            has_jetstream,
            process: None,
        };
        server.resume();
        server
    }

    /// Its address for clients.
    pub fn address(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Ends the server at once, as a crash would. Its disk stays.
    ///
    /// # Panics
    /// When the process is not ours.
    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    /// Removes the disk of a server that was killed.
    ///
    /// # Panics
    /// When the server runs, or the folder cannot be emptied.
    pub fn lose_disk(&mut self) {
        assert!(self.process.is_none(), "the server is running");
        fs::remove_dir_all(self.disk()).expect("the folder is ours");
    }

    /// Starts the server again after [`kill`](Self::kill), on the same port and disk.
    ///
    /// # Panics
    /// When it is running, or does not answer in time.
    pub fn resume(&mut self) {
        assert!(self.process.is_none(), "the server is running");
        let disk = self.disk();
        fs::create_dir_all(&disk).expect("the folder is ours");
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL"])
            .arg(tools().join("nats-server"))
            .args(["--addr", "127.0.0.1", "--port", &self.port.to_string()])
            .args(&self.flags)
            .arg("--log")
            .arg(self.directory.path().join("log"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if self.has_jetstream {
            command.arg("--jetstream").arg("--store_dir").arg(&disk);
        }
        self.process = Some(Process::spawn(command));
        wait_until("the NATS server's greeting", || self.greeting());
    }

    /// The server speaks first, and of JetStream once that is ready.
    fn greeting(&self) -> Result<(), String> {
        let connected = TcpStream::connect(("127.0.0.1", self.port));
        let mut stream = connected.map_err(|error| error.to_string())?;
        let timeout = stream.set_read_timeout(Some(Duration::from_secs(1)));
        timeout.map_err(|error| error.to_string())?;
        let mut greeting = [0; 1024];
        let read = stream.read(&mut greeting).map_err(|error| error.to_string())?;
        let greeting = String::from_utf8_lossy(&greeting[..read]);
        let is_ready = !self.has_jetstream || greeting.contains("\"jetstream\":true");
        match greeting.starts_with("INFO ") && is_ready {
            true => Ok(()),
            false => Err(greeting.into_owned()),
        }
    }

    fn disk(&self) -> std::path::PathBuf {
        self.directory.path().join("disk")
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}
