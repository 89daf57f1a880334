//! MySQL and MariaDB as a driver. Same order of methods as in `sqlite`. Knows no table and no statement.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::TryStreamExt as _;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlDatabaseError, MySqlPool, MySqlRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, MySql};

use crate::calls::Reads;
use crate::dialect::Spelling;
use crate::driver::{Cells, Driver, Fault, Limits, Param, PoolUse, Pooled, Purpose, Statement, classify_common};
use crate::error::StoreError;
use crate::explained::PlanStep;
use crate::mysql::cells::bind;
use crate::mysql::notation::MySqlSpelling;
use crate::mysql::{address, faults, plan, pool};
use crate::pool_config::PoolConfig;

/// The longest packet, whether the server is a node of a Galera cluster, and which statements wait there for commits of
/// the other nodes. Servers that can be no node lack the last two.
const VARIABLES: &str = "SHOW VARIABLES WHERE Variable_name IN ('max_allowed_packet', 'wsrep_on', 'wsrep_sync_wait')";
/// The bit of `wsrep_sync_wait` for reads.
const READS_WAIT: u32 = 1;

/// Without autocommit, what follows a rollback that nobody was told of is committed by nobody, and without the
/// savepoint it is not taken for the transaction.
const MARK: &str = "SET autocommit = 0; SAVEPOINT kindex";
const COMMIT_MARKED: &str = "RELEASE SAVEPOINT kindex; COMMIT; SET autocommit = 1";
const FIND_MARK: &str = "RELEASE SAVEPOINT kindex";
const UNMARK: &str = "SET autocommit = 1";

pub(crate) struct MySqlDriver {
    pool: Arc<MySqlPool>,
    options: MySqlConnectOptions,
    config: PoolConfig,
    limits: OnceLock<Limits>,
}

impl MySqlDriver {
    /// Opens no connection yet.
    pub(crate) fn new(options: MySqlConnectOptions, config: &PoolConfig) -> Result<Self, StoreError> {
        if options.get_database().is_none() {
            let message = format!("no database is named; write {}", address::FORM);
            return Err(StoreError::Address(message));
        }
        let options = pool::options(options);
        let pool = Arc::new_cyclic(|itself| pool::lazy_pool(&options, config, itself.clone()));
        Ok(Self {
            pool,
            options,
            config: config.clone(),
            limits: OnceLock::new(),
        })
    }
}

impl MySqlDriver {
    async fn connect_once(&self, options: &MySqlConnectOptions) -> Result<MySqlConnection, sqlx::Error> {
        let limit = self.config.acquire_timeout;
        let connect = tokio::time::timeout(limit, options.connect());
        connect.await.unwrap_or_else(|_| {
            let late = format!("no connection within {limit:?}");
            Err(std::io::Error::new(std::io::ErrorKind::TimedOut, late).into())
        })
    }
}

impl Driver for MySqlDriver {
    type Db = MySql;
    type Row = MySqlRow;

    const BEGIN: &'static str = "START TRANSACTION";
    const READS: Reads = Reads::Elsewhere;

    fn spelling(&self) -> &'static dyn Spelling {
        &MySqlSpelling
    }

    async fn acquire(&self, _purpose: Purpose) -> Result<Pooled<Self>, sqlx::Error> {
        match self.pool.acquire().await {
            // The pool repeats refused connects until its time is over, and then forgets why. One more attempt says it.
            // If that succeeds, the server has come back, and the call goes on.
            Err(sqlx::Error::PoolTimedOut) if self.pool.size() < self.config.max_open.max(1) => {
                let opened = self.connect_once(&self.options).await?;
                // Nobody waits for it, and what its goodbye meets says nothing of the server.
                opened.close().await.ok();
                self.pool.acquire().await
            }
            acquired => acquired,
        }
    }

    fn address(&self) -> String {
        address::shown(&self.options)
    }

    async fn connect(&self) -> Result<(), sqlx::Error> {
        self.connect_once(&self.options).await?.close().await
    }

    /// Dropping the socket is all that can be done about a server that hangs. The server may go on with the statement
    /// for a while, beside the connection that the pool opens instead. `close_on_drop` of sqlx 0.9 would not prevent
    /// that: it writes a goodbye and does not wait for the statement, or over TLS for five seconds.
    fn discard(connection: Pooled<Self>) {
        drop(connection.detach());
    }

    fn discard_idle(&self) {
        while let Some(connection) = self.pool.try_acquire() {
            Self::discard(connection);
        }
    }

    async fn limits(&self, connection: &mut MySqlConnection) -> Result<Limits, sqlx::Error> {
        if let Some(limits) = self.limits.get() {
            return Ok(*limits);
        }
        let mut variables = Variables::default();
        for row in connection.fetch_all(VARIABLES).await? {
            variables.read(&row.text(0)?, &row.text(1)?);
        }
        let packet_bytes_max = variables.packet_bytes.ok_or(sqlx::Error::RowNotFound)?;
        Ok(*self.limits.get_or_init(|| {
            if variables.may_be_behind() {
                tracing::warn!(
                    "The database is a node of a Galera cluster without `wsrep_sync_wait = 1`: what was committed on \
                     another node may be missed. Set it on all nodes, unless all connections lead to the same one"
                );
            }
            Limits {
                packet_bytes_max,
                params_max: 65_535,
                is_node: variables.is_node,
            }
        }))
    }

    async fn execute(
        connection: &mut MySqlConnection,
        statement: Statement,
        params: &[Param<'_>],
    ) -> Result<u64, sqlx::Error> {
        let keep = statement.keep;
        sqlx::query_with(statement.text(&MySqlSpelling), bind(params)?)
            .persistent(keep)
            .execute(connection)
            .await
            .map(|done| done.rows_affected())
    }

    async fn query(
        connection: &mut MySqlConnection,
        statement: Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<MySqlRow>, sqlx::Error> {
        let keep = statement.keep;
        sqlx::query_with(statement.text(&MySqlSpelling), bind(params)?)
            .persistent(keep)
            .fetch_all(connection)
            .await
    }

    async fn query_until(
        connection: &mut MySqlConnection,
        statement: Statement,
        params: &[Param<'_>],
        mut is_enough: impl FnMut(&MySqlRow) -> Result<bool, sqlx::Error> + Send,
    ) -> Result<Vec<MySqlRow>, sqlx::Error> {
        let keep = statement.keep;
        let mut found = sqlx::query_with(statement.text(&MySqlSpelling), bind(params)?)
            .persistent(keep)
            .fetch(connection);
        let mut rows = Vec::new();
        while let Some(row) = found.try_next().await? {
            let is_last = is_enough(&row)?;
            rows.push(row);
            if is_last {
                break;
            }
        }
        Ok(rows)
    }

    fn plan_step(row: &MySqlRow) -> Result<PlanStep, sqlx::Error> {
        plan::step(row)
    }

    fn entries(row: &MySqlRow) -> Result<u64, sqlx::Error> {
        plan::entries(row)
    }

    async fn create_database(&self) -> Result<(), sqlx::Error> {
        match self.connect_once(&self.options).await {
            Ok(connection) => return connection.close().await,
            Err(error) if Self::classify(&error) == Fault::Schema => {}
            Err(error) => return Err(error),
        }
        let name = self.options.get_database().unwrap_or_default();
        // The option cannot be unset; this schema is on every server.
        let elsewhere = self.options.clone().database("information_schema");
        let mut connection = self.connect_once(&elsewhere).await?;
        connection.execute(AssertSqlSafe(create_database(name))).await?;
        connection.close().await
    }

    fn classify(error: &sqlx::Error) -> Fault {
        let sqlx::Error::Database(error) = error else {
            return classify_common(error);
        };
        error
            .try_downcast_ref::<MySqlDatabaseError>()
            .map_or(Fault::Refused, |error| faults::classify(error.number()))
    }

    async fn close(&self) {
        self.pool.close().await;
    }

    fn call_timeout(&self) -> Duration {
        self.config.call_timeout
    }

    async fn mark(transaction: &mut MySqlConnection) -> Result<(), sqlx::Error> {
        transaction.execute(MARK).await.map(drop)
    }

    async fn commit_marked(transaction: &mut MySqlConnection) -> Result<(), sqlx::Error> {
        transaction.execute(COMMIT_MARKED).await.map(drop)
    }

    async fn find_mark(transaction: &mut MySqlConnection) -> Result<(), sqlx::Error> {
        transaction.execute(FIND_MARK).await.map(drop)
    }

    async fn unmark(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
        connection.execute(UNMARK).await.map(drop)
    }

    fn connections_max(&self) -> u32 {
        self.config.max_open
    }

    fn page_bytes(&self) -> usize {
        self.config.page_bytes
    }

    fn pool(&self) -> PoolUse {
        PoolUse::of(&self.pool)
    }
}

/// What a server says of itself.
#[derive(Default)]
struct Variables {
    packet_bytes: Option<usize>,
    is_node: bool,
    sync_wait: u32,
}

impl Variables {
    fn read(&mut self, name: &str, value: &str) {
        match name {
            "max_allowed_packet" => self.packet_bytes = value.parse().ok(),
            "wsrep_on" => self.is_node = value == "ON",
            "wsrep_sync_wait" => self.sync_wait = value.parse().unwrap_or_default(),
            _ => {}
        }
    }

    /// Whether a read may lack what was committed on another node before.
    fn may_be_behind(&self) -> bool {
        self.is_node && self.sync_wait & READS_WAIT == 0
    }
}

/// The name is the operator's own, from the address.
fn create_database(name: &str) -> String {
    format!(
        "CREATE DATABASE IF NOT EXISTS `{}` DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        name.replace('`', "``")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_behind_unless_reads_wait_for_the_commits_of_others() {
        let read = |lines: &[(&str, &str)]| {
            let mut variables = Variables::default();
            for (name, value) in lines {
                variables.read(name, value);
            }
            (variables.packet_bytes, variables.is_node, variables.may_be_behind())
        };
        let packet = ("max_allowed_packet", "16777216");
        let packet_bytes = Some(16_777_216);
        assert_eq!(
            read(&[packet]),
            (packet_bytes, false, false),
            "a server that cannot be a node"
        );
        assert_eq!(read(&[packet, ("wsrep_on", "ON")]), (packet_bytes, true, true));
        for (is_on, sync_wait, is_behind) in [
            ("OFF", "0", false),
            ("ON", "0", true),
            ("ON", "1", false),
            ("ON", "6", true),
            ("ON", "7", false),
        ] {
            let (_, is_node, behind) = read(&[packet, ("wsrep_on", is_on), ("wsrep_sync_wait", sync_wait)]);
            assert_eq!((is_node, behind), (is_on == "ON", is_behind), "{is_on} {sync_wait}");
        }
    }
}
