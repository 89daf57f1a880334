//! A real Kubernetes control plane, from the program that `tests/controlplane/build` makes: etcd, kube-apiserver and
//! the controllers that deletes need, together or [apart]. Knows nothing of what is stored in it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::require::require;
use process::{Process, program};

mod process;

pub mod apart;

/// A running control plane, all in one process. It ends when its standard input closes: with this value, or with the
/// process that holds it, however that ends.
pub struct ControlPlane {
    kubeconfig: PathBuf,
    _process: Process,
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
        let (process, kubeconfig) = Process::start(&[]);
        Self {
            kubeconfig: kubeconfig.into(),
            _process: process,
        }
    }

    /// A kubeconfig with a context for each user: `admin`, which is the current one and may do everything, and
    /// `alice`, `bob` and `carol`, who may do nothing until a test grants it.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}
