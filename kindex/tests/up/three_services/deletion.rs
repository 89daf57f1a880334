//! `kindex deletion` of a service in a cluster of others, as a process that is killed and comes back.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::process::Running;

pub(super) struct Deletion {
    command: Command,
    child: Child,
}

impl Deletion {
    /// On the cluster and the database of a running `kindex up`. It works once the lease of the one that was killed is
    /// over.
    pub(super) fn start(program: &Path, run: &Running, kubeconfig: &Path, flags: Vec<String>) -> Self {
        let database = format!("sqlite:{}", run.data_dir().join("kindex.db").display());
        let mut command = Command::new(program);
        command
            .args(["deletion", "--database", &database, "--blocked-after", "1"])
            .args(["--lease-seconds", "3", "--health-addr", "127.0.0.1:0", "--kubeconfig"])
            .arg(kubeconfig)
            .args(flags)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().expect("kindex starts");
        Self { command, child }
    }

    /// SIGKILL.
    pub(super) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was started");
    }

    pub(super) fn restart(&mut self) {
        self.child = self.command.spawn().expect("kindex starts");
    }
}

impl Drop for Deletion {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
