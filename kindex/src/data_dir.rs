//! The directory in which a run keeps its files, and the names of those files.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{CommandError, CommandResult};

/// A run's directory.
#[derive(Clone, Debug)]
pub(crate) struct DataDir(PathBuf);

impl DataDir {
    /// Makes the directory where it is absent.
    pub(crate) fn create(path: &Path) -> CommandResult<Self> {
        std::fs::create_dir_all(path).map_err(|error| {
            CommandError::usage(format_args!(
                "cannot make the data directory {}: {error}",
                path.display()
            ))
            .hint("name a directory that you may write to with --data-dir")
        })?;
        Ok(Self(path.to_owned()))
    }

    /// The directory as it is, present or not.
    pub(crate) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Takes the directory for this process, until the file that comes back is dropped or the process ends, however.
    ///
    /// # Errors
    /// Another process has it: two would write one cluster, and the second would give kubectl its own address.
    pub(crate) fn claim(&self) -> CommandResult<File> {
        let path = self.0.join("lock");
        let failed = |error: &std::io::Error| CommandError::failure(format_args!("{}: {error}", path.display()));
        let file = File::create(&path).map_err(|error| failed(&error))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(CommandError::failure(format_args!(
                "another `kindex up` runs in the data directory {}",
                self.0.display()
            ))
            .hint("stop it first, or choose a directory of its own with --data-dir")),
            Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Unsupported => Err(failed(&error)),
            // A file system without locks has no way to tell.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
        }
    }

    /// For kubectl: how to reach the embedded cluster.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.0.join("kubeconfig")
    }

    /// The embedded cluster's objects: its etcd.
    pub(crate) fn cluster_db(&self) -> PathBuf {
        self.0.join("cluster.db")
    }

    /// The default database of rows.
    pub(crate) fn kindex_db(&self) -> PathBuf {
        self.0.join("kindex.db")
    }

    /// The default database address.
    pub(crate) fn default_database(&self) -> String {
        format!("sqlite:{}", self.kindex_db().display())
    }
}
