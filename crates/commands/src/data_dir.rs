//! The directory in which a run keeps its files, and the names of those files.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kindex_cluster::{Token, private};

use crate::error::{CommandError, CommandResult};

/// A run's directory.
#[derive(Clone, Debug)]
pub struct DataDir(PathBuf);

impl DataDir {
    /// Makes the directory where it is absent, for its owner alone. One that is there may hold files of others and
    /// stays as it is; the files of a run are closed to others either way.
    pub fn create(path: &Path) -> CommandResult<Self> {
        private::make_directory(path).map_err(|error| {
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
    pub fn claim(&self) -> CommandResult<File> {
        let path = self.0.join("lock");
        let file = File::create(&path).map_err(|error| failed(&path, &error))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(CommandError::failure(format_args!(
                "another `kindex up` runs in the data directory {}",
                self.0.display()
            ))
            .hint("stop it first, or choose a directory of its own with --data-dir")),
            Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Unsupported => Err(failed(&path, &error)),
            // A file system without locks has no way to tell.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
        }
    }

    /// Closes to others what is in the directory: earlier programs left it open.
    pub fn close_to_others(&self) -> CommandResult {
        let databases = [self.cluster_db(), self.kindex_db()];
        let beside = |path: &PathBuf| ["", "-wal", "-shm"].map(|suffix| with_suffix(path, suffix));
        let files = databases
            .iter()
            .flat_map(beside)
            .chain([self.kubeconfig(), self.token()]);
        for file in files {
            private::close_to_others(&file).map_err(|error| failed(&file, &error))?;
        }
        Ok(())
    }

    /// The token of the embedded cluster: the one that is kept, or a new one that is kept from now on.
    pub fn cluster_token(&self) -> CommandResult<Token> {
        let path = self.token();
        let kept = match std::fs::read_to_string(&path) {
            Ok(text) => Token::read(&text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed(&path, &error)),
        };
        if let Some(token) = kept {
            return Ok(token);
        }
        let token = Token::random();
        let text = format!("{}\n", token.secret());
        private::write(&path, &text).map_err(|error| failed(&path, &error))?;
        Ok(token)
    }

    /// Writes the kubeconfig of the embedded cluster.
    pub fn write_kubeconfig(&self, text: &str) -> CommandResult<PathBuf> {
        let path = self.kubeconfig();
        private::write(&path, text).map_err(|error| failed(&path, &error))?;
        Ok(path)
    }

    /// What callers of the embedded cluster show.
    fn token(&self) -> PathBuf {
        self.0.join("token")
    }

    /// For kubectl: how to reach the embedded cluster.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.0.join("kubeconfig")
    }

    /// The embedded cluster's objects: its etcd.
    pub fn cluster_db(&self) -> PathBuf {
        self.0.join("cluster.db")
    }

    /// The default database of rows.
    pub(crate) fn kindex_db(&self) -> PathBuf {
        self.0.join("kindex.db")
    }

    /// The folder of the runs service.
    pub fn runs(&self) -> PathBuf {
        self.0.join("runs")
    }

    /// The default database address.
    pub fn default_database(&self) -> String {
        format!("sqlite:{}", self.kindex_db().display())
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn failed(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::failure(format_args!("{}: {error}", path.display()))
}
