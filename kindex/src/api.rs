//! `kindex api`: the API server over a cluster and a database, as a role of its own and as a part of `kindex up`.

use std::net::SocketAddr;
use std::sync::Arc;

use kindex_api::operations::Operations;
use kindex_api::rest::Rest;
use kindex_api::server::{self, Limits};
use kindex_runtime::config::MetadataStorageChoice;
use kindex_runtime::kind::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cli::ApiArgs;
use crate::client::{self, Access};
use crate::database::Store;
use crate::error::{CommandError, CommandResult, chain};
use crate::{database, health, ingester, interrupt};

/// An API server whose address is taken.
pub(crate) struct Api {
    listener: TcpListener,
    rest: Rest,
}

impl Api {
    /// Takes the address.
    pub(crate) async fn bind(
        registry: &Registry,
        access: &Access,
        store: Store,
        address: SocketAddr,
    ) -> CommandResult<Self> {
        let operations = Operations::new(*registry, access.config.clone(), store)
            .map_err(|error| CommandError::usage(chain(&error)))?;
        Ok(Self {
            listener: health::bind(address, "--listen").await?,
            rest: Rest::new(Arc::new(operations)),
        })
    }

    /// For `kubectl --server`.
    pub(crate) fn url(&self) -> CommandResult<String> {
        let address = self.listener.local_addr().map_err(CommandError::failure)?;
        Ok(format!("http://{address}"))
    }

    /// Serves until stopped.
    pub(crate) fn start(self, tasks: &TaskTracker, stop: &CancellationToken) {
        let stop = stop.clone();
        tasks.spawn(async move {
            let served = server::serve(self.listener, self.rest.router(), Limits::default(), stop).await;
            if let Err(error) = served {
                tracing::error!(%error, "The API server has stopped");
            }
        });
    }
}

/// The role alone.
pub(crate) async fn run(registry: &Registry, args: &ApiArgs) -> CommandResult {
    let store = store(registry, args)?;
    let access = match &args.kubeconfig {
        Some(path) => client::from_file(path).await?,
        None => client::from_environment().await?,
    };
    let api = Api::bind(registry, &access, store.clone(), args.listen.listen).await?;
    println!(
        "kubectl --server {} get {}",
        api.url()?,
        registry.kinds.first().map_or("KIND", |kind| kind.plural)
    );
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    api.start(&tasks, &stop);
    interrupt::wait().await;
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    store.close().await;
    Ok(())
}

fn store(registry: &Registry, args: &ApiArgs) -> CommandResult<Store> {
    if let Some(address) = &args.database {
        return database::open(registry, address);
    }
    let Some(path) = &args.config else {
        return Err(CommandError::usage("no database").hint("name one with --database or --config"));
    };
    match ingester::read(registry, path)?.metadata_storage_choice() {
        MetadataStorageChoice::Off { reason } => Err(CommandError::usage(format_args!("{}: {reason}", path.display()))
            .hint("without stored objects there is nothing to serve: kubectl can ask the cluster itself")),
        MetadataStorageChoice::On { address, pool } => {
            kindex_runtime::store::open(&address, *registry, &pool).map_err(|error| CommandError::usage(chain(&error)))
        }
    }
}
