//! Files that their owner alone reads: they hold Secrets, and what opens the way to them.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// Makes a directory, and those above it where they are absent; one that is there stays as it is.
///
/// # Errors
/// As the system says it.
pub fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)
}

/// Makes an empty file where there is none. SQLite gives the files beside a database the mode of the database.
///
/// # Errors
/// As the system says it.
pub(crate) fn make_file(path: &Path) -> io::Result<()> {
    let made = OpenOptions::new().append(true).create(true).mode(FILE_MODE).open(path);
    made.map(drop)
}

/// Takes others' rights from a file, where it is there.
///
/// # Errors
/// As the system says it.
pub fn close_to_others(path: &Path) -> io::Result<()> {
    match fs::set_permissions(path, Permissions::from_mode(FILE_MODE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        closed => closed,
    }
}

/// Writes a whole file, in place of one that is there.
///
/// # Errors
/// As the system says it; the file is the former then.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let next = path.with_added_extension("next");
    make_file(&next)?;
    close_to_others(&next)?;
    let mut file = OpenOptions::new().write(true).truncate(true).open(&next)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&next, path)
}
