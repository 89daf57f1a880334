//! From an older schema to the program's own: what a database has of the migrations, and running
//! those that it lacks.
//!
//! `script` reads a migration's text, `window` compares and decides, both pure; `run` takes the
//! steps, `fill` reads columns anew from the stored texts. MySQL's statements on tables are no part
//! of a transaction: a crash may fall between a statement and the note that it has run. So every
//! step is one whose effect can be seen in the schema, or one that may run twice.

mod script;

mod sql;

mod window;

mod memory;

mod fill;

mod run;

mod adopt;

mod prepare;

use async_trait::async_trait;
use serde::Serialize;

use crate::adoption::BrokenRows;
use crate::catalog;
use crate::connections::failure;
use crate::driver::Driver;
use crate::error::StoreError;
use crate::live::LiveTable;
use crate::progress::Progress;
use crate::sql_store::SqlStore;

pub use adopt::{AdoptOptions, Adopted, AdoptedKind, AdoptionBlockers};
use memory::{BOOKKEEPING, steps, title};
pub use prepare::Prepare;
pub use script::ScriptError;
pub use window::{Applied, MigrationState};

/// How to migrate.
#[derive(Clone, Copy, Debug, Default)]
pub struct MigrateOptions {
    /// Most rows a second that fills read; `None`: as fast as the database.
    pub rows_per_second: Option<f64>,
    /// Fills columns once more that earlier migrations filled, in a database that lacks nothing.
    pub refill: bool,
    /// Rows that fills read at once; `None`: 200.
    pub page_rows: Option<u32>,
}

/// A migration that has run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Migrated {
    /// The schema that it led to.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Steps that ran now.
    pub steps: usize,
    /// Rows that fills changed now.
    pub rows_filled: u64,
}

/// A step that is still to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PendingStep {
    /// `0002_model_budget`.
    pub migration: String,
    /// Such as `add column model.budget`.
    pub step: String,
    /// The statement; fills have none.
    pub sql: Option<String>,
}

/// Why a database could not be migrated.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The database could not be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A text among the program's migrations is none.
    #[error("migration {migration}: {source}")]
    Script {
        /// `0002_model_budget`.
        migration: String,
        /// Where and why.
        #[source]
        source: ScriptError,
    },
    /// A step failed. What ran before it stays, and the next run goes on with it.
    #[error("migration {migration}, {step}: {source}")]
    Step {
        /// `0002_model_budget`.
        migration: String,
        /// Such as `add column model.budget`.
        step: String,
        /// As the database says it.
        #[source]
        source: Box<StoreError>,
    },
    /// This program must not change that database.
    #[error("{0}")]
    Refused(String),
    /// The tables of another program hold what ours cannot.
    #[error("{0}")]
    AdoptionBlocked(AdoptionBlockers),
    /// All else is done, and tables keep the check of an older program.
    #[error("{0}")]
    Broken(BrokenRows),
    /// Somebody else migrates now: the connection that held the lock is gone.
    #[error("the migration lock was lost: the connection that held it was closed")]
    LockLost,
}

/// The store as `kindex migrate` sees it.
#[async_trait]
pub trait Migrations: Send + Sync {
    /// How the database stands to this program.
    async fn migration_state(&self) -> Result<MigrationState, StoreError>;

    /// The tables that the database has, whoever made them.
    async fn tables(&self) -> Result<Vec<LiveTable>, StoreError>;

    /// What [`migrate`](Self::migrate) would do, in order; nothing is changed.
    async fn pending(&self) -> Result<Vec<PendingStep>, MigrateError>;

    /// Runs what the database lacks. Waits where another one migrates, and goes on where an
    /// earlier run ended. An empty database gets the program's schema at once. The checks of tables that an older
    /// program made are replaced in the end.
    ///
    /// # Guarantees
    /// A migration is remembered as finished only once all its steps have run. Of several that
    /// begin at once one runs, and the others find nothing left to do.
    ///
    /// # Errors
    /// See [`MigrateError`]. Tables that are not those of this program although no migration is lacking are a
    /// [`StoreError::Schema`].
    async fn migrate(&self, options: &MigrateOptions, progress: &dyn Progress) -> Result<Vec<Migrated>, MigrateError>;

    /// What [`adopt`](Self::adopt) would do, in order; nothing is changed.
    async fn adoption(&self) -> Result<Vec<PendingStep>, MigrateError>;

    /// Takes up the tables of another program, such as Michelangelo's own ingester, which must not
    /// write meanwhile: they become what an empty database gets, and keep every row. Goes on where an
    /// earlier run ended. A database that is this program's and lacks nothing is left alone.
    ///
    /// # Guarantees
    /// No statement runs before all values are known to fit. No program of ours writes to the
    /// database before all of it is done.
    ///
    /// # Errors
    /// See [`MigrateError`].
    async fn adopt(&self, options: &AdoptOptions, progress: &dyn Progress) -> Result<Adopted, MigrateError>;
}

#[async_trait]
impl<D: Driver> Migrations for SqlStore<D> {
    async fn migration_state(&self) -> Result<MigrationState, StoreError> {
        Ok(window::judge(&self.applied().await?, self.registry.migrations))
    }

    async fn tables(&self) -> Result<Vec<LiveTable>, StoreError> {
        catalog::tables(&self.connections).await
    }

    async fn pending(&self) -> Result<Vec<PendingStep>, MigrateError> {
        let applied = self.applied().await?;
        let first = match window::judge(&applied, self.registry.migrations) {
            MigrationState::Behind { first } => first,
            MigrationState::Current => return self.pending_checks().await,
            state => {
                return state
                    .refusal(self.registry.migrations)
                    .map_or(Ok(Vec::new()), |why| Err(MigrateError::Refused(why)));
            }
        };
        let spelling = self.connections.driver.spelling();
        let mut pending = Vec::new();
        for migration in &self.registry.migrations[first..] {
            let done = applied.iter().find(|it| it.number == migration.number);
            let steps = steps(migration, spelling)?;
            pending.extend(
                steps
                    .iter()
                    .skip(done.map_or(0, |it| it.steps_done))
                    .map(|step| PendingStep {
                        migration: title(migration),
                        step: step.title(),
                        sql: match step {
                            script::Step::Statement { sql, .. } => Some((*sql).to_owned()),
                            script::Step::Fill { .. } => None,
                        },
                    }),
            );
        }
        pending.extend(self.pending_checks().await?);
        Ok(pending)
    }

    async fn migrate(&self, options: &MigrateOptions, progress: &dyn Progress) -> Result<Vec<Migrated>, MigrateError> {
        let created = self.connections.driver.create_database().await;
        created.map_err(|error| failure::<D>(BOOKKEEPING, error))?;
        let mut lock = run::Lock::take(self, progress).await?;
        let migrated = match self.migration_state().await? {
            MigrationState::Untracked => {
                self.refuse_foreign().await?;
                Vec::new()
            }
            MigrationState::Behind { first } => run::run(self, &mut lock, first, options, progress).await?,
            MigrationState::Current if options.refill => run::refill(self, options, progress).await?,
            MigrationState::Current => Vec::new(),
            state => {
                let refusal = state.refusal(self.registry.migrations);
                return refusal.map_or(Ok(Vec::new()), |why| Err(MigrateError::Refused(why)));
            }
        };
        // Kindex's own tables, which no migration names, and a note of what the tables are now: programs whose account
        // may only read and write find all that they need.
        self.prepare().await?;
        self.renew_checks(&mut lock, progress).await?;
        Ok(migrated)
    }

    async fn adoption(&self) -> Result<Vec<PendingStep>, MigrateError> {
        self.pending_adoption().await
    }

    async fn adopt(&self, options: &AdoptOptions, progress: &dyn Progress) -> Result<Adopted, MigrateError> {
        self.take_up(options, progress).await
    }
}
