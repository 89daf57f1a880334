//! The configuration file: the reference's stanzas `metadataStorage`, `mysql` and
//! `ingester`, and `sqlite` beside them. Reads and explains; starts nothing and ends nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use kindex_model::kind::Registry;
use kindex_store::{Address, MySqlFields, PoolConfig, SqliteLocation, Tls, TlsMode};
use serde_saphyr::Spanned;

mod credentials;

mod duration;

mod tree;

mod read;
#[cfg(test)]
mod tests;

pub use credentials::CredentialError;
pub use read::FileError;
use read::{Reader, Stanza};
use tree::Node;

/// A configuration as it was written, with defaults for what was not.
#[derive(Clone, Default)]
pub struct Config {
    /// `metadataStorage`.
    pub metadata_storage: MetadataStorageConfig,
    /// `mysql`; absent or empty: no such database.
    pub mysql: MySqlConfig,
    /// `sqlite.path`.
    pub sqlite: Option<PathBuf>,
    /// `ingester`.
    pub ingester: IngesterConfig,
}

/// `metadataStorage`.
#[derive(Clone, Debug, Default)]
pub struct MetadataStorageConfig {
    /// The first condition for the ingester.
    pub enable_metadata_storage: bool,
    /// How long a soft delete waits after the deletion was asked for.
    pub deletion_delay: Duration,
    /// Whether the versions of all rows are kept in memory.
    pub enable_resource_version_cache: bool,
}

/// `mysql`.
#[derive(Clone, Default)]
pub struct MySqlConfig {
    /// Enables the stanza where no other key does.
    pub enabled: bool,
    /// Where and as whom.
    pub fields: MySqlFields,
    /// `userFile`: holds the user.
    pub user_file: Option<PathBuf>,
    /// `passwordFile`: holds the password.
    pub password_file: Option<PathBuf>,
    /// `maxOpenConns`, `maxIdleConns` and `connMaxLifetime`.
    pub pool: PoolConfig,
}

/// `ingester`.
#[derive(Clone, Debug)]
pub struct IngesterConfig {
    /// Parallel batch writers of a kind.
    pub concurrent_reconciles: u32,
    /// The same for single kinds.
    pub concurrent_reconciles_map: BTreeMap<&'static str, u32>,
    /// Cap of the backoff.
    pub requeue_period: Duration,
    /// The same for single kinds.
    pub requeue_period_map: BTreeMap<&'static str, Duration>,
    /// How long a stream is trusted before SQL is compared with the whole list; zero: for ever.
    pub compare_period: Duration,
    /// The same for single kinds.
    pub compare_period_map: BTreeMap<&'static str, Duration>,
    /// How long our finalizer stays on an object that is being deleted while others hold it.
    pub finalizer_wait: Duration,
    /// Whether objects that lack our finalizer are given it; `None`: as the command decides.
    pub adopt_finalizers: Option<bool>,
    /// Live rows without an object that a comparison may always close.
    pub max_orphans: u32,
    /// The same for single kinds.
    pub max_orphans_map: BTreeMap<&'static str, u32>,
    /// Share of the live rows, in percent, that it may close as well.
    pub max_orphan_percent: u32,
    /// The same for single kinds.
    pub max_orphan_percent_map: BTreeMap<&'static str, u32>,
}

/// What the ingester does by itself: it is not asked, so that commands are built without it.
impl Default for IngesterConfig {
    fn default() -> Self {
        Self {
            concurrent_reconciles: 1,
            concurrent_reconciles_map: BTreeMap::new(),
            requeue_period: Duration::from_secs(30),
            requeue_period_map: BTreeMap::new(),
            compare_period: Duration::from_secs(24 * 3_600),
            compare_period_map: BTreeMap::new(),
            finalizer_wait: Duration::from_secs(600),
            adopt_finalizers: None,
            max_orphans: 100,
            max_orphans_map: BTreeMap::new(),
            max_orphan_percent: 50,
            max_orphan_percent_map: BTreeMap::new(),
        }
    }
}

/// What follows from the two conditions for the ingester.
#[derive(Clone, Debug)]
pub enum MetadataStorageChoice {
    /// The ingester stays off; everything else runs.
    Off {
        /// For the log and for readiness.
        reason: String,
    },
    /// It writes here.
    On {
        /// The database.
        address: Address,
        /// How its connections are used.
        pool: PoolConfig,
    },
}

/// Everything that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// In the order of the file.
    pub errors: Vec<FileError>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl Config {
    /// Reads a file's text. Kinds are named as the registry names them, in any case.
    ///
    /// # Errors
    /// Every error with its line and column, and what was probably meant.
    pub fn parse(source: &str, registry: &Registry) -> Result<Self, ConfigError> {
        let mut reader = Reader {
            source,
            errors: Vec::new(),
        };
        let config = match serde_saphyr::from_str::<Spanned<Node>>(source) {
            Ok(root) => read_config(&mut reader, root, registry),
            Err(error) => {
                reader.yaml_error(&error);
                Self::default()
            }
        };
        let mut errors = reader.errors;
        errors.sort_by_key(FileError::position);
        if errors.is_empty() {
            Ok(config)
        } else {
            Err(ConfigError { errors })
        }
    }

    /// Where the ingester writes, or which of its two conditions does not hold.
    pub fn metadata_storage_choice(&self) -> MetadataStorageChoice {
        let off = |reason: &str| MetadataStorageChoice::Off {
            reason: reason.to_owned(),
        };
        if !self.metadata_storage.enable_metadata_storage {
            return off("metadataStorage.enableMetadataStorage is not true");
        }
        let pool = self.mysql.pool.clone();
        if self.mysql.is_enabled() {
            let address = Address::mysql(&self.mysql.fields);
            return MetadataStorageChoice::On { address, pool };
        }
        match &self.sqlite {
            Some(path) => MetadataStorageChoice::On {
                address: Address::Sqlite(SqliteLocation::File(path.clone())),
                pool,
            },
            None => off("metadata storage is enabled but no database is configured: \
                set mysql.host, mysql.user, mysql.database or mysql.enabled, or sqlite.path"),
        }
    }
}

impl MySqlConfig {
    /// The second condition, as in the reference: the flag, or any of host, user and database.
    pub fn is_enabled(&self) -> bool {
        let MySqlFields {
            host, user, database, ..
        } = &self.fields;
        self.enabled || self.user_file.is_some() || [host, user, database].iter().any(|text| !text.is_empty())
    }
}

fn read_config(reader: &mut Reader<'_>, root: Spanned<Node>, registry: &Registry) -> Config {
    let mut root = reader.stanza("", root);
    let mut config = Config::default();
    if let Some(node) = root.take("metadataStorage") {
        let stanza = reader.stanza("metadataStorage", node);
        config.metadata_storage = read_metadata_storage(reader, stanza);
    }
    if let Some(node) = root.take("mysql") {
        let stanza = reader.stanza("mysql", node);
        config.mysql = read_mysql(reader, stanza);
    }
    if let Some(node) = root.take("sqlite") {
        let at = tree::position(&node);
        let mut stanza = reader.stanza("sqlite", node);
        config.sqlite = reader.text(&mut stanza, "path").map(PathBuf::from);
        reader.finish(stanza);
        if config.sqlite.is_some() && config.mysql.is_enabled() {
            let message = "mysql and sqlite are both configured";
            reader.error(at, message, Some("keep one of the two".to_owned()));
        }
    }
    if let Some(node) = root.take("ingester") {
        let stanza = reader.stanza("ingester", node);
        config.ingester = read_ingester(reader, stanza, registry);
    }
    reader.finish(root);
    config
}

fn read_metadata_storage(reader: &mut Reader<'_>, mut stanza: Stanza) -> MetadataStorageConfig {
    let config = MetadataStorageConfig {
        enable_metadata_storage: reader.flag(&mut stanza, "enableMetadataStorage").unwrap_or_default(),
        deletion_delay: reader.duration(&mut stanza, "deletionDelay").unwrap_or_default(),
        enable_resource_version_cache: reader
            .flag(&mut stanza, "enableResourceVersionCache")
            .unwrap_or_default(),
    };
    reader.finish(stanza);
    config
}

fn read_mysql(reader: &mut Reader<'_>, mut stanza: Stanza) -> MySqlConfig {
    let stanza = &mut stanza;
    reader.one_of(stanza, "user", "userFile");
    reader.one_of(stanza, "password", "passwordFile");
    let pool = PoolConfig::default();
    let port = reader.number(stanza, "port", 1, u16::MAX.into());
    let tls = read_tls(reader, stanza);
    let config = MySqlConfig {
        enabled: reader.flag(stanza, "enabled").unwrap_or_default(),
        fields: MySqlFields {
            host: reader.text(stanza, "host").unwrap_or_default(),
            port: port.and_then(|port| port.try_into().ok()).unwrap_or_default(),
            user: reader.text(stanza, "user").unwrap_or_default(),
            password: reader.text(stanza, "password").unwrap_or_default(),
            database: reader.text(stanza, "database").unwrap_or_default(),
            tls,
        },
        user_file: reader.text(stanza, "userFile").map(PathBuf::from),
        password_file: reader.text(stanza, "passwordFile").map(PathBuf::from),
        pool: PoolConfig {
            max_open: reader
                .number(stanza, "maxOpenConns", 1, 10_000)
                .unwrap_or(pool.max_open),
            max_idle: reader
                .number(stanza, "maxIdleConns", 0, 10_000)
                .unwrap_or(pool.max_idle),
            max_lifetime: reader.duration(stanza, "connMaxLifetime").unwrap_or(pool.max_lifetime),
            ..pool
        },
    };
    reader.finish(std::mem::take(stanza));
    config
}

fn read_tls(reader: &mut Reader<'_>, stanza: &mut Stanza) -> Tls {
    const MODES: [(&str, TlsMode); 5] = [
        ("disabled", TlsMode::Disabled),
        ("preferred", TlsMode::Preferred),
        ("required", TlsMode::Required),
        ("verify-ca", TlsMode::VerifyCa),
        ("verify-identity", TlsMode::VerifyIdentity),
    ];
    let has = |key: &str| stanza.has(key);
    let (has_cert, has_key) = (has("tlsCertFile"), has("tlsKeyFile"));
    let mode = reader.choice(stanza, "tlsMode", &MODES).unwrap_or_default();
    if !matches!(mode, TlsMode::VerifyCa | TlsMode::VerifyIdentity) {
        let help = "set tlsMode to verify-ca or verify-identity";
        reader.needless(stanza, "tlsCaFile", "is given, and nothing is compared with it", help);
    }
    if has_cert != has_key {
        let help = "give tlsCertFile and tlsKeyFile, or neither";
        reader.needless(stanza, "tlsCertFile", "is given without its key", help);
        reader.needless(stanza, "tlsKeyFile", "is given without its certificate", help);
    }
    let mut file = |key| reader.text(stanza, key).map(PathBuf::from);
    Tls {
        mode,
        ca: file("tlsCaFile"),
        cert: file("tlsCertFile"),
        key: file("tlsKeyFile"),
    }
}

fn read_ingester(reader: &mut Reader<'_>, mut stanza: Stanza, registry: &Registry) -> IngesterConfig {
    const WORKERS_MAX: u32 = 256;
    let stanza = &mut stanza;
    let defaults = IngesterConfig::default();
    let config = IngesterConfig {
        concurrent_reconciles: reader
            .number(stanza, "concurrentReconciles", 1, WORKERS_MAX)
            .unwrap_or(defaults.concurrent_reconciles),
        concurrent_reconciles_map: reader.by_kind(stanza, "concurrentReconcilesMap", registry, |reader, value| {
            reader.number_of("concurrentReconcilesMap", value, 1, WORKERS_MAX)
        }),
        requeue_period: reader
            .duration(stanza, "requeuePeriod")
            .unwrap_or(defaults.requeue_period),
        requeue_period_map: reader.by_kind(stanza, "requeuePeriodMap", registry, |reader, value| {
            reader.duration_of("requeuePeriodMap", value)
        }),
        compare_period: reader
            .duration(stanza, "comparePeriod")
            .unwrap_or(defaults.compare_period),
        compare_period_map: reader.by_kind(stanza, "comparePeriodMap", registry, |reader, value| {
            reader.duration_of("comparePeriodMap", value)
        }),
        finalizer_wait: reader
            .duration(stanza, "finalizerWait")
            .unwrap_or(defaults.finalizer_wait),
        adopt_finalizers: reader.flag(stanza, "adoptFinalizers"),
        max_orphans: reader
            .number(stanza, "maxOrphans", 0, u32::MAX)
            .unwrap_or(defaults.max_orphans),
        max_orphans_map: reader.by_kind(stanza, "maxOrphansMap", registry, |reader, value| {
            reader.number_of("maxOrphansMap", value, 0, u32::MAX)
        }),
        max_orphan_percent: reader
            .number(stanza, "maxOrphanPercent", 0, 100)
            .unwrap_or(defaults.max_orphan_percent),
        max_orphan_percent_map: reader.by_kind(stanza, "maxOrphanPercentMap", registry, |reader, value| {
            reader.number_of("maxOrphanPercentMap", value, 0, 100)
        }),
    };
    reader.finish(std::mem::take(stanza));
    config
}
