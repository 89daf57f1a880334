//! Where the database is and how many connections it may have. Turns addresses
//! and config fields into typed options; never puts a password into a text.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};

use crate::error::StoreError;

/// The database of a store.
#[derive(Clone)]
pub enum Address {
    /// An embedded database.
    Sqlite(SqliteLocation),
    /// A MySQL or MariaDB server.
    MySql(Box<MySqlConnectOptions>),
}

/// Where an embedded database keeps its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqliteLocation {
    /// In this process; gone when the store is closed.
    Memory,
    /// In a file, created when missing; its directory must exist.
    File(PathBuf),
}

/// A MySQL or MariaDB server in the words of the `mysql` section of the configuration.
#[derive(Clone, Default)]
pub struct MySqlFields {
    /// Host name or address; empty: `localhost`.
    pub host: String,
    /// Port; 0: 3306.
    pub port: u16,
    /// User name; empty: `root`.
    pub user: String,
    /// Password, with any characters.
    pub password: String,
    /// Database name; empty: `michelangelo`, as all examples have it.
    pub database: String,
    /// Encryption.
    pub tls: Tls,
}

/// Encryption of a connection.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// How much is asked of the server.
    pub mode: TlsMode,
    /// Certificate authority, as a PEM file; absent: the web's.
    pub ca: Option<PathBuf>,
    /// Client certificate, as a PEM file.
    pub cert: Option<PathBuf>,
    /// Its key, as a PEM file.
    pub key: Option<PathBuf>,
}

/// What is asked of the server, as in MySQL's `--ssl-mode`.
/// <https://dev.mysql.com/doc/refman/8.4/en/connection-options.html#option_general_ssl-mode>
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsMode {
    /// Never encrypt.
    Disabled,
    /// Encrypt where the server can.
    #[default]
    Preferred,
    /// Encrypt or fail; believe any certificate.
    Required,
    /// The certificate is signed by the authority.
    VerifyCa,
    /// And names the host.
    VerifyIdentity,
}

/// How a store uses connections. The first three are the reference's pool keys and defaults.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// `maxOpenConns`, at least 1. A SQLite file has one writer beside its readers; one in memory has one connection.
    pub max_open: u32,
    /// `maxIdleConns`: connections kept open while nobody uses them.
    pub max_idle: u32,
    /// `connMaxLifetime`; zero: no limit.
    pub max_lifetime: Duration,
    /// How long a call waits for a connection, a connect included.
    pub acquire_timeout: Duration,
    /// How long a call may take once it has a connection: a server that hangs is an error. After a sixth of it the
    /// database is said not to answer.
    pub call_timeout: Duration,
    /// How much text the objects of one page may have together. A page has one object at least, and says where the next
    /// one goes on: five hundred of the largest are more than a server has.
    pub page_bytes: usize,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            max_open: 25,
            max_idle: 5,
            max_lifetime: Duration::from_secs(300),
            acquire_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_secs(60),
            page_bytes: 16 * 1024 * 1024,
        }
    }
}

impl PoolConfig {
    /// How long a call may go unanswered until the database is said not to answer.
    pub(super) fn late_after(call_timeout: Duration) -> Duration {
        call_timeout / 6
    }

    /// How long a statement waits for a lock: short enough that the database, which knows why,
    /// reports it before the call's time is over.
    pub(super) fn lock_wait(&self) -> Duration {
        self.call_timeout / 4
    }
}

impl Address {
    /// The word of its dialect, by which its text begins.
    pub const fn dialect(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::MySql(_) => "mysql",
        }
    }

    /// The file that holds the database; `None` where no file is to be there before.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(SqliteLocation::File(path)) => Some(path),
            Self::Sqlite(SqliteLocation::Memory) | Self::MySql(_) => None,
        }
    }

    /// The address of a server that the configuration describes field by field.
    pub fn mysql(fields: &MySqlFields) -> Self {
        let or = |text: &str, default: &str| {
            let chosen = if text.is_empty() { default } else { text };
            chosen.to_owned()
        };
        let mut options = MySqlConnectOptions::new()
            .host(&or(&fields.host, "localhost"))
            .port(if fields.port == 0 { 3306 } else { fields.port })
            .username(&or(&fields.user, "root"))
            .database(&or(&fields.database, "michelangelo"))
            .ssl_mode(fields.tls.mode.into());
        if !fields.password.is_empty() {
            options = options.password(&fields.password);
        }
        if let Some(ca) = &fields.tls.ca {
            options = options.ssl_ca(ca);
        }
        if let Some(cert) = &fields.tls.cert {
            options = options.ssl_client_cert(cert);
        }
        if let Some(key) = &fields.tls.key {
            options = options.ssl_client_key(key);
        }
        Self::MySql(Box::new(options))
    }
}

impl FromStr for Address {
    type Err = StoreError;

    /// Reads `sqlite:PATH`, `sqlite::memory:` or `mysql://user:password@host:port/database?…`,
    /// where special characters are percent-encoded and the options are `ssl-mode`, `ssl-ca`,
    /// `ssl-cert`, `ssl-key` and `socket`.
    fn from_str(text: &str) -> Result<Self, StoreError> {
        if let Some(place) = text.strip_prefix("sqlite:") {
            return match place.strip_prefix("//").unwrap_or(place) {
                "" => Err(StoreError::Address(
                    "sqlite: names no file; write sqlite:PATH or sqlite::memory:".to_owned(),
                )),
                ":memory:" => Ok(Self::Sqlite(SqliteLocation::Memory)),
                path => Ok(Self::Sqlite(SqliteLocation::File(path.into()))),
            };
        }
        if !(text.starts_with("mysql://") || text.starts_with("mariadb://")) {
            return Err(StoreError::Address(format!(
                "{:?} is not a known kind of database; write sqlite:PATH or mysql://user@host:3306/database",
                text.split(':').next().unwrap_or_default()
            )));
        }
        refuse_unknown_options(text)?;
        MySqlConnectOptions::from_str(text)
            .map(|options| Self::MySql(Box::new(options)))
            .map_err(|error| StoreError::Address(error.to_string()))
    }
}

/// The driver passes over options it does not know; a misspelt `ssl-mode` must not go unnoticed.
fn refuse_unknown_options(url: &str) -> Result<(), StoreError> {
    let unescaped = |sign: &str, code: &str| {
        let message = format!("a {sign} in a name or a password is written {code}");
        Err(StoreError::Address(message))
    };
    if url.contains('#') {
        return unescaped("#", "%23");
    }
    const KNOWN: [&str; 5] = ["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "socket"];
    let (_, query) = url.split_once('?').unwrap_or_default();
    let unknown = query
        .split('&')
        .map(|pair| pair.split('=').next().unwrap_or_default())
        .find(|key| !key.is_empty() && !KNOWN.contains(key));
    match unknown {
        None => Ok(()),
        // Not an option, but the rest of a password: it is not repeated.
        Some(_) if query.contains('@') => unescaped("?", "%3F"),
        Some(key) => Err(StoreError::Address(format!(
            "unknown option {key:?}; known are {}",
            KNOWN.join(", ")
        ))),
    }
}

impl From<TlsMode> for MySqlSslMode {
    fn from(mode: TlsMode) -> Self {
        match mode {
            TlsMode::Disabled => Self::Disabled,
            TlsMode::Preferred => Self::Preferred,
            TlsMode::Required => Self::Required,
            TlsMode::VerifyCa => Self::VerifyCa,
            TlsMode::VerifyIdentity => Self::VerifyIdentity,
        }
    }
}

/// Without the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(SqliteLocation::Memory) => f.write_str("sqlite::memory:"),
            Self::Sqlite(SqliteLocation::File(path)) => write!(f, "sqlite:{}", path.display()),
            Self::MySql(options) => write!(
                f,
                "mysql://{}@{}:{}/{}",
                options.get_username(),
                options.get_host(),
                options.get_port(),
                options.get_database().unwrap_or_default()
            ),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form_of_address() {
        for (text, shown) in [
            ("sqlite::memory:", "sqlite::memory:"),
            ("sqlite:a/b.db", "sqlite:a/b.db"),
            ("sqlite:///var/k.db", "sqlite:/var/k.db"),
            ("mysql://u:p%40%2F@h:3307/d", "mysql://u@h:3307/d"),
            ("mysql://u@h/d?ssl-mode=REQUIRED", "mysql://u@h:3306/d"),
        ] {
            let address: Address = text.parse().expect(text);
            assert_eq!(address.to_string(), shown);
        }
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for (text, hint) in [
            ("postgres://h/d", "mysql://user@host"),
            ("sqlite:", "sqlite:PATH"),
            ("mysql://h/d?sslmod=REQUIRED", "ssl-mode"),
            ("mysql://h/d?ssl-mode=PERHAPS", "PERHAPS"),
        ] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for text in [
            "mysql://u:se?cret@h/d",
            "mysql://u:se#cret@h/d",
            "mysql://u:12#cret@h/d",
            "mysql://u:se/cret@h/d",
        ] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert!(!error.contains("cret"), "{error}");
        }
        let address = Address::mysql(&MySqlFields {
            password: "@:/?#%s3cret".to_owned(),
            database: "d".to_owned(),
            ..MySqlFields::default()
        });
        assert_eq!(format!("{address:?}"), "Address(mysql://root@localhost:3306/d)");
    }
}
