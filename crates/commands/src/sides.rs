//! The cluster and the database of a command that needs both, found as its flags say.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kindex_api::operations::{Operations, RightsOf};
use kindex_kube_client::classify;
use kindex_kube_client::kube_cluster::KubeCluster;
use kindex_maintenance::retries::Transient as _;
use kindex_maintenance::sides::{RepairError, Sides};
use kindex_model::kind::{Kind, Registry};
use kindex_store::{Address, PoolConfig};
use tokio::time::{sleep, timeout};

use crate::cli::{DataDirArg, SidesArgs, StoreArgs};
use crate::client::{self, Access};
use crate::config::MetadataStorageChoice;
use crate::data_dir::DataDir;
use crate::database::{self, Store};
use crate::error::{CommandError, CommandResult, chain};
use crate::one_cluster::{self, CheckedCluster};
use crate::target::kind_of;
use crate::{config_file, say, sql_only};

/// How long a cluster may take until it is said that it does not answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Until a cluster is asked again to which there is no connection: one that is reset may be there a moment later.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(250);
/// What helps where nothing comes from a cluster.
const AWAY: &str = "does it run, and is it the one of --kubeconfig?";

/// Both sides.
pub(crate) async fn open(registry: &Registry, args: &SidesArgs) -> CommandResult<Sides> {
    open_to_create(registry, args).await.map(|(sides, _)| sides)
}

/// The same to fill a database: a SQLite file that is named need not exist. One that has no cluster yet gets this one
/// when it is listed.
pub(crate) async fn open_to_fill(registry: &Registry, args: &SidesArgs) -> CommandResult<Sides> {
    let storage = store_to_prepare(registry, &args.store)?;
    let (sides, cluster) = beside(registry, args, storage).await?;
    let cluster = KubeCluster::clone(&cluster);
    let checked = CheckedCluster::new(cluster, sides.storage.clone(), shown(registry, &args.store)?);
    Ok(Sides {
        cluster: Arc::new(checked),
        ..sides
    })
}

/// Both sides, and the cluster once more as one in which objects can be created.
pub(crate) async fn open_to_create(registry: &Registry, args: &SidesArgs) -> CommandResult<(Sides, Arc<KubeCluster>)> {
    beside(registry, args, store(registry, &args.store)?).await
}

/// The database for people, without a password.
pub(crate) fn shown(registry: &Registry, args: &StoreArgs) -> CommandResult<String> {
    let StoreArgs {
        config,
        data_dir,
        database,
    } = args;
    let otherwise = DataDir::at(&data_dir.data_dir).default_database();
    database::shown(registry, database.database.as_deref(), config.as_deref(), &otherwise)
}

/// The cluster beside a database that was found already.
async fn beside(registry: &Registry, args: &SidesArgs, storage: Store) -> CommandResult<(Sides, Arc<KubeCluster>)> {
    let access = cluster(args).await?;
    // These commands go on through an outage, for a while.
    database::outlasting(&storage).await?;
    storage.outage().log_changes();
    note_retries(&access).await;
    one_cluster::refuse_another_in_time(&access.client, storage.as_ref(), &shown(registry, &args.store)?).await?;
    let cluster = KubeCluster::new(access.config).map_err(|error| CommandError::usage(chain(&error)))?;
    let cluster = Arc::new(cluster);
    let sides = Sides {
        platform: registry.platform,
        cluster: cluster.clone(),
        storage,
    };
    Ok((sides, cluster))
}

/// What a person is told where work on both sides stopped.
pub(crate) fn stopped(error: &RepairError) -> CommandError {
    match error {
        RepairError::Store(error) => database::unanswered(error),
        RepairError::Cluster { .. } | RepairError::Running { .. } => {
            CommandError::failure(chain(error)).hint("check that cluster and database belong to the same ingester")
        }
    }
}

/// A cluster that answers: for a command that does not wait for it.
pub(crate) async fn answering(access: Access) -> CommandResult<Access> {
    refuse_silence(access, ANSWER_WITHIN).await
}

/// The same for a command that waits for a while, and says so meanwhile. It does not wait after what fails at once.
pub(crate) async fn answering_within(access: Access, within: Duration) -> CommandResult<Access> {
    let rest = within.saturating_sub(ANSWER_WITHIN);
    match silence(&access, ANSWER_WITHIN).await {
        None => Ok(access),
        Some(silence) if !silence.may_end => Err(silence.failure()),
        Some(silence) => {
            silence.note(Some(&format!("Retrying for {} s", rest.as_secs())));
            refuse_silence(access, rest).await
        }
    }
}

async fn refuse_silence(access: Access, within: Duration) -> CommandResult<Access> {
    match silence(&access, within).await {
        None => Ok(access),
        Some(silence) => Err(silence.failure()),
    }
}

/// For a command that waits for the cluster: says so, where nothing comes from it, and what is done then.
pub(crate) async fn note_silence(access: &Access, then: &str) {
    if let Some(silence) = silence(access, ANSWER_WITHIN).await {
        silence.note(Some(then));
    }
}

/// The same for a command that repeats its calls for a while. Not all are repeated: what cannot pass by itself ends the
/// command in a moment.
async fn note_retries(access: &Access) {
    if let Some(silence) = silence(access, ANSWER_WITHIN).await {
        silence.note(silence.is_repeated.then_some("Retrying for two minutes"));
    }
}

/// That nothing comes from a cluster.
struct Silence {
    /// Which cluster, and why.
    message: String,
    /// Whether it was asked until the time was over, and may answer later.
    may_end: bool,
    /// Whether commands with a retry budget repeat what fails so.
    is_repeated: bool,
}

impl Silence {
    fn note(&self, then: Option<&str>) {
        let then = then.map_or_else(String::new, |then| format!(". {then}"));
        say::note(format_args!("note: {}{then}", self.message));
        say::note(format_args!("  hint: {AWAY}"));
    }

    fn failure(self) -> CommandError {
        CommandError::failure(self.message).hint(AWAY)
    }
}

/// That nothing comes from the cluster in this time; a refusal is an answer. It is asked again where there is no
/// connection; what else fails, such as a token that cannot be read, fails at once.
async fn silence(access: &Access, within: Duration) -> Option<Silence> {
    let mut why = format!("nothing within {} s", within.as_secs());
    let mut is_repeated = true;
    let answers = async {
        loop {
            match access.client.apiserver_version().await {
                Ok(_) | Err(kube::Error::Api(_)) => return true,
                Err(error) => {
                    why = chain(&error);
                    is_repeated = is_retryable(&error);
                    if !matches!(error, kube::Error::HyperError(_) | kube::Error::Service(_)) {
                        return false;
                    }
                }
            }
            sleep(ASK_AGAIN_AFTER).await;
        }
    };
    let may_end = match timeout(within, answers).await {
        Ok(true) => return None,
        Ok(false) => false,
        Err(_) => true,
    };
    let url = &access.config.cluster_url;
    Some(Silence {
        message: format!("the cluster at {url} does not answer: {why}"),
        may_end,
        is_repeated,
    })
}

/// Whether a call that failed so is repeated by who has a retry budget, as by [`with_retries`].
///
/// [`with_retries`]: kindex_maintenance::retries::with_retries
fn is_retryable(error: &kube::Error) -> bool {
    classify(error).retry_after().is_some()
}

/// The operations of the API server, which need not run for that: over both sides, and over SQL-only kinds.
pub(crate) async fn operations(registry: &Registry, access: &Access, store: &Store) -> CommandResult<Operations> {
    one_cluster::refuse_another(&access.client, store.as_ref(), &"that the flags name").await?;
    let operations = Operations::new(*registry, access.cluster_access(), store.clone(), RightsOf::Server);
    let operations = operations.map_err(|error| CommandError::usage(chain(&error)))?;
    sql_only::beside(operations, registry, store).await
}

/// The same over the cluster alone, while the database is away for this reason.
pub(crate) fn operations_of_cluster(registry: &Registry, access: &Access, why: &str) -> CommandResult<Operations> {
    let operations = Operations::without_storage(*registry, access.cluster_access(), why, RightsOf::Server);
    operations.map_err(|error| CommandError::usage(chain(&error)))
}

/// The database alone: `--database`, else the configuration file's, else the data directory's. A SQLite file must
/// exist.
pub fn store(registry: &Registry, args: &StoreArgs) -> CommandResult<Store> {
    match (&args.database.database, &args.config) {
        (None, Some(path)) => {
            let (address, pool) = configured_address(registry, path)?;
            database::check_there(&address)?;
            open_with(registry, &address, &pool)
        }
        (address, _) => {
            let data_dir = DataDir::at(&args.data_dir.data_dir);
            database::open_existing(registry, address.as_deref(), &data_dir)
        }
    }
}

/// The same to make tables in: a SQLite file that is named need not exist.
pub(crate) fn store_to_prepare(registry: &Registry, args: &StoreArgs) -> CommandResult<Store> {
    match (&args.database.database, &args.config) {
        (Some(address), _) => database::open(registry, address),
        (None, Some(path)) => {
            let (address, pool) = configured_address(registry, path)?;
            open_with(registry, &address, &pool)
        }
        (None, None) => store(registry, args),
    }
}

fn open_with(registry: &Registry, address: &Address, pool: &PoolConfig) -> CommandResult<Store> {
    kindex_store::open(address, *registry, pool).map_err(|error| CommandError::usage(chain(&error)))
}

/// Where the configuration file has its database, and how its connections are used.
pub(crate) fn configured_address(registry: &Registry, path: &Path) -> CommandResult<(Address, PoolConfig)> {
    match config_file::read(registry, path)?.metadata_storage_choice() {
        MetadataStorageChoice::On { address, pool } => Ok((address, pool)),
        MetadataStorageChoice::Off { reason } => {
            let message = format!("{}: {reason}", path.display());
            Err(CommandError::usage(message).hint("name a database with --database"))
        }
    }
}

/// The cluster alone: `--kubeconfig`, else the data directory's, else the environment's.
pub(crate) async fn cluster(args: &SidesArgs) -> CommandResult<Access> {
    cluster_at(args.kubeconfig.as_deref(), &args.store.data_dir).await
}

/// The same by its flags alone.
pub(crate) async fn cluster_at(kubeconfig: Option<&Path>, data_dir: &DataDirArg) -> CommandResult<Access> {
    let own = DataDir::at(&data_dir.data_dir).kubeconfig();
    match kubeconfig {
        Some(path) => client::from_file(path).await,
        None if own.is_file() => client::from_file(&own).await,
        None => client::from_environment().await,
    }
}

/// The kinds of these names, each once, or all where none is named.
pub(crate) fn kinds(registry: &Registry, names: &[String]) -> CommandResult<Vec<&'static Kind>> {
    if names.is_empty() {
        return Ok(registry.kinds.to_vec());
    }
    let mut kinds: Vec<&'static Kind> = Vec::new();
    for name in names {
        let kind = kind_of(registry, name)?;
        if !kinds.iter().any(|known| known.name == kind.name) {
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

/// The same of the kinds that a cluster has: for what is about both sides.
pub(crate) fn cluster_kinds(registry: &Registry, names: &[String]) -> CommandResult<Vec<&'static Kind>> {
    let mut kinds = kinds(registry, names)?;
    if let Some(kind) = kinds.iter().find(|kind| !kind.cluster && !names.is_empty()) {
        let error = CommandError::usage(format_args!("no cluster has kind {}: it is SQL-only", kind.name));
        return Err(error.hint("there is nothing to compare them with: leave the kind out"));
    }
    kinds.retain(|kind| kind.cluster);
    Ok(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if a command that fails at once had announced that it retries.
    #[test]
    fn what_is_no_answer_is_repeated_only_if_it_may_pass() {
        let away = kube::Error::Service("connection refused".into());
        assert!(is_retryable(&away));
        let page = serde_json::from_str::<u8>("<html>").expect_err("not JSON");
        assert!(!is_retryable(&kube::Error::SerdeError(page)));
    }

    #[test]
    fn a_kind_that_is_named_twice_is_meant_once() {
        let names = ["models", "projects", "Model"].map(str::to_owned);
        let kinds = kinds(&kindex_generated::registry(), &names).expect("kinds");
        let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
        assert_eq!(kinds, ["Model", "Project"]);
    }
}
