//! Calls on pooled connections: time limits, stale connections, transactions and the
//! repetition of lost ones. Knows statements as values and no table.

use std::pin::pin;
use std::time::Duration;

use sqlx::Transaction;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::calls::{Call, Calls, Step};
use crate::cause::Cause;
use crate::driver::{Cells, Driver, Fault, Limits, Param, Pooled, Purpose, Raw, Statement, begin};
use crate::error::StoreError;
use crate::occupied::Occupied;
use crate::outage::Outage;
use crate::pool_config::PoolConfig;

/// How often a transaction is repeated that lost against another writer.
pub(super) const CONFLICTS_MAX: u32 = 10;

/// The connections of one driver.
pub(super) struct Connections<D> {
    pub(super) driver: D,
    pub(super) calls: Calls,
    pub(super) outage: Outage,
}

/// The rows that were read of a page.
pub(super) struct Rows<R> {
    pub(super) rows: Vec<R>,
    /// Whether the last of them is one too many for the bytes of a page; more may follow.
    pub(super) are_cut: bool,
}

/// What a page has room for.
struct PageBudget {
    bytes_left: usize,
    is_begun: bool,
    is_full: bool,
}

impl PageBudget {
    fn new(bytes: usize) -> Self {
        Self {
            bytes_left: bytes,
            is_begun: false,
            is_full: false,
        }
    }

    /// Takes a row, whether it fits or not: the first one always does. Says whether the page is full.
    fn take(&mut self, row: &impl Cells, texts: &[usize]) -> Result<bool, sqlx::Error> {
        let mut bytes = 0;
        for index in texts {
            bytes += row.text_bytes(*index)?;
        }
        self.is_full = self.is_begun && bytes > self.bytes_left;
        self.is_begun = true;
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        Ok(self.is_full)
    }
}

/// What is done in a transaction.
pub(super) trait InTransaction<D: Driver>: Sync {
    /// What comes of it.
    type Done: Send;

    /// The name of the kind whose tables are used.
    fn kind(&self) -> &'static str;

    /// Does it; an error rolls back.
    fn run(
        &self,
        connection: &mut Raw<D>,
        limits: Limits,
    ) -> impl Future<Output = Result<Self::Done, sqlx::Error>> + Send;
}

/// What a packet holds besides parameters, at most.
pub(super) const PACKET_RESERVE_BYTES: usize = 4_096;

/// After so long without a connection it is asked why there is none.
const SOON: Duration = Duration::from_millis(500);

impl<D: Driver> Connections<D> {
    pub(super) fn new(driver: D) -> Self {
        let calls = Calls::new(PoolConfig::late_after(driver.call_timeout()), D::READS);
        let outage = Outage::new(driver.address());
        Self { driver, calls, outage }
    }

    /// A connection of the pool, which tries for a while where the server refuses. That it does is told at once.
    pub(super) async fn acquire(&self, purpose: Purpose) -> Result<Pooled<D>, sqlx::Error> {
        let mut acquired = pin!(self.driver.acquire(purpose));
        let answer = match timeout(SOON, &mut acquired).await {
            Ok(answer) => answer,
            Err(_) => tokio::select! {
                biased;
                answer = &mut acquired => answer,
                () = self.look() => acquired.await,
            },
        };
        if let Err(error) = &answer {
            self.note(error);
        }
        answer
    }

    /// Where the pool does not wait for its own connections to come free, a connection of its own says more.
    async fn look(&self) {
        let pool = self.driver.pool();
        if pool.open < pool.max
            && self.outage.lasts().is_none()
            && let Err(error) = self.driver.connect().await
        {
            self.note(&error);
        }
    }

    /// Tells an outage where no connection could be opened because of one.
    pub(super) fn note(&self, error: &sqlx::Error) {
        match D::classify(error) {
            Fault::Connection(_) | Fault::Elsewhere(_) => {
                self.outage.begins(error);
            }
            Fault::Conflict(_) | Fault::Retryable(_) | Fault::Schema | Fault::Refused => {}
        }
    }

    /// Keeps an answer, and never again uses a connection that is broken, gave none in time or
    /// leads to a server that cannot serve.
    pub(super) fn settle<T>(
        &self,
        connection: Pooled<D>,
        answer: Result<Result<T, sqlx::Error>, Elapsed>,
    ) -> Result<T, sqlx::Error> {
        let answer = answer.unwrap_or_else(|_| {
            let limit = self.driver.call_timeout();
            let late = format!("no answer within {limit:?}");
            Err(std::io::Error::new(std::io::ErrorKind::TimedOut, late).into())
        });
        if answer.is_ok() {
            self.outage.ends();
        }
        if let Err(error) = &answer {
            match D::classify(error) {
                Fault::Connection(_) => D::discard(connection),
                Fault::Elsewhere(_) => {
                    D::discard(connection);
                    self.driver.discard_idle();
                }
                Fault::Conflict(_) | Fault::Retryable(_) | Fault::Schema | Fault::Refused => {}
            }
        }
        answer
    }

    /// Reads; repeated where a connection was stale.
    pub(super) async fn query(&self, statement: Statement, params: &[Param<'_>]) -> Result<Vec<D::Row>, sqlx::Error> {
        let mut stale = 0;
        loop {
            let mut connection = self.acquire(Purpose::Read).await?;
            let call = D::query(&mut connection, statement.clone(), params);
            let answer = self
                .calls
                .begin(Step::Read, "")
                .bound(self.driver.call_timeout(), call)
                .await;
            match self.settle(connection, answer) {
                Err(error) if self.is_stale(&error, stale) => stale += 1,
                answer => return answer,
            }
        }
    }

    /// Reads the rows of a page, of whose texts these cells are counted; repeated where a connection was stale.
    pub(super) async fn query_page(
        &self,
        statement: Statement,
        params: &[Param<'_>],
        texts: &[usize],
    ) -> Result<Rows<D::Row>, sqlx::Error> {
        let mut stale = 0;
        loop {
            let mut connection = self.acquire(Purpose::Read).await?;
            let mut room = PageBudget::new(self.driver.page_bytes());
            let is_enough = |row: &D::Row| room.take(row, texts);
            let call = D::query_until(&mut connection, statement.clone(), params, is_enough);
            let answer = self
                .calls
                .begin(Step::Read, "")
                .bound(self.driver.call_timeout(), call)
                .await;
            match answer {
                // What is still on its way to this connection is for nobody.
                Ok(Ok(rows)) if room.is_full => {
                    D::discard(connection);
                    self.outage.ends();
                    return Ok(Rows { rows, are_cut: true });
                }
                answer => match self.settle(connection, answer) {
                    Err(error) if self.is_stale(&error, stale) => stale += 1,
                    answer => return answer.map(|rows| Rows { rows, are_cut: false }),
                },
            }
        }
    }

    /// One statement that is its own transaction, and may be repeated.
    pub(super) async fn execute(&self, statement: Statement, params: &[Param<'_>]) -> Result<u64, sqlx::Error> {
        let mut stale = 0;
        loop {
            let mut connection = self.acquire(Purpose::Write).await?;
            let call = D::execute(&mut connection, statement.clone(), params);
            let answer = self
                .calls
                .begin(Step::Write, "")
                .bound(self.driver.call_timeout(), call)
                .await;
            match self.settle(connection, answer) {
                Err(error) if self.is_stale(&error, stale) => stale += 1,
                answer => return answer,
            }
        }
    }

    /// Whether one statement can hold these.
    pub(super) async fn check_packet(&self, params: &[Param<'_>]) -> Result<(), sqlx::Error> {
        let mut connection = self.driver.acquire(Purpose::Write).await?;
        let call = self.driver.limits(&mut connection);
        let answer = self
            .calls
            .begin(Step::Read, "")
            .bound(self.driver.call_timeout(), call)
            .await;
        let most = self.settle(connection, answer)?.packet_bytes_max;
        let bytes: usize = params.iter().map(Param::wire_bytes).sum();
        match bytes + PACKET_RESERVE_BYTES > most {
            true => Err(too_long(bytes, most)),
            false => Ok(()),
        }
    }

    /// After the server went away every pooled connection fails once.
    fn is_stale(&self, error: &sqlx::Error, found_stale: u32) -> bool {
        matches!(D::classify(error), Fault::Connection(_)) && found_stale <= self.driver.connections_max()
    }

    /// Does something in one transaction, repeated while it loses against other writers.
    pub(super) async fn transact<T: InTransaction<D>>(&self, work: &T) -> Result<T::Done, sqlx::Error> {
        let mut conflicts = 0;
        loop {
            match self.transact_once(work).await {
                Err(error) if matches!(D::classify(&error), Fault::Conflict(_)) && conflicts < CONFLICTS_MAX => {
                    conflicts += 1;
                    tokio::time::sleep(pause(conflicts)).await;
                }
                done => return done,
            }
        }
    }

    async fn transact_once<T: InTransaction<D>>(&self, work: &T) -> Result<T::Done, sqlx::Error> {
        let mut stale = 0;
        loop {
            let mut connection = Occupied::<D>::new(self.acquire(Purpose::Write).await?);
            let mut begun = false;
            let under_way = self.calls.begin(Step::Write, work.kind());
            let call = self.transact_on(&mut connection, &mut begun, &under_way, work);
            let answer = under_way.bound(self.driver.call_timeout(), call).await;
            match self.settle(connection.ended(), answer) {
                // Later than at the beginning the outcome may be unknown: the caller decides anew.
                Err(error) if !begun && self.is_stale(&error, stale) => stale += 1,
                answer => return answer,
            }
        }
    }

    async fn transact_on<T: InTransaction<D>>(
        &self,
        connection: &mut Raw<D>,
        begun: &mut bool,
        under_way: &Call<'_>,
        work: &T,
    ) -> Result<T::Done, sqlx::Error> {
        let limits = self.driver.limits(connection).await?;
        let transaction = begin::<D>(connection).await?;
        *begun = true;
        let answer = Self::carry_out(transaction, limits, under_way, work).await;
        match answer {
            Err(error) if limits.is_node => Err(Self::unmarked(connection, error).await),
            answer => answer,
        }
    }

    /// The error, once the connection is as it was before the transaction. One that cannot be made so is of no use.
    async fn unmarked(connection: &mut Raw<D>, error: sqlx::Error) -> sqlx::Error {
        // The answer to the first try may be about what came before.
        for _ in 0..2 {
            if D::unmark(connection).await.is_ok() {
                return error;
            }
        }
        sqlx::Error::Protocol("a transaction that failed cannot be ended".to_owned())
    }

    async fn carry_out<T: InTransaction<D>>(
        mut transaction: Transaction<'_, D::Db>,
        limits: Limits,
        under_way: &Call<'_>,
        work: &T,
    ) -> Result<T::Done, sqlx::Error> {
        let done = async {
            if limits.is_node {
                D::mark(&mut transaction).await?;
            }
            let done = work.run(&mut transaction, limits).await?;
            under_way.commits();
            if limits.is_node {
                D::commit_marked(&mut transaction).await?;
            }
            Ok(done)
        };
        match done.await {
            Ok(done) => transaction.commit().await.map(|()| done),
            Err(error) => {
                let error = match limits.is_node {
                    true => Self::cause(&mut transaction, error).await,
                    false => error,
                };
                // The first error is the one to report. The pool closes a connection that cannot roll back.
                transaction.rollback().await.ok();
                Err(error)
            }
        }
    }

    /// What follows a rollback that nobody was told of may fail for any reason: then the rollback is the cause.
    async fn cause(transaction: &mut Raw<D>, error: sqlx::Error) -> sqlx::Error {
        match D::find_mark(transaction).await {
            Err(lost) if matches!(D::classify(&lost), Fault::Conflict(_)) => lost,
            Ok(()) | Err(_) => error,
        }
    }
}

/// Says in the store's words what a driver reports.
pub(super) fn failure<D: Driver>(kind: &str, source: sqlx::Error) -> StoreError {
    let kind = kind.to_owned();
    match D::classify(&source) {
        // A row that is there and was not found under its lock will not be found next time either.
        Fault::Conflict(Cause::Duplicate) | Fault::Refused => StoreError::Refused { kind, source },
        Fault::Conflict(cause) | Fault::Connection(cause) | Fault::Elsewhere(cause) | Fault::Retryable(cause) => {
            StoreError::Retryable { kind, cause, source }
        }
        Fault::Schema => StoreError::Schema(format!("{kind}: {source}")),
    }
}

/// Losers of the same conflict do not meet again at once.
pub(super) fn pause(conflicts: u32) -> Duration {
    let longest_ms = 1_u64 << conflicts.min(6);
    Duration::from_micros(rand::random_range(0..=longest_ms * 1_000))
}

pub(super) fn too_long(row_bytes: usize, packet_bytes_max: usize) -> sqlx::Error {
    sqlx::Error::Encode(
        format!("a row of {row_bytes} bytes does not fit the server's max_allowed_packet of {packet_bytes_max}").into(),
    )
}
