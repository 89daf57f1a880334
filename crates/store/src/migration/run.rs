//! Takes the steps of migrations one after the other, under a lock.

use std::time::Duration;

use jiff::Timestamp;
use kindex_model::kind::Migration;
use tokio::time::sleep;

use crate::cause::Retry;
use crate::connections::failure;
use crate::dialect::Spelling;
use crate::driver::{Cells, Driver, Fault, Param, Purpose, Raw, begin};
use crate::error::StoreError;
use crate::migration::memory::{BOOKKEEPING, note, steps, steps_if_any, title};
use crate::migration::script::{Effect, Step};
use crate::migration::{MigrateError, MigrateOptions, Migrated, fill, sql};
use crate::occupied::Occupied;
use crate::progress::Progress;
use crate::sql_store::SqlStore;
use crate::statements::fixed;

/// How long one question for the lock waits.
const LOCK_SECONDS: i64 = 2;
/// How often a statement is repeated that waited too long for the writers of its table.
const ATTEMPTS_MAX: u32 = 60;
/// Between two attempts the writers that waited behind the statement go first.
const PAUSE: Duration = Duration::from_secs(1);

/// The lock of the one who migrates: a connection that the server takes the lock from when it ends. It never goes back
/// to the pool, which would keep the lock: neither after the work, nor where nobody waited for the lock to be given.
pub(super) struct Lock<D: Driver> {
    /// `None` where the engine needs no lock.
    connection: Option<Occupied<D>>,
}

impl<D: Driver> Lock<D> {
    /// Waits for those who migrate now.
    pub(super) async fn take(store: &SqlStore<D>, progress: &dyn Progress) -> Result<Self, MigrateError> {
        let failed = |error| failure::<D>(BOOKKEEPING, error);
        let driver = &store.connections.driver;
        let Some(take) = driver.spelling().take_lock() else {
            return Ok(Self { connection: None });
        };
        let acquired = store.connections.acquire(Purpose::Write).await;
        let mut connection = Occupied::<D>::new(acquired.map_err(failed)?);
        loop {
            let params = [Param::Int(LOCK_SECONDS)];
            let taken = D::query(&mut connection, fixed(take), &params).await.map_err(failed)?;
            if is_one::<D>(&taken).map_err(failed)? {
                return Ok(Self {
                    connection: Some(connection),
                });
            }
            progress.note("waiting for another migration");
        }
    }

    /// Makes sure that the lock was not lost with its connection.
    pub(super) async fn check(&mut self, store: &SqlStore<D>) -> Result<(), MigrateError> {
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        let question = fixed(store.connections.driver.spelling().holds_lock());
        match D::query(connection, question, &[]).await {
            Ok(rows) if is_one::<D>(&rows).unwrap_or(false) => Ok(()),
            Ok(_) | Err(_) => Err(MigrateError::LockLost),
        }
    }
}

fn is_one<D: Driver>(rows: &[D::Row]) -> Result<bool, sqlx::Error> {
    Ok(match rows.first() {
        Some(row) => row.int(0)? == 1,
        None => false,
    })
}

/// Runs the program's migrations from that place on.
pub(super) async fn run<D: Driver>(
    store: &SqlStore<D>,
    lock: &mut Lock<D>,
    first: usize,
    options: &MigrateOptions,
    progress: &dyn Progress,
) -> Result<Vec<Migrated>, MigrateError> {
    let mut migrated = Vec::new();
    for migration in &store.registry.migrations[first..] {
        store.begin(migration, 0, None).await?;
        migrated.push(one(store, lock, migration, options, progress).await?);
        let params = [Param::Time(Timestamp::now()), Param::Int(migration.number.into())];
        note(store, sql::finish(), &params).await?;
    }
    Ok(migrated)
}

async fn one<D: Driver>(
    store: &SqlStore<D>,
    lock: &mut Lock<D>,
    migration: &Migration,
    options: &MigrateOptions,
    progress: &dyn Progress,
) -> Result<Migrated, MigrateError> {
    let applied = store.applied().await?;
    let begun = applied.into_iter().find(|it| it.number == migration.number);
    let (done, mut fill_after) = begun.map_or((0, None), |it| (it.steps_done, it.fill_after));
    let steps = steps(migration, store.connections.driver.spelling())?;
    let mut migrated = Migrated {
        number: migration.number,
        name: migration.name.to_owned(),
        steps: steps.len().saturating_sub(done),
        rows_filled: 0,
    };
    for (index, step) in steps.iter().enumerate().skip(done) {
        lock.check(store).await?;
        let named = |source| MigrateError::Step {
            migration: title(migration),
            step: step.title(),
            source: Box::new(source),
        };
        let position = StepPosition {
            number: migration.number,
            done: index + 1,
        };
        match step {
            Step::Statement { effect, sql } => {
                progress.begin(&step.title(), None);
                change(store, Some((position, effect)), sql, progress)
                    .await
                    .map_err(named)?;
                progress.end();
            }
            Step::Fill { table, columns } => {
                let fill = fill::Fill {
                    number: migration.number,
                    table,
                    columns,
                };
                let filled = fill.run(store, fill_after.take(), options, progress).await;
                migrated.rows_filled += filled.map_err(named)?;
                note(store, sql::step_done(), &position.params()).await?;
            }
        }
    }
    Ok(migrated)
}

/// Fills once more what the program's migrations fill: a program of an older schema that went on
/// writing after a fill knew nothing of the columns.
pub(super) async fn refill<D: Driver>(
    store: &SqlStore<D>,
    options: &MigrateOptions,
    progress: &dyn Progress,
) -> Result<Vec<Migrated>, MigrateError> {
    let mut refilled = Vec::new();
    for migration in store.registry.migrations {
        let mut done = Migrated {
            number: migration.number,
            name: migration.name.to_owned(),
            steps: 0,
            rows_filled: 0,
        };
        let steps = steps_if_any(migration, store.connections.driver.spelling())?;
        for step in steps.into_iter().flatten() {
            let Step::Fill { table, columns } = step else { continue };
            let fill = fill::Fill {
                number: migration.number,
                table,
                columns: &columns,
            };
            done.rows_filled += fill.run(store, None, options, progress).await?;
            done.steps += 1;
        }
        refilled.extend((done.steps > 0).then_some(done));
    }
    Ok(refilled)
}

/// A step by the migration's number and the number of steps that are done after it.
#[derive(Clone, Copy)]
pub(super) struct StepPosition {
    number: u32,
    done: usize,
}

impl StepPosition {
    /// Of `sql::step_done`.
    fn params(self) -> [Param<'static>; 3] {
        let done = Param::Int(i64::try_from(self.done).unwrap_or(i64::MAX));
        [done, Param::Int(self.number.into()), done]
    }
}

/// Runs a statement, again while its table's writers or the network are in the way. What is noted
/// says where it stands and what it does; one that is not is found done or lacking by who calls.
pub(super) async fn change<D: Driver>(
    store: &SqlStore<D>,
    noted: Option<(StepPosition, &Effect<'_>)>,
    text: &str,
    progress: &dyn Progress,
) -> Result<(), StoreError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        match change_once(store, noted, text).await {
            Ok(()) => return Ok(()),
            Err(error) if attempts < ATTEMPTS_MAX && passes::<D>(&error) => {
                progress.note("waiting for the writers of the table");
                sleep(PAUSE).await;
            }
            Err(error) => return Err(failure::<D>(BOOKKEEPING, error)),
        }
    }
}

/// On a connection that is not used again, since it is told not to wait for long; without a limit
/// of time, since copying a table may take hours.
async fn change_once<D: Driver>(
    store: &SqlStore<D>,
    noted: Option<(StepPosition, &Effect<'_>)>,
    text: &str,
) -> Result<(), sqlx::Error> {
    let spelling = store.connections.driver.spelling();
    let mut connection = Occupied::<D>::new(store.connections.acquire(Purpose::Write).await?);
    change_on::<D>(spelling, &mut connection, noted, text).await
}

/// A step that is noted as done has run, whatever the schema looks like since. One that is not may
/// have run all the same on MySQL, whose statements on tables end the transaction that they are in.
async fn change_on<D: Driver>(
    spelling: &'static dyn Spelling,
    connection: &mut Raw<D>,
    noted: Option<(StepPosition, &Effect<'_>)>,
    text: &str,
) -> Result<(), sqlx::Error> {
    if let Some(limit) = spelling.limit_lock_wait() {
        D::execute(connection, fixed(limit), &[]).await?;
    }
    let Some((position, effect)) = noted else {
        return D::execute(connection, sql::step(text), &[]).await.map(drop);
    };
    let mut transaction = begin::<D>(connection).await?;
    let done = D::query(&mut transaction, sql::is_step_done(), &position.params()[1..]).await?;
    if done.is_empty() {
        if !is_done::<D>(spelling, &mut transaction, effect).await? {
            D::execute(&mut transaction, sql::step(text), &[]).await?;
        }
        D::execute(&mut transaction, sql::step_done(), &position.params()).await?;
    }
    transaction.commit().await
}

fn passes<D: Driver>(error: &sqlx::Error) -> bool {
    match D::classify(error) {
        Fault::Conflict(cause) | Fault::Connection(cause) | Fault::Elsewhere(cause) | Fault::Retryable(cause) => {
            cause.retry() == Retry::Later
        }
        Fault::Schema | Fault::Refused => false,
    }
}

async fn is_done<D: Driver>(
    spelling: &'static dyn Spelling,
    connection: &mut Raw<D>,
    effect: &Effect<'_>,
) -> Result<bool, sqlx::Error> {
    let Some((statement, names)) = sql::presence(spelling, effect) else {
        return Ok(false);
    };
    let params: Vec<Param<'_>> = names.into_iter().map(Param::Text).collect();
    let is_there = !D::query(connection, statement, &params).await?.is_empty();
    Ok(is_there == effect.leaves_it_there())
}
