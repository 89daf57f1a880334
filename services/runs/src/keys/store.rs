//! Keys in a SQLite file of their own: who makes or revokes one while the service runs never holds the lock under which
//! points are written.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};
use tokio::sync::Mutex;

use super::key::{Key, NewKey};
use super::scope::Scopes;
use crate::domain::ProjectName;

/// How long another process may write.
const BUSY: Duration = Duration::from_secs(5);

const CREATE: &str = "CREATE TABLE IF NOT EXISTS api_key (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    user TEXT NOT NULL,
    project TEXT,
    scopes INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID";

/// Why keys cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the keys in {path}: {source}")]
pub struct KeyStoreError {
    /// The file.
    path: PathBuf,
    /// As the engine says it.
    #[source]
    source: sqlx::Error,
}

/// The file of the keys.
#[derive(Debug)]
pub struct KeyStore {
    path: PathBuf,
    connection: Mutex<SqliteConnection>,
}

impl KeyStore {
    /// Opens the file, and makes it where it is absent.
    ///
    /// # Errors
    /// A file that is none of SQLite's, or that may not be read and written.
    pub async fn open(path: &Path) -> Result<Self, KeyStoreError> {
        let failed = |source| KeyStoreError {
            path: path.to_owned(),
            source,
        };
        // Made before the engine makes it, which leaves it open to others.
        let made = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path);
        made.map_err(|error| failed(sqlx::Error::Io(error)))?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .busy_timeout(BUSY)
            .disable_statement_logging();
        let mut connection = SqliteConnection::connect_with(&options).await.map_err(failed)?;
        sqlx::query(CREATE).execute(&mut connection).await.map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            connection: Mutex::new(connection),
        })
    }

    /// All keys, the oldest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn all(&self) -> Result<Vec<Key>, KeyStoreError> {
        let mut connection = self.connection.lock().await;
        let rows = sqlx::query("SELECT * FROM api_key ORDER BY created_at, id");
        let rows = rows.fetch_all(&mut *connection).await;
        let keys = rows.and_then(|rows| rows.iter().map(read).collect());
        keys.map_err(|source| self.failed(source))
    }

    /// Stores a new key.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn insert(&self, key: &Key) -> Result<(), KeyStoreError> {
        let mut connection = self.connection.lock().await;
        let inserted = sqlx::query(
            "INSERT INTO api_key (id, hash, user, project, scopes, created_at, expires_at) \
             VALUES (?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(&key.id)
        .bind(&key.hash[..])
        .bind(&key.of.user)
        .bind(key.of.project.as_ref().map(ProjectName::as_str))
        .bind(key.of.scopes.number())
        .bind(key.created_at)
        .bind(key.of.expires_at)
        .execute(&mut *connection)
        .await;
        inserted.map(|_| ()).map_err(|source| self.failed(source))
    }

    /// Revokes a key; whether there was one that was not revoked.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn revoke(&self, id: &str, now: i64) -> Result<bool, KeyStoreError> {
        let mut connection = self.connection.lock().await;
        let revoked = sqlx::query("UPDATE api_key SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL")
            .bind(now)
            .bind(id)
            .execute(&mut *connection)
            .await;
        revoked
            .map(|done| done.rows_affected() > 0)
            .map_err(|source| self.failed(source))
    }

    /// A number that changes when another connection has written.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn version(&self) -> Result<i64, KeyStoreError> {
        let mut connection = self.connection.lock().await;
        let version = sqlx::query_scalar("PRAGMA data_version")
            .fetch_one(&mut *connection)
            .await;
        version.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: sqlx::Error) -> KeyStoreError {
        KeyStoreError {
            path: self.path.clone(),
            source,
        }
    }
}

fn read(row: &SqliteRow) -> Result<Key, sqlx::Error> {
    let hash: Vec<u8> = row.try_get("hash")?;
    let hash = hash
        .try_into()
        .map_err(|_| sqlx::Error::Decode("a hash has 32 bytes".into()))?;
    let project: Option<String> = row.try_get("project")?;
    Ok(Key {
        id: row.try_get("id")?,
        hash,
        of: NewKey {
            user: row.try_get("user")?,
            project: project.map(ProjectName::new),
            scopes: Scopes::of_number(row.try_get("scopes")?),
            expires_at: row.try_get("expires_at")?,
        },
        created_at: row.try_get("created_at")?,
        revoked_at: row.try_get("revoked_at")?,
    })
}
