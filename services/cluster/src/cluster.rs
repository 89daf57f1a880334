//! The cluster as a whole: opened from a file, served on a listener, stopped by a future.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use kindex_kube_api::status::Status;
use kindex_serve::watches::Watches;
use serde_json::json;
use sqlx::sqlite::SqliteSynchronous;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::access::{Token, Tokens};
use crate::admit::Author;
use crate::api::{Api, Clock};
use crate::builtin::FIRST_NAMESPACES;
use crate::housekeeping;
use crate::in_process::InProcess;
use crate::limits::Limits;
use crate::mutate::{self, DEFINITIONS};
use crate::namespaces::{self, Namespaces};
use crate::private;
use crate::registry::Registry;
use crate::resource::Convert;
use crate::server::{self, Host};
use crate::store::{Change, PageRequest, Revision, Store, StoreError, StoreOptions};

/// Events kept for watches to resume from, unless said otherwise.
const HISTORY_MAX: u64 = 10_000;

/// What can go wrong with a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The database cannot be opened or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The directory of a database that lives only as long as the cluster cannot be made.
    #[error("cannot create the temporary directory {path}")]
    Temporary {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// What every cluster holds from the start cannot be created.
    #[error("cannot create the namespace {name}: {message}")]
    FirstNamespace {
        /// The namespace.
        name: &'static str,
        /// The refusal.
        message: String,
    },
    /// The listener failed.
    #[error("cannot serve")]
    Serve(#[source] std::io::Error),
}

/// How a cluster is opened.
#[derive(Clone)]
pub struct ClusterOptions {
    /// The database file; without one, everything is gone when the cluster is.
    pub path: Option<PathBuf>,
    /// How many of the newest events are kept for watches to resume from.
    pub history_max: u64,
    /// What callers show; without one, the cluster makes one up.
    pub token: Option<Token>,
    /// What answers for the conversion webhooks of definitions; without it, versions differ in `apiVersion` alone.
    pub converter: Option<Arc<dyn Convert>>,
    /// The time of day.
    pub clock: Clock,
    /// Its limits.
    pub limits: Limits,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            path: None,
            history_max: HISTORY_MAX,
            token: None,
            converter: None,
            clock: Arc::new(Timestamp::now),
            limits: Limits::default(),
        }
    }
}

/// A Kubernetes API server in process, persisted in SQLite.
///
/// # Guarantees
/// What has been answered is on disk against a crash of the process; resource versions go on after a restart. Nothing
/// but health is answered without the token, and nothing that a page of a browser may have sent.
///
/// # Assumptions
/// One process opens a database at a time. Whoever shows the token may do everything, and connections are not
/// encrypted: bind to a loopback address.
pub struct Cluster {
    pub(crate) api: Api,
    temporary: Option<PathBuf>,
    limits: Limits,
}

impl Cluster {
    /// Opens or creates the cluster whose database is at `path`, for callers with this token.
    pub async fn open(path: &Path, token: Token) -> Result<Self, ClusterError> {
        Self::with_options(ClusterOptions {
            path: Some(path.to_owned()),
            token: Some(token),
            ..ClusterOptions::default()
        })
        .await
    }

    /// Opens a cluster that leaves nothing behind.
    pub async fn ephemeral() -> Result<Self, ClusterError> {
        Self::with_options(ClusterOptions::default()).await
    }

    /// Opens a cluster as `options` say.
    pub async fn with_options(options: ClusterOptions) -> Result<Self, ClusterError> {
        let (path, temporary, synchronous) = match options.path {
            Some(path) => (path, None, SqliteSynchronous::Normal),
            None => {
                let directory = std::env::temp_dir().join(format!("kindex-cluster-{}", uuid::Uuid::new_v4()));
                let made = private::make_directory(&directory);
                made.map_err(|source| ClusterError::Temporary {
                    path: directory.clone(),
                    source,
                })?;
                (directory.join("cluster.db"), Some(directory), SqliteSynchronous::Off)
            }
        };
        let (registry, namespaces) = (
            Arc::new(Registry::new(options.converter)),
            Arc::new(Namespaces::default()),
        );
        let observer = observer(Arc::clone(&registry), Arc::clone(&namespaces));
        let options_of_store = StoreOptions {
            history_max: options.history_max,
            synchronous,
            observer: Box::new(observer),
        };
        let store = Store::open(&path, options_of_store).await?;
        let api = Api {
            store,
            is_cluster: true,
            registry,
            namespaces,
            object_locks: Arc::default(),
            tokens: Tokens {
                callers: options.token.unwrap_or_else(Token::random),
                ingester: Token::random(),
            },
            clock: options.clock,
            watches: Watches::new(options.limits.watches),
            shutdown: CancellationToken::new(),
        };
        let cluster = Self {
            api,
            temporary,
            limits: options.limits,
        };
        cluster.load().await?;
        cluster.create_first_namespaces().await?;
        Ok(cluster)
    }

    /// What callers show.
    pub fn token(&self) -> &Token {
        &self.api.tokens.callers
    }

    /// What the ingester shows that works in the same process: it has places of its own, so that nobody else's requests
    /// keep it waiting. Another one at each start.
    pub fn ingester_token(&self) -> &Token {
        &self.api.tokens.ingester
    }

    /// The way in for parts of the same process, of a server that others find at this address.
    pub fn in_process(&self, address: SocketAddr) -> InProcess {
        InProcess::new(Host::new(self.api.clone(), &self.limits, address))
    }

    /// Tells the registry and the namespaces what is stored.
    async fn load(&self) -> Result<(), ClusterError> {
        let observe = observer(Arc::clone(&self.api.registry), Arc::clone(&self.api.namespaces));
        for resource in [DEFINITIONS, namespaces::STORAGE] {
            let request = PageRequest {
                resource: resource.to_owned(),
                ..PageRequest::default()
            };
            for revision in self.api.store.list(&request).await?.objects {
                revision.object()?;
                observe(&revision);
            }
        }
        Ok(())
    }

    async fn create_first_namespaces(&self) -> Result<(), ClusterError> {
        let catalog = self.api.registry.catalog();
        let resource = catalog.find("", "v1", "namespaces").expect("namespaces are built in");
        for name in FIRST_NAMESPACES {
            let author = Author {
                manager: "kindex-cluster",
                subresource: None,
                applied: false,
                now: self.api.now(),
            };
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            match mutate::create(&self.api, resource, "", object, &author, false).await {
                Ok(_) => {}
                Err(status) if status.outcome().is_conflict() => {}
                Err(Status { message, .. }) => {
                    return Err(ClusterError::FirstNamespace { name, message });
                }
            }
        }
        Ok(())
    }

    /// Serves plain HTTP on `listener` until `shutdown` resolves; watches end, requests under way are answered.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ClusterError> {
        let token = self.api.shutdown.clone();
        let housekeeping = tokio::spawn(housekeeping::run(self.api.clone()));
        let serving = server::serve(self.api.clone(), listener, &self.limits);
        let stopping = async {
            shutdown.await;
            token.cancel();
        };
        let (served, ()) = tokio::join!(serving, stopping);
        token.cancel();
        // A panic in housekeeping has been reported by the runtime; what it did not do waits for the next start.
        let _panicked = housekeeping.await;
        served.map_err(ClusterError::Serve)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.api.shutdown.cancel();
        if let Some(directory) = &self.temporary {
            // The system's temporary directory is cleaned by others if this fails.
            let _left_behind = std::fs::remove_dir_all(directory);
        }
    }
}

/// Keeps what is known in memory in step with what is written.
fn observer(registry: Arc<Registry>, namespaces: Arc<Namespaces>) -> impl Fn(&Revision) + Send + Sync {
    move |revision| {
        let of_interest = matches!(&*revision.key.resource, DEFINITIONS | namespaces::STORAGE);
        if !of_interest {
            return;
        }
        let Ok(object) = revision.object() else {
            return;
        };
        match (&*revision.key.resource, revision.change) {
            (DEFINITIONS, Change::Deleted) => registry.remove(&revision.key.name),
            (DEFINITIONS, Change::Added | Change::Modified) => registry.install(object, revision.rv),
            (_, Change::Deleted) => namespaces.forget(&revision.key.name),
            (_, Change::Added | Change::Modified) => namespaces.note(object),
        }
    }
}
