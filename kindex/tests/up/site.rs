//! Where a scenario runs: on the embedded cluster, and once more on a kube-apiserver of its own.

use std::path::Path;

use kindex_harness::controlplane::ControlPlane;
use kindex_harness::require::require;

/// A cluster for one test.
pub(crate) enum Site {
    /// The one inside of `kindex up`.
    Embedded,
    /// A real one, to which `--kubeconfig` leads.
    Real(ControlPlane),
}

impl Site {
    /// A control plane that the test shares with nobody; `None` where there is none and none has to be.
    pub(crate) fn real() -> Option<Self> {
        require("controlplane", ControlPlane::installed()).then(|| Self::Real(ControlPlane::start()))
    }

    /// The kubeconfig that `kindex up` is given.
    pub(crate) fn kubeconfig(&self) -> Option<&Path> {
        match self {
            Self::Embedded => None,
            Self::Real(control_plane) => Some(control_plane.kubeconfig()),
        }
    }

    /// The finalizers that `kindex up` puts on an object: once it has all of them, nobody but the test changes it. On a
    /// cluster of others, the graph is at work in the archive alone.
    pub(crate) fn finalizers(&self) -> &'static [&'static str] {
        match self {
            Self::Embedded => &["michelangelo/Ingester", "michelangelo.api/deletion"],
            Self::Real(_) => &["michelangelo/Ingester"],
        }
    }
}

/// Makes of each scenario, a function of a [`Site`], one test for each sort of cluster.
macro_rules! on_clusters {
    ($($scenario:ident),+ $(,)?) => {
        $(
            mod $scenario {
                use $crate::site::Site;

                #[test]
                fn embedded() {
                    super::$scenario(&Site::Embedded);
                }

                #[test]
                fn real() {
                    if let Some(site) = Site::real() {
                        super::$scenario(&site);
                    }
                }
            }
        )+
    };
}

pub(crate) use on_clusters;
