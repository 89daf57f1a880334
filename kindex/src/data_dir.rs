//! The directory in which a run keeps its files, and the names of those files.

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
