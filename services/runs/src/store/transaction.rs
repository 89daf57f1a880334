//! The transaction of the writer, as commands see it: the connection, the runs in memory, the numbers to give, and what
//! is to happen once it is committed.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use sqlx::{Connection as _, SqliteConnection};

use crate::domain::RunId;
use crate::refusal::Refusal;

use super::cache::{RunCache, RunState};
use super::error::StoreError;
use super::settings::{Durability, Settings};
use super::statements::{batches, counters, runs};

/// Why a command was not done.
#[derive(Debug)]
pub enum Failure {
    /// The command is refused. It has written nothing.
    Refused(Refusal),
    /// The transaction fails, and with it all commands in it.
    Store(StoreError),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Something to write.
///
/// *Contract*: reads, decides, then writes; refuses before its first write. It may be called again after its
/// transaction failed, and has to do the same then.
pub trait Command: Send + Sync + 'static {
    /// What its caller gets once it is durable.
    type Answer: Send + 'static;

    /// Does it.
    fn apply(&self, tx: &mut Tx) -> impl Future<Output = Result<Self::Answer, Failure>> + Send;

    /// About how much memory it takes while it waits.
    fn bytes(&self) -> usize {
        256
    }
}

/// What happens once a transaction is committed.
#[derive(Debug)]
pub(super) enum Effect {
    /// A batch of a run was applied; its body, where it is at hand.
    Applied {
        arrival: i64,
        run: i64,
        points: u64,
        body: Option<Arc<[u8]>>,
    },
    /// A run has ended: it can be sealed.
    Ended(i64),
    /// A run goes on: it cannot be sealed.
    Resumed(i64),
    /// A run is gone.
    Deleted { run: RunId, number: i64 },
    /// Batches are in chunks now.
    Compacted { run: i64, points: u64, arrivals: Vec<i64> },
}

/// The writer's connection within a transaction.
pub struct Tx {
    connection: SqliteConnection,
    settings: Arc<Settings>,
    /// What commits survive.
    survives: Durability,
    runs: RunCache,
    numbers: Numbers,
    now: i64,
    effects: Vec<Effect>,
    /// Statements of this transaction, and how many of them there were when the command began.
    statements: u64,
    writes: u64,
}

/// The last numbers that were given, and what is held.
#[derive(Debug, Default)]
struct Numbers {
    is_loaded: bool,
    arrival: i64,
    ordinal: i64,
    stored_ordinal: i64,
    held_bytes: u64,
    /// When the oldest held batch of each run arrived.
    held_since: BTreeMap<i64, i64>,
}

impl Tx {
    pub(super) fn new(connection: SqliteConnection, settings: Arc<Settings>) -> Self {
        Self {
            connection,
            survives: settings.durability,
            settings,
            runs: RunCache::default(),
            numbers: Numbers::default(),
            now: 0,
            effects: Vec::new(),
            statements: 0,
            writes: 0,
        }
    }

    /// The time of the transaction, in nanoseconds since the epoch.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.now
    }

    /// How the store is run.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings)
    }

    /// The connection, for a statement that reads and sees all that was decided.
    ///
    /// # Errors
    ///
    /// Where what is in memory cannot be written first.
    pub async fn read(&mut self) -> Result<&mut SqliteConnection, Failure> {
        self.flush().await?;
        self.step()
    }

    /// The connection, for a statement that writes and sees all that was decided.
    ///
    /// # Errors
    ///
    /// Where what is in memory cannot be written first.
    pub async fn write(&mut self) -> Result<&mut SqliteConnection, Failure> {
        self.flush().await?;
        self.change()
    }

    /// The connection, for a statement that reads no hot column of `run`.
    pub(super) fn step(&mut self) -> Result<&mut SqliteConnection, Failure> {
        self.statements += 1;
        let is_broken = self
            .settings
            .faults
            .as_ref()
            .is_some_and(|faults| (faults.0)(self.statements));
        if is_broken {
            return Err(sqlx::Error::Io(std::io::Error::other("a fault of a test")).into());
        }
        Ok(&mut self.connection)
    }

    /// The same for a statement that writes.
    pub(super) fn change(&mut self) -> Result<&mut SqliteConnection, Failure> {
        self.writes += 1;
        self.step()
    }

    /// The number of a run, which is in memory then.
    pub(super) async fn find(&mut self, run: &RunId) -> Result<Option<i64>, Failure> {
        if let Some(number) = self.runs.number(run) {
            return Ok(Some(number));
        }
        let Some(state) = runs::state(self.step()?, run).await? else {
            return Ok(None);
        };
        let number = state.number;
        self.runs.insert(state);
        Ok(Some(number))
    }

    /// A run that was found.
    pub(super) fn run(&self, number: i64) -> &RunState {
        self.runs.get(number).expect("the run was found in this transaction")
    }

    /// Changes a run that was found.
    pub(super) fn update(&mut self, number: i64, change: impl FnOnce(&mut RunState)) {
        self.runs.change(number, change);
    }

    /// Takes note of a call of a run that was found.
    pub(super) fn seen(&mut self, number: i64) {
        let now = self.now;
        self.runs.change(number, |run| run.seen(now));
    }

    /// Adds a run that was made.
    pub(super) fn insert(&mut self, state: RunState) {
        self.runs.insert(state);
    }

    /// Forgets a run that is gone.
    pub(super) fn forget(&mut self, number: i64) {
        self.runs.remove(number);
    }

    pub(super) fn after_commit(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// The number of the next batch.
    pub(super) async fn next_arrival(&mut self) -> Result<i64, Failure> {
        self.load_numbers().await?;
        self.numbers.arrival += 1;
        Ok(self.numbers.arrival)
    }

    /// The place of a batch among all that are applied.
    pub(super) async fn next_ordinal(&mut self) -> Result<i64, Failure> {
        self.load_numbers().await?;
        self.numbers.ordinal += 1;
        Ok(self.numbers.ordinal)
    }

    /// How many bytes of batches are held, over all runs.
    pub(super) async fn held_bytes(&mut self) -> Result<u64, Failure> {
        self.load_numbers().await?;
        Ok(self.numbers.held_bytes)
    }

    /// How many bytes of batches are held, where that is known without asking the file.
    pub(super) fn known_held_bytes(&self) -> Option<u64> {
        self.numbers.is_loaded.then_some(self.numbers.held_bytes)
    }

    /// Takes note of held and released bytes.
    pub(super) fn holds(&mut self, added: u64, released: u64) {
        self.numbers.held_bytes = (self.numbers.held_bytes + added).saturating_sub(released);
    }

    /// Runs whose oldest held batch arrived at a time or before.
    pub(super) async fn held_before(&mut self, time: i64) -> Result<Vec<i64>, Failure> {
        self.load_numbers().await?;
        let held = self.numbers.held_since.iter();
        let old = held.filter(|(_, since)| **since <= time);
        Ok(old.map(|(run, _)| *run).collect())
    }

    /// Takes note of what a run holds now, none if it is gone.
    pub(super) fn holds_since(&mut self, run: i64, oldest: Option<i64>) {
        match oldest {
            Some(oldest) => self.numbers.held_since.insert(run, oldest),
            None => self.numbers.held_since.remove(&run),
        };
    }

    async fn load_numbers(&mut self) -> Result<(), Failure> {
        if !self.numbers.is_loaded {
            let ordinal = counters::ordinal(self.step()?).await?;
            let arrival = batches::last_arrival(self.step()?).await?;
            let held_bytes = batches::held_bytes(self.step()?).await?;
            let held_since = batches::oldest_held(self.step()?).await?;
            self.numbers = Numbers {
                is_loaded: true,
                arrival,
                ordinal,
                stored_ordinal: ordinal,
                held_bytes,
                held_since: held_since.into_iter().collect(),
            };
        }
        Ok(())
    }

    /// Writes what is only in memory: of commands that were done, so that it does not count as a write of the next.
    async fn flush(&mut self) -> Result<(), Failure> {
        for state in self.runs.take_dirty() {
            runs::update(self.step()?, &state).await?;
        }
        if self.numbers.ordinal != self.numbers.stored_ordinal {
            let ordinal = self.numbers.ordinal;
            counters::set_ordinal(self.step()?, ordinal).await?;
            self.numbers.stored_ordinal = ordinal;
        }
        Ok(())
    }

    /// From now on, commits survive this. Outside of transactions.
    pub(super) async fn survive(&mut self, what: Durability) -> Result<(), StoreError> {
        if self.survives != what {
            let statement = match what {
                Durability::Normal => "PRAGMA synchronous = NORMAL",
                Durability::Full => "PRAGMA synchronous = FULL",
            };
            sqlx::query(statement).execute(&mut self.connection).await?;
            self.survives = what;
        }
        Ok(())
    }

    pub(super) async fn begin(&mut self, now: i64) -> Result<(), StoreError> {
        self.now = now;
        self.statements = 0;
        self.writes = 0;
        self.effects.clear();
        sqlx::query("BEGIN IMMEDIATE").execute(&mut self.connection).await?;
        Ok(())
    }

    /// How many statements have written so far.
    pub(super) fn writes(&self) -> u64 {
        self.writes
    }

    /// Makes all durable; what is to happen then.
    pub(super) async fn commit(&mut self) -> Result<Vec<Effect>, Failure> {
        self.flush().await?;
        let connection = self.step()?;
        sqlx::query("COMMIT").execute(connection).await?;
        self.runs
            .shrink(self.settings.cached_runs_max, self.settings.cached_names_max);
        Ok(std::mem::take(&mut self.effects))
    }

    /// Undoes all, and forgets what is in memory.
    pub(super) async fn roll_back(&mut self) -> Result<(), StoreError> {
        self.runs.clear();
        self.numbers = Numbers::default();
        self.effects.clear();
        match sqlx::query("ROLLBACK").execute(&mut self.connection).await {
            Ok(_) => Ok(()),
            // SQLite has rolled back by itself.
            Err(sqlx::Error::Database(error)) if error.message().contains("no transaction is active") => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Goes on with another connection.
    pub(super) fn reconnect(&mut self, connection: SqliteConnection) {
        self.connection = connection;
        self.survives = self.settings.durability;
    }

    /// Writes the log back and closes the connection.
    pub(super) async fn close(mut self) -> Result<(), StoreError> {
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
            .execute(&mut self.connection)
            .await?;
        self.connection.close().await?;
        Ok(())
    }

    /// Outside of transactions.
    pub(super) async fn checkpoint(&mut self) -> Result<(), StoreError> {
        sqlx::query("PRAGMA wal_checkpoint(PASSIVE)")
            .execute(&mut self.connection)
            .await?;
        Ok(())
    }
}
