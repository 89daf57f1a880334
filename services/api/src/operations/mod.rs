//! The verbs, for objects that may be in the cluster, in SQL, or in both. The caller's identity is an argument; results
//! are JSON texts or errors, independent of the protocol. A verb asks for the rights of its caller, and then takes the
//! part of the state that it needs.

mod caller;

mod resource;

mod refusal;

mod names;

mod objects;

mod snapshot;

mod stored;

mod cluster;

mod options;

mod reviews;

mod rights;

mod get;

mod token;

mod selection;

mod list;

mod tombstones;

mod references;

mod create;

mod edit;

mod front_proxy;

mod update;

mod moving;

mod deletion_method;

mod remove;

mod clear;

mod search;

mod sizes;

mod watch;

mod events;

mod setup;

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use kindex_kube_api::names::SUFFIX_LENGTH;
use kindex_model::kind::{Kind, Registry};
use kindex_model::object::ResourceVersion;
use kindex_model::row_version::RowVersion;
use kindex_serve::watches::{WatchSlot, Watches};
use kindex_store::MetadataStorage;
use tokio_util::sync::CancellationToken;

use cluster::{Call, Upstream};
use events::Hubs;
use names::Names;
use rights::Rights;
use snapshot::Snapshots;
use stored::View;
use tombstones::Graph;
use watch::Feed;

use crate::metrics::{Metrics, RejectionReason};

pub use caller::{Caller, Impersonation, RightsOf, User};
pub use cluster::{ClusterAccess, ProxiedResponse};
pub use events::{EventOptions, Messages, Sent};
pub use get::GetOptions;
pub use kindex_kube_api::request::{DeleteOptions, Preconditions};
pub use kindex_kube_api::status::{Details, Reason};
pub use list::Listed;
pub use moving::Moved;
pub use options::{ListOptions, Part, WriteOptions};
pub use references::{
    Bounds, Field, Holder, ListedReference, NamedObject, NamingField, Node, Peers, Question, References, State, Target,
};
pub use refusal::Refusal;
pub use resource::Resource;
pub use search::Search;
pub use sizes::Sizes;
pub use watch::{Event, Events, Pace, WatchOptions};

/// Kind, namespace and name of an object, and the version in which it is meant.
#[derive(Clone, Copy, Debug)]
pub struct ObjectKey<'a> {
    /// Its kind, in a version.
    pub resource: Resource,
    /// Its namespace; empty for kinds of the whole cluster.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// The random bytes of which the end of a generated name is made.
pub type Suffix = [u8; SUFFIX_LENGTH];

/// One object, or the Status that Kubernetes returns instead.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP code: 200, 201 after a creation, or 202 after a deletion that references hold up.
    pub code: u16,
    /// JSON text.
    pub text: Bytes,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

impl Answer {
    fn found(text: impl Into<Bytes>) -> Self {
        Self {
            code: 200,
            text: text.into(),
            warnings: Vec::new(),
        }
    }
}

/// Where archived objects are.
enum Storage {
    /// In a database, whose changes are followed.
    On {
        store: Arc<dyn MetadataStorage>,
        feed: Arc<Feed>,
        /// Those who look names up at the same time.
        names: Names,
    },
    /// Nowhere, for this reason: the cluster is all there is.
    Off { reason: String },
}

/// Where the objects of this service are, and what becomes of them there. Knows no rights: a verb has checked those of
/// its caller.
struct Backends {
    registry: Registry,
    upstream: Arc<Upstream>,
    /// What answers for the kinds that no cluster has.
    sql_only: Option<Upstream>,
    storage: Storage,
    graph: Graph,
    clock: fn() -> Timestamp,
    suffixes: fn() -> Suffix,
}

/// What watches and subscriptions to events share.
struct Streams {
    watches: Watches,
    hubs: Arc<Hubs>,
    /// How they follow what changes in SQL.
    pace: Pace,
    metrics: Metrics,
    /// Cancelled when subscriptions to events are to end.
    ending: CancellationToken,
}

/// The verbs over one cluster and one database, or over the cluster alone where metadata storage is off.
///
/// # Guarantees
/// An object is one object wherever it lives: its name is taken while it is archived, and no object is seen
/// twice, or is missing, because it moved from the cluster to SQL. What the cluster refuses is refused in its words.
pub struct Operations {
    backends: Backends,
    peers: Peers,
    rights: Rights,
    streams: Streams,
    snapshots: Snapshots,
    sizes: Sizes,
}

impl Backends {
    /// What has the live objects of a kind: the cluster, or the API of the kinds that no cluster has.
    ///
    /// # Errors
    /// 400 for such a kind where there is no database.
    fn upstream_of(&self, kind: &Kind) -> Result<&Upstream, Refusal> {
        if kind.cluster {
            return Ok(&self.upstream);
        }
        let own = self.sql_only.as_ref();
        own.ok_or_else(|| match &self.storage {
            Storage::Off { reason } => refusal::storage_is_off(reason),
            Storage::On { .. } => Refusal::bad_request(format!(
                "{} are of a SQL-only kind, and this server serves no such kinds: ask kindex api",
                kind.plural
            )),
        })
    }

    /// Whether objects are archived at all: the finalizer keeps what leaves the cluster until SQL has it.
    fn is_storing(&self) -> bool {
        matches!(self.storage, Storage::On { .. })
    }

    /// The same of a kind: what no cluster has leaves none.
    fn archives(&self, kind: &Kind) -> bool {
        kind.cluster && self.is_storing()
    }

    /// The database, for what cannot be answered without one.
    fn store(&self) -> Result<&Arc<dyn MetadataStorage>, Refusal> {
        match &self.storage {
            Storage::On { store, .. } => Ok(store),
            Storage::Off { reason } => Err(refusal::storage_is_off(reason)),
        }
    }

    /// What changes in the database.
    fn feed(&self) -> Result<&Arc<Feed>, Refusal> {
        match &self.storage {
            Storage::On { feed, .. } => Ok(feed),
            Storage::Off { reason } => Err(refusal::storage_is_off(reason)),
        }
    }

    /// How stored objects are shown to who asks for this resource.
    fn view(&self, resource: Resource) -> View {
        View {
            platform: self.registry.platform,
            resource,
        }
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

impl Streams {
    /// A place among the watches.
    ///
    /// # Errors
    /// 429 where there are as many as may be.
    fn slot(&self) -> Result<WatchSlot, Refusal> {
        self.watches.begin().ok_or_else(|| {
            self.metrics.count_rejection(RejectionReason::Watches);
            let message = "too many watches; try again later";
            Refusal::try_again(Reason::TooManyRequests, message)
        })
    }
}

impl Operations {
    /// The name of the user with these credentials, as the cluster knows it.
    ///
    /// # Errors
    /// 401 for nobody; 503 where that cannot be found out.
    pub(crate) async fn authenticate(&self, caller: &Caller) -> Result<String, Refusal> {
        self.rights.authenticate(caller).await
    }

    /// A place among the watches.
    ///
    /// # Errors
    /// 429 where there are as many as may be.
    pub(crate) fn slot(&self) -> Result<WatchSlot, Refusal> {
        self.streams.slot()
    }

    /// Why nothing can be answered now; empty where all can.
    pub async fn not_ready(&self) -> Vec<String> {
        let (ourselves, probe) = (
            Caller::default().on_behalf(),
            Call::get("/version".to_owned(), Vec::new()),
        );
        let database = async {
            let Storage::On { store, .. } = &self.backends.storage else {
                return None;
            };
            // A few rows of a small table: whether there is a database, and whether it has the tables.
            let error = store.positions().await.err()?;
            Some(format!("the database does not answer: {error}"))
        };
        let (cluster, database) = tokio::join!(self.backends.upstream.call(&ourselves, probe), database);
        let cluster = cluster.err().map(|refusal| refusal.to_string());
        cluster.into_iter().chain(database).collect()
    }

    /// Whether everybody who asks is given the server's own rights.
    pub fn is_open(&self) -> bool {
        self.rights.are_of_the_server()
    }

    /// Who a caller is, as far as that was found out already; for the audit log.
    pub fn known(&self, caller: &Caller) -> String {
        self.rights.known(caller)
    }

    /// The kinds that are served.
    pub fn registry(&self) -> &Registry {
        &self.backends.registry
    }

    /// Hands a request that is about none of the served kinds to the cluster.
    ///
    /// # Errors
    /// Where the cluster does not answer.
    pub async fn relay(&self, caller: &Caller, request: http::Request<Bytes>) -> Result<ProxiedResponse, Refusal> {
        self.backends.upstream.relay(caller, request).await
    }

    /// The same of the API of the kinds that no cluster has; nothing where there are none.
    pub(crate) async fn ask_sql_only(&self, request: http::Request<Bytes>) -> Option<Result<ProxiedResponse, Refusal>> {
        let own = self.backends.sql_only.as_ref()?;
        Some(own.relay(&Caller::default().on_behalf(), request).await)
    }

    /// Whether there are kinds that no cluster has.
    pub(crate) fn has_sql_only(&self) -> bool {
        self.backends.sql_only.is_some()
    }
}

/// A version as the cluster takes it. One that SQL gave is none of the cluster's, whose newest state is not older.
fn version_of_cluster(version: &str) -> &str {
    if is_direct(version) { "" } else { version }
}

/// Whether SQL gave this version.
fn is_direct(version: &str) -> bool {
    let number = version.parse().map(ResourceVersion);
    number.is_ok_and(|number| RowVersion::unpack(number).is_direct())
}

impl ObjectKey<'_> {
    fn path(&self) -> String {
        self.resource.objects(Some(self.namespace)).object(self.name)
    }
}
