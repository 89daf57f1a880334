//! Opens the database that an address names, with errors for people.

use std::path::Path;
use std::sync::Arc;

use kindex_model::kind::Registry;
use kindex_store::{Address, MetadataStorage, PoolConfig, StoreError};
use kube::Client;

use crate::config::MetadataStorageChoice;
use crate::data_dir::DataDir;
use crate::error::{CommandError, CommandResult, chain};
use crate::{config_file, sql_only};

/// A store that several tasks share.
pub(crate) type Store = Arc<dyn MetadataStorage>;

/// Where an API server finds archived objects.
#[derive(Clone)]
pub(crate) enum Rows {
    /// In this database.
    Stored(Store),
    /// Nowhere: metadata storage is off, for this reason.
    Off(String),
}

impl Rows {
    /// A client of the kinds that no cluster has, which are in the database alone; `None` without either.
    ///
    /// # Errors
    /// Those of [`sql_only::client`].
    pub(crate) async fn sql_only_api(&self, registry: &Registry) -> CommandResult<Option<Client>> {
        match self {
            Self::Stored(store) => sql_only::client(registry, store.clone()).await,
            Self::Off(_) => Ok(None),
        }
    }
}

/// What the flags of a service name: an address, which goes over a configuration file; `None` where they name neither.
///
/// # Errors
/// An address or a file that is wrong, and an SQLite file that is not there.
pub(crate) fn rows(registry: &Registry, address: Option<&str>, config: Option<&Path>) -> CommandResult<Option<Rows>> {
    if let Some(address) = address {
        let address = parse(address)?;
        check_there(&address)?;
        return open_at(registry, &address).map(|store| Some(Rows::Stored(store)));
    }
    let Some(path) = config else {
        return Ok(None);
    };
    match config_file::read(registry, path)?.metadata_storage_choice() {
        MetadataStorageChoice::Off { reason } => Ok(Some(Rows::Off(reason))),
        MetadataStorageChoice::On { address, pool } => {
            check_there(&address)?;
            let store = kindex_store::open(&address, *registry, &pool);
            let store = store.map_err(|error| CommandError::usage(chain(&error)))?;
            Ok(Some(Rows::Stored(store)))
        }
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
pub(crate) fn parse(address: &str) -> CommandResult<Address> {
    address.parse().map_err(|error| unusable(&error))
}

fn unusable(error: &StoreError) -> CommandError {
    CommandError::usage(chain(error)).hint(
        "write it as sqlite:PATH or mysql://USER:PASSWORD@HOST:PORT/DATABASE, \
         with special characters of the password as %3F for ?",
    )
}

/// What a person is told whose question the database did not answer.
pub(crate) fn unanswered(error: &StoreError) -> CommandError {
    let hint = match error {
        StoreError::Retryable { cause: "access", .. } => {
            "do --database, KINDEX_DATABASE or the configuration file have the right user and password, and has the user \
             rights on the database?"
        }
        StoreError::Retryable {
            cause: "connection", ..
        } => "does the database run, and is this its address? --database, KINDEX_DATABASE or --config name it",
        StoreError::Retryable { cause: "corrupt", .. } => "is the file that --database names an SQLite database?",
        StoreError::Retryable { .. }
        | StoreError::Refused { .. }
        | StoreError::Schema(_)
        | StoreError::Corrupt { .. }
        | StoreError::Address(_)
        | StoreError::Continue(_)
        | StoreError::Template(_)
        | StoreError::NoHistory(_)
        | StoreError::Direct { .. }
        | StoreError::Everything(_) => "is this the right --database, and has `kindex up` run on it?",
    };
    CommandError::failure(chain(error)).hint(hint)
}
