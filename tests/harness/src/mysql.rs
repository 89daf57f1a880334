//! A private MySQL server, from the folder that `tests/mysql/install` fills. Knows nothing of
//! schemas and stores.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::require::program;
use crate::sql_server::{SqlServer, own};
use crate::tools::tools;

/// A running server. Root may connect over TCP without a password.
pub struct MySql(SqlServer);

impl MySql {
    /// Whether `tests/mysql/install` was run.
    pub fn installed() -> bool {
        folder().join("data").is_dir() && program("setpriv").is_some()
    }

    /// Copies a data directory and starts a server on it, with more options such as
    /// `--max-allowed-packet=1M`.
    ///
    /// # Panics
    /// When the server does not answer in time; the message holds its log.
    pub fn start(options: &[&str]) -> Self {
        let directory = SqlServer::directory_for("mysql");
        let copied = Command::new("cp")
            .args(["--recursive", "--sparse=always", "--reflink=auto"])
            .args([folder().join("data"), directory.path().join("data")])
            .status();
        assert!(copied.is_ok_and(|status| status.success()), "cp");
        own(directory.path());
        Self(SqlServer::start(directory, command(&folder()), options))
    }
}

fn folder() -> PathBuf {
    tools().join("mysql")
}

/// The server with its own loader and libraries, which are newer than the machine's.
fn command(folder: &Path) -> Vec<String> {
    let named = |directory: PathBuf, says: fn(&str) -> bool| {
        let entries = std::fs::read_dir(&directory).expect("the folder is filled");
        let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let found = paths.find(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(says));
        found.unwrap_or_else(|| panic!("{} lacks a part of MySQL", directory.display()))
    };
    let libraries = named(folder.join("usr/lib"), |name| name.ends_with("-linux-gnu"));
    let loader = named(libraries.clone(), |name| name.starts_with("ld-linux-"));
    let at = |path: &str| folder.join(path).display().to_string();
    vec![
        loader.display().to_string(),
        "--library-path".to_owned(),
        libraries.display().to_string(),
        at("usr/sbin/mysqld"),
        "--no-defaults".to_owned(),
        format!("--basedir={}", at("usr")),
        format!("--lc-messages-dir={}", at("usr/share/mysql")),
        format!("--plugin-dir={}", at("usr/lib/mysql/plugin")),
        "--secure-file-priv=".to_owned(),
        "--auto-generate-certs=OFF".to_owned(),
        "--skip-log-bin".to_owned(),
        "--mysqlx=OFF".to_owned(),
        "--performance-schema=OFF".to_owned(),
    ]
}

impl Deref for MySql {
    type Target = SqlServer;

    fn deref(&self) -> &SqlServer {
        &self.0
    }
}

impl DerefMut for MySql {
    fn deref_mut(&mut self) -> &mut SqlServer {
        &mut self.0
    }
}

impl From<MySql> for SqlServer {
    fn from(server: MySql) -> Self {
        server.0
    }
}
