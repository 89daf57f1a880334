//! `kindex deletion` as a process of its own beside a `kindex up`, that is killed and comes back.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use super::process::Running;

/// Lines of the log that are shown where the test fails.
const LINES_SHOWN: usize = 60;

pub(crate) struct Deletion {
    command: Command,
    child: Child,
    /// What all its lives write to stderr, at one position that they share. It outlives the directory of the run.
    log: File,
}

impl Deletion {
    /// On the cluster and the database of a running `kindex up`. It works once the lease of the one that was killed is
    /// over.
    pub(crate) fn start(program: &Path, run: &Running, kubeconfig: &Path, flags: Vec<String>) -> Self {
        let database = format!("sqlite:{}", run.data_dir().join("kindex.db").display());
        let mut command = Command::new(program);
        command
            .args(["deletion", "--database", &database, "--blocked-after", "1"])
            .args(["--lease-seconds", "3", "--health-addr", "127.0.0.1:0", "--kubeconfig"])
            .arg(kubeconfig)
            .args(flags)
            .stdout(Stdio::null());
        let log = tempfile::tempfile().expect("a temporary file");
        let child = begin(&mut command, &log);
        Self { command, child, log }
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was started");
    }

    pub(crate) fn restart(&mut self) {
        self.child = begin(&mut self.command, &self.log);
    }

    /// What all its lives have said so far. Whoever reads it leaves their position where it is.
    pub(crate) fn log(&self) -> String {
        let length = self.log.metadata().map_or(0, |metadata| metadata.len());
        let mut log = vec![0_u8; usize::try_from(length).unwrap_or_default()];
        // Nothing takes away what is there.
        let _read = self.log.read_exact_at(&mut log, 0);
        String::from_utf8_lossy(&log).into_owned()
    }

    fn last_lines(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
    }
}

fn begin(command: &mut Command, log: &File) -> Child {
    let log = log.try_clone().expect("it is open");
    command.stderr(log).spawn().expect("kindex starts")
}

impl Drop for Deletion {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
        if thread::panicking() {
            let lines = self.last_lines();
            println!("{:?} deletion said at last:\n{lines}", self.command.get_program());
        }
    }
}
