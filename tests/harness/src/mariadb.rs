//! A private MariaDB server, from the machine's own package. Knows nothing of schemas and stores.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

use tempfile::TempDir;

use crate::require::program;
use crate::sql_server::{SqlServer, as_account};

/// A running server. Root may connect over TCP without a password.
pub struct MariaDb(SqlServer);

impl MariaDb {
    /// Whether the programs are there.
    pub fn installed() -> bool {
        ["mariadbd", "mariadb-install-db", "setpriv"]
            .iter()
            .all(|name| program(name).is_some())
    }

    /// Makes a data directory and starts a server on it, with more options such as
    /// `--innodb-snapshot-isolation=ON`.
    ///
    /// # Panics
    /// When the server does not answer in time; the message holds its log.
    pub fn start(options: &[&str]) -> Self {
        let mut server = Self::prepare(options);
        server.resume();
        server
    }

    /// Makes a data directory for a server that is [started](SqlServer::try_resume) later.
    ///
    /// # Panics
    /// When the data directory cannot be made.
    pub fn prepare(options: &[&str]) -> Self {
        Self::prepare_in(SqlServer::directory_for("mariadb"), options)
    }

    /// Starts a server with this certificate and its key, both as PEM, for clients that speak TLS and no others.
    ///
    /// # Panics
    /// As [`MariaDb::start`].
    pub fn start_encrypted(certificate: &str, key: &str) -> Self {
        let directory = SqlServer::directory_for("mariadb");
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("the directory is writable");
            path.display().to_string()
        };
        let certificate = format!("--ssl-cert={}", file("server.crt", certificate));
        let key = format!("--ssl-key={}", file("server.key", key));
        let mut server = Self::prepare_in(directory, &[&certificate, &key, "--require-secure-transport=ON"]);
        server.resume();
        server
    }

    fn prepare_in(directory: TempDir, options: &[&str]) -> Self {
        let made = as_account(&found("mariadb-install-db"))
            .args(["--no-defaults", "--auth-root-authentication-method=normal"])
            .args(["--skip-test-db", "--skip-name-resolve"])
            .arg(format!("--datadir={}", directory.path().join("data").display()))
            // Servers that start at a time would mix up their temporary tables in a common one.
            .arg(format!("--tmpdir={}", directory.path().display()))
            .output()
            .expect("mariadb-install-db starts");
        assert!(
            made.status.success(),
            "mariadb-install-db: {}{}",
            String::from_utf8_lossy(&made.stdout),
            String::from_utf8_lossy(&made.stderr)
        );
        let server = found("mariadbd").display().to_string();
        Self(SqlServer::prepare(
            directory,
            vec![server, "--no-defaults".to_owned()],
            options,
        ))
    }
}

fn found(name: &str) -> PathBuf {
    program(name).expect("the caller has asked whether it is installed")
}

impl Deref for MariaDb {
    type Target = SqlServer;

    fn deref(&self) -> &SqlServer {
        &self.0
    }
}

impl DerefMut for MariaDb {
    fn deref_mut(&mut self) -> &mut SqlServer {
        &mut self.0
    }
}

impl From<MariaDb> for SqlServer {
    fn from(server: MariaDb) -> Self {
        server.0
    }
}
