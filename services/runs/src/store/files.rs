//! The files of the store as they were opened. What is written to a file that was moved away or replaced is lost at the
//! next start, so that nothing is answered then.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::connect;
use super::error::StoreError;

/// So much has to fit onto the disk before it counts as one with room: as much as the largest request.
const ROOM_BYTES: usize = 4 * 1024 * 1024;

/// Device and number of a file.
type Identity = (u64, u64);

/// The files that are written.
#[derive(Debug)]
pub(super) struct Files {
    database: (PathBuf, Identity),
    log: PathBuf,
    /// Of the log, which is made by the first statement.
    known_log: Mutex<Option<Identity>>,
}

impl Files {
    /// Those of a folder, which were opened.
    pub(super) fn opened(folder: &Path) -> Result<Self, StoreError> {
        let database = connect::file(folder);
        let log = connect::log(folder);
        let known = identity(&database)?;
        let known_log = identity(&log).ok();
        Ok(Self {
            database: (database, known),
            log,
            known_log: Mutex::new(known_log),
        })
    }

    /// The log may be another one after the database was opened again.
    pub(super) fn reopened(&self) {
        *self.known_log() = identity(&self.log).ok();
    }

    /// Whether the files are where they were.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let (database, known) = &self.database;
        let known_log = *self.known_log();
        for (path, known) in [(database, Some(*known)), (&self.log, known_log)] {
            let Some(known) = known else { continue };
            match identity(path) {
                Ok(found) if found == known => {}
                Err(StoreError::Folder { path, source }) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::Folder { path, source });
                }
                Ok(_) | Err(_) => return Err(StoreError::Gone { path: path.clone() }),
            }
        }
        Ok(())
    }

    fn known_log(&self) -> MutexGuard<'_, Option<Identity>> {
        self.known_log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn identity(path: &Path) -> Result<Identity, StoreError> {
    let metadata = std::fs::metadata(path).map_err(|source| StoreError::Folder {
        path: path.to_owned(),
        source,
    })?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Whether the disk of a folder has room for a request: the log may be longer than what is written to it, so that a
/// small transaction says nothing.
pub(super) fn has_room(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join("probe");
    let written = write(&path);
    let removed = std::fs::remove_file(&path);
    match (written, removed) {
        (Ok(()), Ok(())) => Ok(()),
        (Err(source), _) | (Ok(()), Err(source)) => Err(StoreError::Folder { path, source }),
    }
}

fn write(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(&vec![0; ROOM_BYTES])?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_moved_away_or_replaced_is_noticed_until_it_is_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = connect::file(folder.path());
        std::fs::write(&database, "x").expect("written");
        let files = Files::opened(folder.path()).expect("it is there");
        std::fs::write(connect::log(folder.path()), "x").expect("written");
        files.reopened();
        assert!(files.check().is_ok());
        for path in [database, connect::log(folder.path())] {
            let aside = folder.path().join("aside");
            std::fs::rename(&path, &aside).expect("moved");
            assert!(matches!(files.check(), Err(StoreError::Gone { .. })), "{path:?}");
            std::fs::write(&path, "x").expect("written");
            assert!(matches!(files.check(), Err(StoreError::Gone { .. })), "{path:?}");
            std::fs::rename(&aside, &path).expect("moved back");
            assert!(files.check().is_ok());
        }
        assert!(has_room(folder.path()).is_ok());
        assert!(!folder.path().join("probe").exists());
    }
}
