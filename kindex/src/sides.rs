//! The cluster and the database of a command that needs both, found as its flags say.

use std::path::Path;
use std::sync::Arc;

use kindex_runtime::cluster::kube_cluster::KubeCluster;
use kindex_runtime::config::MetadataStorageChoice;
use kindex_runtime::kind::{Kind, Registry};
use kindex_runtime::verify::Sides;

use crate::cli::{SidesArgs, StoreArgs};
use crate::client::{self, Access};
use crate::data_dir::DataDir;
use crate::database::{self, Store};
use crate::error::{CommandError, CommandResult, chain};
use crate::target::kind_of;

/// Both sides. No connection is opened yet.
pub(crate) async fn open(registry: &Registry, args: &SidesArgs) -> CommandResult<Sides> {
    open_to_create(registry, args).await.map(|(sides, _)| sides)
}

/// The same, and the cluster once more as one in which objects can be created.
pub(crate) async fn open_to_create(registry: &Registry, args: &SidesArgs) -> CommandResult<(Sides, Arc<KubeCluster>)> {
    let storage = store(registry, &args.store)?;
    let access = cluster(args).await?;
    let cluster = KubeCluster::new(access.config).map_err(|error| CommandError::usage(chain(&error)))?;
    let cluster = Arc::new(cluster);
    let sides = Sides {
        platform: registry.platform,
        cluster: cluster.clone(),
        storage,
    };
    Ok((sides, cluster))
}

/// The database alone: `--database`, else the configuration file's, else the data directory's.
pub(crate) fn store(registry: &Registry, args: &StoreArgs) -> CommandResult<Store> {
    match (&args.database.database, &args.config) {
        (None, Some(path)) => configured(registry, path),
        (address, _) => {
            let data_dir = DataDir::at(&args.data_dir.data_dir);
            database::open_existing(registry, address.as_deref(), &data_dir)
        }
    }
}

fn configured(registry: &Registry, path: &Path) -> CommandResult<Store> {
    let config = crate::ingester::read(registry, path)?;
    match config.metadata_storage_choice() {
        MetadataStorageChoice::On { address, pool } => {
            kindex_runtime::store::open(&address, *registry, &pool).map_err(|error| CommandError::usage(chain(&error)))
        }
        MetadataStorageChoice::Off { reason } => {
            let message = format!("{}: {reason}", path.display());
            Err(CommandError::usage(message).hint("name a database with --database"))
        }
    }
}

/// The cluster alone: `--kubeconfig`, else the data directory's, else the environment's.
pub(crate) async fn cluster(args: &SidesArgs) -> CommandResult<Access> {
    let own = DataDir::at(&args.store.data_dir.data_dir).kubeconfig();
    match &args.kubeconfig {
        Some(path) => client::from_file(path).await,
        None if own.is_file() => client::from_file(&own).await,
        None => client::from_environment().await,
    }
}

/// The kinds of these names, or all where none is named.
pub(crate) fn kinds(registry: &Registry, names: &[String]) -> CommandResult<Vec<&'static Kind>> {
    if names.is_empty() {
        return Ok(registry.kinds.to_vec());
    }
    names.iter().map(|name| kind_of(registry, name)).collect()
}
