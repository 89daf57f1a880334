//! A connection beside the store, for tests that keep a transaction open or see what the database refuses. Who only
//! reads rows asks the backend for them.

use kindex_harness::require::passed_over;
use kindex_store::{Address, SqliteLocation};
use sqlx::mysql::MySqlConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, MySql, Sqlite};

use super::backend::Backend;

pub(crate) enum SecondConnection {
    Sqlite(SqliteConnection),
    MySql(MySqlConnection),
}

impl SecondConnection {
    /// `None` for a database in memory, which no one else can open.
    pub(crate) async fn open(backend: &Backend) -> Option<Self> {
        match &backend.address {
            Address::Sqlite(SqliteLocation::Memory) => {
                passed_over("in part: a database in memory can be opened by nobody but its store");
                None
            }
            Address::Sqlite(SqliteLocation::File(path)) => {
                let options = SqliteConnectOptions::new().filename(path);
                Some(Self::Sqlite(options.connect().await.expect("the file opens")))
            }
            Address::MySql(options) => Some(Self::MySql(options.connect().await.expect("the server is up"))),
        }
    }

    /// Begins a transaction that others wait for from its first write on, at the latest.
    pub(crate) async fn begin(&mut self) {
        let begin = match self {
            Self::Sqlite(_) => "BEGIN IMMEDIATE",
            Self::MySql(_) => "START TRANSACTION",
        };
        self.execute(begin).await;
    }

    pub(crate) async fn execute(&mut self, sql: &'static str) {
        match self {
            Self::Sqlite(connection) => drop(connection.execute(sql).await.expect(sql)),
            Self::MySql(connection) => drop(connection.execute(sql).await.expect(sql)),
        }
    }

    /// A change with these texts as its parameters, which the database may refuse.
    pub(crate) async fn change(&mut self, sql: &str, texts: &[&str]) -> Result<(), sqlx::Error> {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::Sqlite(connection) => {
                let query = sqlx::query::<Sqlite>(sql);
                let query = texts.iter().fold(query, |query, text| query.bind(*text));
                query.execute(connection).await.map(drop)
            }
            Self::MySql(connection) => {
                let query = sqlx::query::<MySql>(sql);
                let query = texts.iter().fold(query, |query, text| query.bind(*text));
                query.execute(connection).await.map(drop)
            }
        }
    }

    pub(crate) async fn close(self) {
        match self {
            Self::Sqlite(connection) => connection.close().await.expect("closed"),
            Self::MySql(connection) => connection.close().await.expect("closed"),
        }
    }
}
