//! What all handlers share: the store, the catalog, the clock and the stop signal.

use std::sync::Arc;

use jiff::Timestamp;
use kindex_serve::watches::Watches;
use tokio_util::sync::CancellationToken;

use crate::access::Tokens;
use crate::namespaces::Namespaces;
use crate::object_locks::ObjectLocks;
use crate::registry::Registry;
use crate::store::Store;

/// The time of day, as a parameter.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The parts of the server, shared by all requests.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) store: Store,
    /// Whether this is a whole cluster, with namespaces and definitions that come and go, and controllers of its own;
    /// otherwise it serves some custom resources for good.
    pub(crate) is_cluster: bool,
    pub(crate) registry: Arc<Registry>,
    pub(crate) namespaces: Arc<Namespaces>,
    pub(crate) object_locks: Arc<ObjectLocks>,
    pub(crate) tokens: Tokens,
    pub(crate) clock: Clock,
    pub(crate) watches: Watches,
    pub(crate) shutdown: CancellationToken,
}

impl Api {
    /// The time of this request.
    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }
}
