//! A real Kubernetes control plane, from the program that `tests/controlplane/build` makes: etcd, kube-apiserver and
//! the controllers that deletes need. Knows nothing of what is stored in it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;

use crate::require::require;
use crate::tools::tools;

/// A running control plane. It ends when its standard input closes: with this value, or with the
/// process that holds it, however that ends.
pub struct ControlPlane {
    child: Child,
    kubeconfig: PathBuf,
}

impl ControlPlane {
    /// Whether `tests/controlplane/build` was run.
    pub fn installed() -> bool {
        program().is_file()
    }

    /// The one that the tests of a process share, each in namespaces of its own; `None` where there is none and none
    /// has to be.
    ///
    /// # Panics
    /// When it is absent and required, or does not start.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<ControlPlane> = OnceLock::new();
        require("controlplane", Self::installed()).then(|| SHARED.get_or_init(Self::start))
    }

    /// Starts one of the caller's own, empty but for what every cluster holds.
    ///
    /// # Panics
    /// When it does not become ready; the message holds its log.
    pub fn start() -> Self {
        let mut child = Command::new(program())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut complaints = child.stderr.take().expect("piped");
        // Read as they come: a full pipe would hold the whole cluster up.
        let complaining = thread::spawn(move || {
            let mut why = Vec::new();
            // What it said before it ended is worth showing in any case.
            let _partly = complaints.read_to_end(&mut why);
            String::from_utf8_lossy(&why).into_owned()
        });
        let mut line = String::new();
        let said = BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line);
        let Some(kubeconfig) = said.ok().and_then(|_| line.trim_end().strip_prefix("ready ")) else {
            drop(child.stdin.take());
            let why = complaining.join().unwrap_or_default();
            panic!("the control plane did not start: {why}");
        };
        Self {
            kubeconfig: kubeconfig.into(),
            child,
        }
    }

    /// A kubeconfig with a context for each user: `admin`, which is the current one and may do everything, and
    /// `alice`, `bob` and `carol`, who may do nothing until a test grants it.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It removes its data before it ends.
        let _reaped = self.child.wait();
    }
}

fn program() -> PathBuf {
    tools().join("controlplane")
}
