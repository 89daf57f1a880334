//! A prepared store over a fresh database, and a second way into that database by which
//! tests look at rows as any SQL client would.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kindex_harness::require::passed_over;
use kindex_harness::wait::WAIT_MAX;
use kindex_model::kind::Registry;
use kindex_model::object::Uid;
use kindex_query::Life;
use kindex_store::{
    Address, MetadataStorage, PoolConfig, Retry, RowState, RowWrite, SqliteLocation, StoreError, Written,
};
use kindex_tests::databases::mariadb::Flavor;
use kindex_tests::databases::{Database, Engine, engines, patient, sqlite};
use sqlx::mysql::MySqlConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Column as _, ConnectOptions as _, Connection as _, Row as _};
use tempfile::TempDir;

use super::widget::{REGISTRY, WIDGET};

/// Between two looks at a node of a cluster.
pub(crate) const PERIOD: Duration = Duration::from_millis(5);

pub(crate) struct Backend {
    pub(crate) store: Arc<dyn MetadataStorage>,
    pub(crate) address: Address,
    /// Whether it is a node of a cluster, on whose other nodes others write.
    pub(crate) is_node: bool,
    /// The test's database, where it is a server's.
    _database: Option<Database>,
    _directory: Option<TempDir>,
}

impl Backend {
    pub(crate) async fn memory() -> Self {
        Self::opened(sqlite::memory(), None, None, REGISTRY, &patient()).await
    }

    pub(crate) async fn file() -> Self {
        Self::on(Engine::sqlite()).await
    }

    /// `None` where MariaDB is absent and not required.
    pub(crate) async fn mariadb(flavor: Flavor) -> Option<Self> {
        Some(Self::on(Engine::mariadb(flavor)?).await)
    }

    /// `None` where MySQL is absent and not required.
    pub(crate) async fn mysql() -> Option<Self> {
        Some(Self::on(Engine::mysql()?).await)
    }

    /// With its name, one on each engine that others can open too, MariaDB in each of these flavors, but for those that
    /// are absent and not required.
    pub(crate) async fn each(flavors: &[Flavor]) -> Vec<(&'static str, Self)> {
        let mut backends = Vec::new();
        for engine in engines(flavors) {
            backends.push((engine.name, Self::on(engine).await));
        }
        backends
    }

    /// On a node of a cluster that runs as long as the test.
    pub(crate) async fn node(address: Address, registry: Registry) -> Self {
        let store = kindex_store::open(&address, registry, &patient());
        Self {
            store: store.expect("the address names a database"),
            address,
            is_node: true,
            _database: None,
            _directory: None,
        }
        .ready()
        .await
    }

    async fn on(engine: Engine) -> Self {
        let Engine {
            address,
            database,
            directory,
            ..
        } = engine;
        Self::opened(address, database, directory, REGISTRY, &patient()).await
    }

    /// The same database, whose pages have so much text at most. One in memory begins anew.
    pub(crate) async fn with_page_bytes(self, page_bytes: usize) -> Self {
        let config = PoolConfig {
            page_bytes,
            ..patient()
        };
        Self::opened(self.address, self._database, self._directory, REGISTRY, &config).await
    }

    /// The same database as another program has it. One in memory begins anew.
    pub(crate) async fn with_registry(self, registry: Registry) -> Self {
        Self::opened(self.address, self._database, self._directory, registry, &patient()).await
    }

    async fn opened(
        address: Address,
        database: Option<Database>,
        directory: Option<TempDir>,
        registry: Registry,
        config: &PoolConfig,
    ) -> Self {
        let store = kindex_store::open(&address, registry, config);
        Self {
            store: store.expect("the address names a database"),
            address,
            is_node: false,
            _database: database,
            _directory: directory,
        }
        .ready()
        .await
    }

    async fn ready(self) -> Self {
        let prepared = self.answer(async || self.store.prepare().await).await;
        prepared.expect("an empty database is prepared");
        self
    }

    /// What a call answers. A node of a cluster may be behind the others for a moment, and lose against them for long:
    /// there the call is repeated.
    pub(crate) async fn answer<T>(&self, call: impl AsyncFn() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            match call().await {
                Err(error) if self.is_repeated(&error, deadline) => tokio::time::sleep(PERIOD).await,
                answer => return answer,
            }
        }
    }

    fn is_repeated(&self, error: &StoreError, deadline: Instant) -> bool {
        self.is_node && error.retry() != Retry::Never && Instant::now() < deadline
    }

    /// Fails unless this is what is seen. On a node it may come to be so later.
    pub(crate) async fn expect<T: Debug + PartialEq>(&self, what: &str, wanted: &T, look: impl AsyncFn() -> T) {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            let seen = look().await;
            if seen == *wanted {
                return;
            }
            let is_early = self.is_node && Instant::now() < deadline;
            assert!(is_early, "{what}: {seen:?}, wanted {wanted:?}");
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Writes one change and says what became of it.
    pub(crate) async fn write(&self, write: RowWrite, now: Timestamp) -> Written {
        self.write_all(&[write], now).await[0]
    }

    pub(crate) async fn write_all(&self, writes: &[RowWrite], now: Timestamp) -> Vec<Written> {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            match self.store.write(&WIDGET, writes, now).await {
                Err(error) if self.is_repeated(&error, deadline) => tokio::time::sleep(PERIOD).await,
                written => return written.expect("the write is taken"),
            }
        }
    }

    pub(crate) async fn state(&self, uid: &str) -> Option<RowState> {
        let uids = [Uid::from(uid)];
        let states = self.answer(async || self.store.row_states(&WIDGET, &uids).await).await;
        states.expect("states are read").pop()
    }

    pub(crate) async fn life(&self, uid: &str) -> Option<Life> {
        self.state(uid).await.map(|state| state.life)
    }

    /// Makes the database refuse every row of this name; false where nobody else can open it.
    pub(crate) async fn poison(&self, name: &str) -> bool {
        let sql = match &self.address {
            Address::Sqlite(_) => format!(
                "CREATE TRIGGER poison BEFORE INSERT ON widget WHEN NEW.name = '{name}' \
                 BEGIN SELECT RAISE(ABORT, 'poisonous'); END"
            ),
            Address::MySql(_) => {
                format!("ALTER TABLE `widget` ADD CONSTRAINT `poison` CHECK (`name` <> '{name}')")
            }
        };
        self.rows(&sql).await.is_some()
    }

    /// Ends what [`poison`](Self::poison) began.
    pub(crate) async fn antidote(&self) {
        let sql = match &self.address {
            Address::Sqlite(_) => "DROP TRIGGER poison",
            Address::MySql(_) => "ALTER TABLE `widget` DROP CONSTRAINT `poison`",
        };
        self.rows(sql).await;
    }

    /// Runs a query beside the store; `None` for a database in memory, which no one else can open.
    pub(crate) async fn rows(&self, sql: &str) -> Option<Vec<Vec<Option<String>>>> {
        rows(&self.address, sql).await
    }
}

/// What tests ask of an engine. Each answer names all addresses, so that the compiler asks it of a new engine.
impl Backend {
    /// Whether others than the store can open the database. One in memory has one connection, and ends with it.
    pub(crate) fn can_be_reopened(&self) -> bool {
        match &self.address {
            Address::Sqlite(SqliteLocation::Memory) => false,
            Address::Sqlite(SqliteLocation::File(_)) | Address::MySql(_) => true,
        }
    }

    /// Whether a call may be through without having waited, as the thread of a SQLite connection may answer at once.
    pub(crate) fn may_answer_at_once(&self) -> bool {
        match &self.address {
            Address::Sqlite(_) => true,
            Address::MySql(_) => false,
        }
    }

    /// Whether writers of different rows write at the same time. SQLite has one writer.
    pub(crate) fn locks_rows(&self) -> bool {
        match &self.address {
            Address::Sqlite(_) => false,
            Address::MySql(_) => true,
        }
    }

    /// The server, on which others have transactions beside those of the store; `None` for an engine in this process.
    pub(crate) fn server(&self) -> Option<&MySqlConnectOptions> {
        match &self.address {
            Address::Sqlite(_) => None,
            Address::MySql(options) => Some(options),
        }
    }

    /// Asks whether nobody migrates; `None` where the lock of a migration is no more than its transaction.
    pub(crate) fn asks_for_free_migration_lock(&self) -> Option<&'static str> {
        match &self.address {
            Address::Sqlite(_) => None,
            Address::MySql(_) => Some("SELECT IS_FREE_LOCK(SHA2(CONCAT('kindex migrate ', DATABASE()), 224))"),
        }
    }

    /// Whether the tables of the first release had another check on texts than those of today.
    pub(crate) fn had_another_check(&self) -> bool {
        match &self.address {
            Address::Sqlite(_) => false,
            Address::MySql(_) => true,
        }
    }

    /// The text of a payload of the history, for SQL; `None` where the engine cannot unpack it.
    pub(crate) fn unpacked_payload(&self) -> Option<&'static str> {
        match &self.address {
            Address::Sqlite(_) => None,
            Address::MySql(_) => Some("CONVERT(UNCOMPRESS(payload) USING utf8mb4)"),
        }
    }

    /// Whether a column refuses texts that are longer than it says.
    pub(crate) fn limits_lengths(&self) -> bool {
        match &self.address {
            Address::Sqlite(_) => false,
            Address::MySql(_) => true,
        }
    }

    /// Whether the column of versions takes numbers beyond 64 signed bits, with which Kubernetes' versions end.
    pub(crate) fn has_unsigned_versions(&self) -> bool {
        match &self.address {
            Address::Sqlite(_) => false,
            Address::MySql(_) => true,
        }
    }

    /// The type of bytes that a text is cast to.
    pub(crate) fn bytes_type(&self) -> &'static str {
        match &self.address {
            Address::Sqlite(_) => "BLOB",
            Address::MySql(_) => "BINARY",
        }
    }

    /// With what a time ends, as others read it.
    pub(crate) fn end_of_times(&self) -> &'static str {
        match &self.address {
            Address::Sqlite(_) => "Z",
            Address::MySql(_) => "",
        }
    }
}

/// Runs a query beside any store; `None` for a database in memory, which no one else can open.
pub(crate) async fn rows(address: &Address, sql: &str) -> Option<Vec<Vec<Option<String>>>> {
    match address {
        Address::Sqlite(SqliteLocation::Memory) => {
            passed_over("in part: a database in memory can be opened by nobody but its store");
            None
        }
        Address::Sqlite(SqliteLocation::File(path)) => {
            Some(sqlite_rows(SqliteConnectOptions::new().filename(path), sql).await)
        }
        Address::MySql(options) => Some(mysql_rows(options, sql).await),
    }
}

async fn sqlite_rows(options: SqliteConnectOptions, sql: &str) -> Vec<Vec<Option<String>>> {
    let mut connection = options.connect().await.expect("the file opens");
    let rows = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut connection).await;
    let rows = rows.expect(sql);
    connection.close().await.expect("the file closes");
    let text = |row: &sqlx::sqlite::SqliteRow, index| row.try_get_unchecked::<Option<String>, _>(index).expect("text");
    rows.iter()
        .map(|row| row.columns().iter().map(|column| text(row, column.ordinal())).collect())
        .collect()
}

pub(crate) async fn mysql_rows(options: &MySqlConnectOptions, sql: &str) -> Vec<Vec<Option<String>>> {
    let mut connection = options.connect().await.expect("the server is up");
    let rows = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut connection).await;
    let rows = rows.expect(sql);
    connection.close().await.expect("the connection closes");
    let text = |row: &sqlx::mysql::MySqlRow, index| row.try_get_unchecked::<Option<String>, _>(index).expect("text");
    rows.iter()
        .map(|row| row.columns().iter().map(|column| text(row, column.ordinal())).collect())
        .collect()
}
