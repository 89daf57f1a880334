//! What the histories of one thread stand on: the parts of production that need a runtime,
//! kept from one history to the next. Knows no history.

use std::cell::OnceCell;
use std::sync::Arc;

use futures::FutureExt;
use kindex_runtime::metrics::KindMetrics;
use tokio::runtime::{Builder, Runtime};

use super::sqlite::RealStore;

/// Which parts between the controller and the simulated cluster and database are
/// production's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// The controller, its decisions, and what carries out its outputs. Fast.
    Controller,
    /// The Kubernetes client and the SQL store on SQLite as well.
    All,
}

/// See the module.
#[derive(Default)]
pub struct Ground {
    /// Counted by all processes of all histories: to make metrics takes longer than many steps.
    pub(crate) metrics: Arc<KindMetrics>,
    real: OnceCell<(Runtime, Arc<RealStore>)>,
}

impl Ground {
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

    /// Runs to its end what the simulation never waits for.
    pub(crate) fn run<T>(&self, parts: Parts, work: impl Future<Output = T>) -> T {
        match parts {
            Parts::Controller => work.now_or_never().expect("simulated parts answer at once"),
            Parts::All => self.real().0.block_on(work),
        }
    }
}
