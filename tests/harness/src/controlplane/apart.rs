//! The parts of a control plane in processes of their own: an etcd whose keys can be read, as many API servers on it as
//! a test wants, each with flags of its own, killed and started again at the same address, and the controllers.
//!
//! Starting, killing and reading wait for their process: an asynchronous test needs a runtime of several threads.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::process::{Process, output};
use crate::ports;

/// An etcd, and the credentials of the cluster that it is the store of. API servers on it have to end before it.
pub struct Etcd {
    directory: PathBuf,
    _process: Process,
}

/// One key of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// As `/registry/pods/default/a`.
    pub key: String,
    /// The revision of etcd at which it last changed.
    pub revision: i64,
    /// Its value: JSON for a custom resource. Bytes that are no UTF-8 are replaced.
    pub text: String,
}

impl Etcd {
    /// Starts one, empty.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    pub fn start() -> Self {
        let (process, directory) = Process::start(&["etcd".as_ref()]);
        Self {
            directory: directory.into(),
            _process: process,
        }
    }

    /// A directory for files of the test, which goes with this.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// All keys that begin with `prefix`, in their order.
    ///
    /// # Panics
    /// When etcd does not answer.
    pub fn stored(&self, prefix: &str) -> Vec<Stored> {
        let printed = self.run("get", &[prefix]);
        let lines = printed.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let one = |line: &[u8]| {
            let read: Value = serde_json::from_slice(line).expect("an object of JSON a line");
            let text = |name: &str| read[name].as_str().expect("a text").to_owned();
            Stored {
                key: text("key"),
                revision: read["revision"].as_i64().expect("a number"),
                text: text("text"),
            }
        };
        lines.map(one).collect()
    }

    /// Forgets every revision but the newest: a list of a server that reads pages from etcd, and began before, cannot
    /// go on as it began. kube-apiserver does so with what is older than five minutes.
    ///
    /// # Panics
    /// When etcd does not answer.
    pub fn compact(&self) {
        self.run("compact", &[]);
    }

    /// A certificate for servers on loopback, its key, and the authority that signed it, all as paths to PEM.
    pub fn certificate(&self) -> [PathBuf; 3] {
        ["server.crt", "server.key", "ca.crt"].map(|name| self.directory.join("credentials").join(name))
    }

    fn run(&self, command: &str, more: &[&str]) -> Vec<u8> {
        let mut arguments: Vec<&OsStr> = vec![command.as_ref(), "--cluster".as_ref(), self.directory.as_os_str()];
        arguments.extend(more.iter().map(OsStr::new));
        output(&arguments)
    }
}

/// A kube-apiserver, running or not.
pub struct ApiServer {
    /// Of loopback; it stays the same.
    pub port: u16,
    cluster: PathBuf,
    kubeconfig: PathBuf,
    process: Option<Process>,
}

impl ApiServer {
    /// Starts one on an etcd, with flags beyond those that all have.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    pub fn start(etcd: &Etcd, flags: &[&str]) -> Self {
        let mut server = Self {
            port: ports::reserve(),
            cluster: etcd.directory.clone(),
            kubeconfig: PathBuf::new(),
            process: None,
        };
        server.restart(flags);
        server
    }

    /// Ends it as `kill -9` does.
    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    /// Starts it again at its address, with these flags; one that runs is killed.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    pub fn restart(&mut self, flags: &[&str]) {
        self.kill();
        let port = self.port.to_string();
        let mut arguments: Vec<&OsStr> = vec!["apiserver".as_ref(), "--cluster".as_ref(), self.cluster.as_os_str()];
        arguments.extend(["--port", &port, "--"].map(OsStr::new));
        arguments.extend(flags.iter().map(OsStr::new));
        let (process, kubeconfig) = Process::start(&arguments);
        self.process = Some(process);
        self.kubeconfig = kubeconfig.into();
    }

    /// A kubeconfig with the contexts of [`super::ControlPlane::kubeconfig`], for this server. The users are the same
    /// at every server of an etcd. A file that was read stays good when the server starts again.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

/// The controllers that deletes need.
pub struct Controllers {
    _process: Process,
}

impl Controllers {
    /// Starts them, and with `migrator` Kubernetes' own storage version migrator. That needs the flags
    /// [`Self::MIGRATOR`] at the API server.
    ///
    /// # Panics
    /// When they do not become ready; the message holds their log.
    pub fn start(server: &ApiServer, migrator: bool) -> Self {
        let mut arguments: Vec<&OsStr> = vec!["controllers".as_ref(), "--kubeconfig".as_ref()];
        arguments.push(server.kubeconfig.as_os_str());
        if migrator {
            arguments.push("--storage-version-migrator".as_ref());
        }
        let (process, _) = Process::start(&arguments);
        Self { _process: process }
    }

    /// Flags with which a kube-apiserver serves `storagemigration.k8s.io`.
    pub const MIGRATOR: [&str; 2] = [
        "--feature-gates=StorageVersionMigrator=true",
        "--runtime-config=storagemigration.k8s.io/v1beta1=true",
    ];
}
