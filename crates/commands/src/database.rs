//! Opens the database that an address names, with errors for people.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kindex_maintenance::retries::Transient;
use kindex_model::kind::{Kind, Registry};
use kindex_model::object::Uid;
use kindex_store::{Address, Cause, MetadataStorage, PoolConfig, StoreError};
use kube::Client;
use tokio::time::timeout;

use crate::config::MetadataStorageChoice;
use crate::data_dir::DataDir;
use crate::error::{CommandError, CommandResult, chain};
use crate::{config_file, say, sql_only};

/// How long a database may take until it is said that a command waits for it.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// What helps where nothing comes from a database.
const AWAY: &str = "does the database run, and is this its address? --database, KINDEX_DATABASE or --config name it";

/// A store that several tasks share.
pub type Store = Arc<dyn MetadataStorage>;

/// The database of a service, as flags or a configuration file name it.
#[derive(Clone)]
pub enum OpenedStorage {
    /// This database.
    On(Store),
    /// None: metadata storage is off, for this reason.
    Off(String),
}

impl OpenedStorage {
    /// A client of the kinds that no cluster has, which are in the database alone; `None` without either.
    ///
    /// # Errors
    /// Those of [`sql_only::client`].
    pub async fn sql_only_api(&self, registry: &Registry) -> CommandResult<Option<Client>> {
        match self {
            Self::On(store) => sql_only::client(registry, store.clone()).await,
            Self::Off(_) => Ok(None),
        }
    }
}

/// What the flags of a service name: an address, which overrides a configuration file; `None` where they name neither.
///
/// # Errors
/// An address or a file that is wrong, and an SQLite file that is not there.
pub fn open_storage(
    registry: &Registry,
    address: Option<&str>,
    config: Option<&Path>,
) -> CommandResult<Option<OpenedStorage>> {
    if let Some(address) = address {
        let address = parse(address)?;
        check_there(&address)?;
        return open_at(registry, &address).map(|store| Some(OpenedStorage::On(store)));
    }
    let Some(path) = config else {
        return Ok(None);
    };
    match config_file::read(registry, path)?.metadata_storage_choice() {
        MetadataStorageChoice::Off { reason } => Ok(Some(OpenedStorage::Off(reason))),
        MetadataStorageChoice::On { address, pool } => {
            check_there(&address)?;
            let store = kindex_store::open(&address, *registry, &pool);
            let store = store.map_err(|error| CommandError::usage(chain(&error)))?;
            Ok(Some(OpenedStorage::On(store)))
        }
    }
}

/// The database that flags name, for people: without a password. `otherwise`: the address where they name none.
///
/// # Errors
/// An address or a file that is wrong.
pub fn shown(
    registry: &Registry,
    address: Option<&str>,
    config: Option<&Path>,
    otherwise: &str,
) -> CommandResult<String> {
    match (address, config) {
        (Some(address), _) => parse(address).map(|address| address.to_string()),
        (None, None) => parse(otherwise).map(|address| address.to_string()),
        (None, Some(path)) => Ok(match config_file::read(registry, path)?.metadata_storage_choice() {
            MetadataStorageChoice::Off { reason } => reason,
            MetadataStorageChoice::On { address, .. } => address.to_string(),
        }),
    }
}

/// The database of a run that has begun before; a SQLite file must exist.
pub(crate) fn open_existing(registry: &Registry, address: Option<&str>, data_dir: &DataDir) -> CommandResult<Store> {
    let address = match address {
        Some(address) => parse(address)?,
        None => parse(&data_dir.default_database())?,
    };
    check_there(&address)?;
    open_at(registry, &address)
}

/// Who asks for a file that is not there is told so: opening it would make an empty one.
pub(crate) fn check_there(address: &Address) -> CommandResult {
    match address.file().filter(|path| !path.exists()) {
        Some(path) => Err(CommandError::usage(format_args!(
            "no database at {}: there is no such file",
            path.display()
        ))
        .hint("start `kindex up` first, or name one with --database, --config or --data-dir")),
        None => Ok(()),
    }
}

/// The database of an address. Connects when it is first used.
pub(crate) fn open(registry: &Registry, address: &str) -> CommandResult<Store> {
    open_at(registry, &parse(address)?)
}

/// The same of an address that is parsed.
pub(crate) fn open_at(registry: &Registry, address: &Address) -> CommandResult<Store> {
    kindex_store::open(address, *registry, &PoolConfig::default()).map_err(|error| unusable(&error))
}

/// An address as people type it.
pub fn parse(address: &str) -> CommandResult<Address> {
    address.parse().map_err(|error| unusable(&error))
}

fn unusable(error: &StoreError) -> CommandError {
    CommandError::usage(chain(error)).hint(
        "write it as sqlite:PATH or mysql://USER:PASSWORD@HOST:PORT/DATABASE, \
         with special characters of the password as %3F for ?",
    )
}

/// Asks for the table of a kind, before a command asks for so much that each question of its own would wait for a
/// database that is away.
///
/// # Errors
/// The database does not answer, or has no such table.
pub(crate) async fn answering(store: &Store, kind: &Kind) -> CommandResult {
    ask(store, kind).await.map_err(|error| unanswered(&error))
}

/// The same for a command that may go on without the database.
///
/// # Errors
/// As the store says it.
pub(crate) async fn ask(store: &Store, kind: &Kind) -> Result<(), StoreError> {
    let nobody = Uid::from("");
    let mut asked = store.get_by_id(kind, &nobody);
    let answer = match timeout(ANSWER_WITHIN, &mut asked).await {
        Ok(answer) => answer,
        Err(_) => {
            note_silence(store, &silence(store), "Trying for a while");
            asked.await
        }
    };
    answer.map(drop)
}

/// Says that a command waits for its database, where it does. That it lacks tables is found later, if these are needed.
///
/// # Errors
/// No wait helps.
pub(crate) async fn outlasting(store: &Store) -> CommandResult {
    let (why, hint) = match timeout(ANSWER_WITHIN, store.ping()).await {
        Ok(Ok(()) | Err(StoreError::Schema(_))) => return Ok(()),
        Ok(Err(error)) if error.retry_after().is_none() => return Err(unanswered(&error)),
        Ok(Err(error)) => (cause(&error), hint(&error)),
        Err(_) => (silence(store), AWAY),
    };
    note_silence(store, &why, "Retrying for two minutes");
    say::note(format_args!("  hint: {hint}"));
    Ok(())
}

/// What the driver says, without the words that the store has for it.
fn cause(error: &StoreError) -> String {
    match error {
        StoreError::Retryable { source, .. } => chain(source),
        other => chain(other),
    }
}

/// Why no answer has come so far.
fn silence(store: &Store) -> String {
    let why = store.outage().why();
    why.unwrap_or_else(|| format!("nothing within {} s", ANSWER_WITHIN.as_secs()))
}

fn note_silence(store: &Store, why: &str, then: &str) {
    let database = store.outage().database();
    say::note(format_args!(
        "note: the database {database} does not answer: {why}. {then}"
    ));
}

/// What a person is told whose question the database did not answer.
pub(crate) fn unanswered(error: &StoreError) -> CommandError {
    CommandError::failure(chain(error)).hint(hint(error))
}

/// The same of work that goes on where it was once it is begun again, as this hint says. In a database without the
/// tables it never does.
pub(crate) fn interrupted(error: &StoreError, to_go_on: &str) -> CommandError {
    match error.retry_after() {
        None => unanswered(error),
        Some(_) => CommandError::failure(chain(error)).hint(to_go_on),
    }
}

fn hint(error: &StoreError) -> &'static str {
    match error {
        StoreError::Retryable {
            cause: Cause::Access, ..
        } => {
            "do --database, KINDEX_DATABASE or the configuration file have the right user and password, and has the user \
             rights on the database?"
        }
        StoreError::Retryable {
            cause: Cause::Connection,
            ..
        } => AWAY,
        StoreError::Retryable {
            cause: Cause::Damaged, ..
        } => "is the file that --database names an SQLite database?",
        StoreError::Retryable { .. }
        | StoreError::Refused { .. }
        | StoreError::Schema(_)
        | StoreError::Corrupt { .. }
        | StoreError::Address(_)
        | StoreError::Continue(_)
        | StoreError::Template(_)
        | StoreError::NoHistory(_)
        | StoreError::Direct { .. }
        | StoreError::UnlimitedDelete(_) => "is this the right --database, and has `kindex up` run on it?",
    }
}
