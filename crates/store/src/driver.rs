//! What the store needs of a database driver: typed parameters in, typed cells
//! out, transactions, and errors sorted into classes. Knows no table.

use std::borrow::Cow;
use std::future::Future;
use std::ops::Add;
use std::time::Duration;

use jiff::Timestamp;
use kindex_model::kind::ColumnType;
use kindex_model::value::Value;
use sqlx::{AssertSqlSafe, Connection, Database, Pool, SqlSafeStr as _, SqlStr, Transaction};

use crate::calls::Reads;
use crate::cause::Cause;
use crate::dialect::Spelling;
use crate::explained::PlanStep;

/// One bound value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Param<'a> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
    Time(Timestamp),
}

impl Param<'_> {
    /// Bytes on the wire, rounded up.
    pub(super) fn wire_bytes(&self) -> usize {
        const FIXED: usize = 12;
        match self {
            Self::Text(text) => text.len() + FIXED,
            Self::Bytes(bytes) => bytes.len() + FIXED,
            Self::Time(_) => 27 + FIXED,
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::UInt(_) | Self::Double(_) => FIXED,
        }
    }
}

/// A statement's text, and whether its shape comes again often enough to keep it prepared.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    text: Text,
    pub(super) keep: bool,
}

#[derive(Clone, Debug)]
enum Text {
    /// In the notation of [`super::dialect`].
    Ours(Cow<'static, str>),
    /// In the engine's own spelling.
    Engines(String),
}

impl Statement {
    pub(super) fn new(text: impl Into<Cow<'static, str>>, keep: bool) -> Self {
        Self {
            text: Text::Ours(text.into()),
            keep,
        }
    }

    /// One whose like may never come again.
    pub(super) fn once(text: String) -> Self {
        Self::new(text, false)
    }

    /// A text that comes with the program in the spelling of one engine, and is run once.
    pub(super) fn of_engine(text: &str) -> Self {
        Self {
            text: Text::Engines(text.to_owned()),
            keep: false,
        }
    }

    /// As the engine takes it. The one place where built text is declared safe: it is made of names from static tables,
    /// the schema that the generator emitted, and parameters.
    pub(super) fn text(self, spelling: &dyn Spelling) -> SqlStr {
        let text = match self.text {
            Text::Ours(text) => spelling.spell(&text),
            Text::Engines(text) => text,
        };
        AssertSqlSafe(text).into_sql_str()
    }
}

/// One row of a result, read by position.
pub(super) trait Cells: Send {
    fn text(&self, index: usize) -> Result<String, sqlx::Error>;
    /// The length of a text, which is not copied; 0 for NULL.
    fn text_bytes(&self, index: usize) -> Result<usize, sqlx::Error>;
    fn int(&self, index: usize) -> Result<i64, sqlx::Error>;
    fn int_or_null(&self, index: usize) -> Result<Option<i64>, sqlx::Error>;
    fn text_or_null(&self, index: usize) -> Result<Option<String>, sqlx::Error>;
    fn bytes(&self, index: usize) -> Result<Option<Vec<u8>>, sqlx::Error>;
    /// A time that was selected through [`ReadSql::time`](super::dialect::ReadSql::time).
    fn time(&self, index: usize) -> Result<Option<Timestamp>, sqlx::Error>;
    /// Any cell, by the type of its column; a flag comes as the number that it is stored as.
    fn value(&self, index: usize, ty: ColumnType) -> Result<Value, sqlx::Error>;
}

/// What the server says about itself, asked once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Longest packet, and so the longest row with its statement.
    pub(super) packet_bytes_max: usize,
    /// Most parameters of one statement.
    pub(super) params_max: usize,
    /// Whether it is a node of a cluster of writing nodes. There a lock is of one node, and of two transactions on
    /// several nodes one is refused at its commit only where both have written the same row.
    pub(super) is_node: bool,
}

/// What an error means for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Lost against another writer, nothing was written: at once again.
    Conflict(Cause),
    /// The connection is of no use any more; the next one may be.
    Connection(Cause),
    /// This server cannot do it now: it hangs, only reads or has lost its cluster. A new
    /// connection may lead to another server behind the same address.
    Elsewhere(Cause),
    /// The database cannot do it now.
    Retryable(Cause),
    /// A table, a column or the database itself is not there.
    Schema,
    /// The data does not fit.
    Refused,
}

/// The connections of a store at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUse {
    /// All that are open.
    pub open: u32,
    /// Those among them that nobody uses.
    pub idle: u32,
    /// Most that are opened.
    pub max: u32,
}

impl PoolUse {
    pub(super) fn of<DB: Database>(pool: &Pool<DB>) -> Self {
        Self {
            open: pool.size(),
            idle: u32::try_from(pool.num_idle()).unwrap_or(u32::MAX),
            max: pool.options().get_max_connections(),
        }
    }
}

impl Add for PoolUse {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            open: self.open + other.open,
            idle: self.idle + other.idle,
            max: self.max + other.max,
        }
    }
}

/// A pooled connection of a driver.
pub(super) type Pooled<D> = sqlx::pool::PoolConnection<<D as Driver>::Db>;
/// The connection under a transaction or a pool's handle.
pub(super) type Raw<D> = <<D as Driver>::Db as Database>::Connection;

/// What a connection is wanted for: SQLite has one writer at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Read,
    Write,
}

/// One database engine. The files of the engines have the same order of methods.
pub(super) trait Driver: Send + Sync + 'static {
    type Db: Database;
    type Row: Cells;

    /// The statement that opens a writing transaction.
    const BEGIN: &'static str;
    /// Where reads are answered.
    const READS: Reads;

    fn spelling(&self) -> &'static dyn Spelling;

    fn acquire(&self, purpose: Purpose) -> impl Future<Output = Result<Pooled<Self>, sqlx::Error>> + Send
    where
        Self: Sized;

    /// Where the database is, without a password.
    fn address(&self) -> String;

    /// Opens a connection beside the pool and closes it: why there is none, where there is none.
    fn connect(&self) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Gets rid of a connection that did not answer in time, without waiting for it.
    fn discard(connection: Pooled<Self>)
    where
        Self: Sized;

    /// Gets rid of the connections that nobody uses.
    fn discard_idle(&self);

    fn limits(&self, connection: &mut Raw<Self>) -> impl Future<Output = Result<Limits, sqlx::Error>> + Send
    where
        Self: Sized;

    fn execute(
        connection: &mut Raw<Self>,
        statement: Statement,
        params: &[Param<'_>],
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send
    where
        Self: Sized;

    fn query(
        connection: &mut Raw<Self>,
        statement: Statement,
        params: &[Param<'_>],
    ) -> impl Future<Output = Result<Vec<Self::Row>, sqlx::Error>> + Send
    where
        Self: Sized;

    /// Reads rows until one of them is enough, which is the last.
    fn query_until(
        connection: &mut Raw<Self>,
        statement: Statement,
        params: &[Param<'_>],
        is_enough: impl FnMut(&Self::Row) -> Result<bool, sqlx::Error> + Send,
    ) -> impl Future<Output = Result<Vec<Self::Row>, sqlx::Error>> + Send
    where
        Self: Sized;

    /// Reads a row of what [`ReadSql::explain`](super::dialect::ReadSql::explain) asks for.
    fn plan_step(row: &Self::Row) -> Result<PlanStep, sqlx::Error>;

    /// Reads a row of what [`ReadSql::entries`](super::dialect::ReadSql::entries) asks for.
    fn entries(row: &Self::Row) -> Result<u64, sqlx::Error>;

    /// Creates the database that the address names, where it is absent and the engine has such a thing.
    fn create_database(&self) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    fn classify(error: &sqlx::Error) -> Fault;

    fn close(&self) -> impl Future<Output = ()> + Send;

    /// How long one call may take.
    fn call_timeout(&self) -> Duration;

    /// Marks a transaction that has begun on a node of a cluster. A node rolls back what loses against another node,
    /// and may not tell whoever was just being answered: from then on, nothing is committed but by
    /// [`commit_marked`](Self::commit_marked).
    fn mark(transaction: &mut Raw<Self>) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Commits a transaction with its mark.
    ///
    /// # Errors
    /// A [conflict](Fault::Conflict) where it was rolled back meanwhile.
    fn commit_marked(transaction: &mut Raw<Self>) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Whether a transaction is still the one that was marked. Asked once.
    ///
    /// # Errors
    /// A [conflict](Fault::Conflict) where it was rolled back.
    fn find_mark(transaction: &mut Raw<Self>) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Makes a connection usable again after a transaction that was marked and has failed.
    fn unmark(connection: &mut Raw<Self>) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// How many connections may be stale at once after the server went away.
    fn connections_max(&self) -> u32;

    /// How much text the objects of one page may have together.
    fn page_bytes(&self) -> usize;

    fn pool(&self) -> PoolUse;
}

/// Opens a writing transaction on a connection.
pub(super) async fn begin<D: Driver>(connection: &mut Raw<D>) -> Result<Transaction<'_, D::Db>, sqlx::Error> {
    connection.begin_with(D::BEGIN).await
}

/// Faults that every driver reports in the same words.
pub(super) fn classify_common(error: &sqlx::Error) -> Fault {
    match error {
        sqlx::Error::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => Fault::Elsewhere(Cause::Timeout),
        sqlx::Error::Io(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => Fault::Connection(Cause::Connection),
        sqlx::Error::PoolTimedOut => Fault::Retryable(Cause::PoolTimeout),
        sqlx::Error::PoolClosed => Fault::Retryable(Cause::Closed),
        _ => Fault::Refused,
    }
}

/// Microseconds are what the columns hold; the rest is cut off, never rounded into the future.
pub(super) fn time_text(time: Timestamp, format: &str) -> String {
    time.strftime(format).to_string()
}

/// Reads what a dialect's `time_text` selects: a date and a time in UTC, with or without `T` and `Z`.
pub(super) fn parse_time(text: &str) -> Result<Timestamp, sqlx::Error> {
    let civil = text.trim_end_matches('Z');
    civil
        .parse::<jiff::civil::DateTime>()
        .and_then(|civil| civil.to_zoned(jiff::tz::TimeZone::UTC))
        .map(|zoned| zoned.timestamp())
        .map_err(|error| sqlx::Error::Decode(format!("time {text:?}: {error}").into()))
}
