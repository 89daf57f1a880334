//! The folder of the service: for its owner alone, with a secret that is made at the first start.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::ServiceError;
use crate::secrets::Secrets;

/// The folder in which everything is kept.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes the folder where it is absent.
    ///
    /// # Errors
    /// A path at which none can be made.
    pub fn open(path: &Path) -> Result<Self, ServiceError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|source| ServiceError::Folder {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self(path.to_owned()))
    }

    /// The folder at a path, which is there or not.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The file of the API keys.
    #[must_use]
    pub fn keys(&self) -> PathBuf {
        self.0.join("keys.db")
    }

    /// The folder of the files of runs.
    #[must_use]
    pub fn artifacts(&self) -> PathBuf {
        self.0.join("artifacts")
    }

    /// The secrets, one a line, the newest first. To replace one, put a new line before it; take it out a week later.
    /// They are in a file that somebody keeps, or in the folder, where one is made.
    pub(super) fn secrets(&self, kept: Option<PathBuf>) -> Result<Secrets, ServiceError> {
        let (path, text) = match kept {
            Some(path) => {
                let text = std::fs::read_to_string(&path);
                (path, text)
            }
            None => {
                let path = self.0.join("secrets");
                let text = match std::fs::read_to_string(&path) {
                    Err(error) if error.kind() == ErrorKind::NotFound => make(&path),
                    read => read,
                };
                (path, text)
            }
        };
        let text = text.map_err(|source| ServiceError::Folder {
            path: path.clone(),
            source,
        })?;
        Secrets::parse(&text).map_err(|source| ServiceError::Secrets { path, source })
    }
}

/// Written aside first, so that no half of a secret is ever read.
fn make(path: &Path) -> io::Result<String> {
    let text = format!("{}\n", STANDARD_NO_PAD.encode(rand::random::<[u8; 32]>()));
    let aside = path.with_extension("new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&aside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&aside, path)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_secret_is_made_once_and_for_its_owner_alone() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(&parent.path().join("runs")).expect("a folder");
        let first = folder.secrets(None).expect("secrets").sign(b"x");
        let second = folder.secrets(None).expect("secrets").sign(b"x");
        assert_eq!(first, second);
        let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode(&folder.path().join("secrets")), 0o600);
        assert_eq!(mode(folder.path()), 0o700);
    }

    #[test]
    fn a_file_that_holds_no_secret_is_an_error() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(parent.path()).expect("a folder");
        std::fs::write(parent.path().join("secrets"), "short\n").expect("written");
        let error = folder.secrets(None).expect_err("refused").to_string();
        assert!(error.contains("line 1"), "{error}");
    }

    #[test]
    fn a_file_of_secrets_that_somebody_keeps_is_read_and_never_made() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(&parent.path().join("runs")).expect("a folder");
        let kept = parent.path().join("kept");
        let error = folder
            .secrets(Some(kept.clone()))
            .expect_err("it is absent")
            .to_string();
        assert!(error.contains("kept") && !kept.exists(), "{error}");
        std::fs::write(&kept, "k".repeat(32)).expect("written");
        let own = folder.secrets(None).expect("secrets").sign(b"x");
        assert_ne!(folder.secrets(Some(kept)).expect("secrets").sign(b"x"), own);
    }
}
