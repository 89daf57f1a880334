//! The addresses of MySQL and MariaDB: a URL, or the fields of the configuration. Never puts a password into a text.

use std::path::PathBuf;

use sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};

use crate::error::StoreError;

/// What an address looks like.
pub(crate) const FORM: &str = "mysql://user@host:3306/database";

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

/// Reads `mysql://user:password@host:port/database?…`, where special characters are percent-encoded and the options are
/// `ssl-mode`, `ssl-ca`, `ssl-cert`, `ssl-key` and `socket`. `None` where the address is another engine's.
pub(crate) fn parse(text: &str) -> Option<Result<MySqlConnectOptions, StoreError>> {
    if !(text.starts_with("mysql://") || text.starts_with("mariadb://")) {
        return None;
    }
    let options = text.parse::<MySqlConnectOptions>();
    let options = options.map_err(|error| StoreError::Address(error.to_string()));
    Some(refuse_unknown_options(text).and(options))
}

/// The driver passes over options it does not know; a misspelled `ssl-mode` must not go unnoticed.
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

/// Of a server that the configuration describes field by field.
pub(crate) fn options(fields: &MySqlFields) -> MySqlConnectOptions {
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
    options
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
pub(crate) fn shown(options: &MySqlConnectOptions) -> String {
    format!(
        "mysql://{}@{}:{}/{}",
        options.get_username(),
        options.get_host(),
        options.get_port(),
        options.get_database().unwrap_or_default()
    )
}
