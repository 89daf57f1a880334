//! The production parts that need an async runtime, shared by all histories that one thread plays.

use std::cell::OnceCell;
use std::sync::Arc;

use futures::FutureExt;
use kindex_runtime::metrics::KindMetrics;
use tokio::runtime::{Builder, Runtime};

use super::sqlite::RealStore;

/// Which parts between the controller and the simulated cluster and database are production code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// The controller, its decisions, and the code that carries out its outputs. Fast.
    Controller,
    /// Also the Kubernetes client and the SQL store on SQLite.
    All,
}

/// See the module.
#[derive(Default)]
pub struct Harness {
    /// Shared by all processes of all histories, because creating metrics takes longer than many steps.
    pub(crate) metrics: Arc<KindMetrics>,
    real: OnceCell<(Runtime, Arc<RealStore>)>,
}

impl Harness {
    /// The real store, emptied for another history.
    pub(crate) fn store(&self) -> Arc<RealStore> {
        let (runtime, store) = self.real();
        runtime.block_on(store.clear());
        store.clone()
    }

    fn real(&self) -> &(Runtime, Arc<RealStore>) {
        self.real.get_or_init(|| {
            let runtime = Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime starts");
            let store = runtime.block_on(RealStore::open());
            (runtime, store)
        })
    }

    /// Runs a future to its end. Without production clients it must be ready at once.
    pub(crate) fn run<T>(&self, parts: Parts, work: impl Future<Output = T>) -> T {
        match parts {
            Parts::Controller => work.now_or_never().expect("simulated parts answer at once"),
            Parts::All => self.real().0.block_on(work),
        }
    }
}
