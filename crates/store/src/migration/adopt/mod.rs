//! Adopts a database of another program, such as Michelangelo's own ingester: changes each of its tables to those of
//! this program by one statement, and fills its rows. What is missing is read from the tables each time, so that an
//! interrupted run can be continued.
//!
//! `definition` reads the wanted tables and `alter` compares, both pure; `check` verifies that all values fit before
//! anything is changed; `rows` adopts the rows. `renew` is for tables of an older version of this program.

mod sql;

mod check;

mod rows;

mod renew;

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use serde::Serialize;

use kindex_model::kind::Kind;

use crate::adoption::{AdoptionBlocker, AdoptionSql, Change, Definition};
use crate::connections::failure;
use crate::driver::{Driver, Param};
use crate::error::StoreError;
use crate::live::LiveTable;
use crate::migration::memory::{BOOKKEEPING, note};
use crate::migration::run::Lock;
use crate::migration::window::{MigrationState, adoption, judge};
use crate::migration::{MigrateError, PendingStep, run, sql as migration_sql};
use crate::progress::Progress;
use crate::sql_store::SqlStore;
use crate::statements::history::table_and_columns;
use crate::statements::{bookkeeping, tables};
use crate::{catalog, schema};

/// The number under which the table of migrations remembers an adoption.
const NUMBER: i64 = 0;
/// Its name there.
const NAME: &str = "adopted";
/// What errors name as their kind.
const SUBJECT: &str = "the adoption";

/// How to adopt a database.
#[derive(Clone, Debug, Default)]
pub struct AdoptOptions {
    /// Names of the kinds all of whose live rows are of archived objects.
    pub archived: Vec<&'static str>,
    /// Most rows a second that are adopted; `None`: as fast as the database.
    pub rows_per_second: Option<f64>,
    /// Rows that are adopted at once; `None`: 200.
    pub page_rows: Option<u32>,
}

/// What became of a database that was adopted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Adopted {
    /// Statements on tables that ran now.
    pub statements: usize,
    /// Kinds whose rows were adopted now.
    pub kinds: Vec<AdoptedKind>,
}

/// What became of a kind's rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AdoptedKind {
    /// The kind.
    pub kind: &'static str,
    /// Its rows.
    pub rows: u64,
    /// Rows that were written.
    pub changed: u64,
    /// Of these, rows that say now that their objects are archived.
    pub evicted: u64,
    /// Rows whose text is no object, which stay as they are.
    pub unread: u64,
}

/// Everything that keeps a database from being adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptionBlockers(pub Vec<AdoptionBlocker>);

impl fmt::Display for AdoptionBlockers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the tables cannot be adopted as they are; nothing was changed")?;
        self.0.iter().try_for_each(|blocker| write!(f, "\n  {blocker}"))
    }
}

impl<D: Driver> SqlStore<D> {
    /// What [`adopt`](super::Migrations::adopt) would do.
    pub(super) async fn pending_adoption(&self) -> Result<Vec<PendingStep>, MigrateError> {
        let (sql, _) = self.may_adopt().await?;
        let changes = self.changes(sql).await?.into_iter().map(|change| PendingStep {
            migration: NAME.to_owned(),
            step: change.title,
            sql: Some(change.sql),
        });
        let rows = self.registry.kinds.iter().map(|kind| PendingStep {
            migration: NAME.to_owned(),
            step: format!("take up the rows of {}", kind.table),
            sql: None,
        });
        Ok(changes.chain(rows).collect())
    }

    pub(super) async fn take_up(
        &self,
        options: &AdoptOptions,
        progress: &dyn Progress,
    ) -> Result<Adopted, MigrateError> {
        let mut lock = Lock::take(self, progress).await?;
        let (sql, state) = self.may_adopt().await?;
        let changes = self.changes(sql).await?;
        let mut adopted = Adopted::default();
        if changes.is_empty() && state == MigrationState::Current {
            return Ok(adopted);
        }
        self.begin_adoption(sql).await?;
        for change in &changes {
            lock.check(self).await?;
            progress.begin(&change.title, None);
            if let Err(source) = run::change(self, None, &change.sql, progress).await {
                // The server may have been at it still for a run that was killed.
                let is_lacking = self.changes(sql).await?.contains(change);
                if is_lacking {
                    return Err(step(&change.title, source));
                }
            }
            progress.end();
            adopted.statements += 1;
        }
        self.probe_tables().await?;
        adopted.kinds = self.take_up_rows(&mut lock, options, progress).await?;
        self.record_all_migrations().await?;
        self.record_schema().await?;
        let params = [Param::Time(Timestamp::now()), Param::Int(NUMBER)];
        note(self, migration_sql::finish(), &params).await?;
        Ok(adopted)
    }

    /// Why the tables of an untracked database are none to write to, if they are not: before
    /// anything is created beside them.
    pub(in super::super) async fn refuse_foreign(&self) -> Result<(), StoreError> {
        let live = catalog::tables(&self.connections).await?;
        for kind in self.registry.kinds {
            for (name, columns) in tables_of(kind) {
                let Some(table) = live.iter().find(|table| table.name == name) else {
                    continue;
                };
                let lacks = |column: &&&str| table.columns.iter().all(|it| it.name != **column);
                if let Some(lacking) = columns.iter().find(lacks) {
                    let way = match self.connections.driver.spelling().adoption() {
                        Some(_) => "`kindex migrate --adopt --dry-run` tells what would make it ours",
                        None => "use an empty database",
                    };
                    return Err(StoreError::Schema(format!(
                        "table `{name}` was made by another program: it has no column `{lacking}`; {way}"
                    )));
                }
            }
        }
        Ok(())
    }

    async fn may_adopt(&self) -> Result<(&'static dyn AdoptionSql, MigrationState), MigrateError> {
        let spelling = self.connections.driver.spelling();
        let Some(sql) = spelling.adoption() else {
            let products = spelling.products();
            let why = format!("{products} databases are Kindex's own: nothing is there to be adopted");
            return Err(MigrateError::Refused(why));
        };
        let state = judge(&self.applied().await?, self.registry.migrations);
        match &state {
            MigrationState::Untracked | MigrationState::Adopting | MigrationState::Current => Ok((sql, state)),
            other => Err(MigrateError::Refused(
                other.refusal(self.registry.migrations).unwrap_or_else(|| {
                    "the database has the schema of a newer program, which has to look after it".to_owned()
                }),
            )),
        }
    }

    /// Everything that is lacking, once all of it is known to be possible.
    async fn changes(&self, sql: &dyn AdoptionSql) -> Result<Vec<Change>, MigrateError> {
        let live = catalog::settled_tables(&self.connections).await?;
        let wanted = sql.definitions(self.schema).map_err(|line| {
            MigrateError::Refused(format!(
                "the schema of this program has a line that it cannot read: {line}"
            ))
        })?;
        let (mut changes, mut blockers) = (Vec::new(), Vec::new());
        for kind in self.registry.kinds {
            for (name, _) in tables_of(kind) {
                let is_main = name == kind.table;
                let extracted = |name: &str| is_main && kind.columns.iter().any(|column| column.name == name);
                let Some(wanted) = wanted.iter().find(|it| it.table == name) else {
                    continue;
                };
                let found = live.iter().find(|table| table.name == name);
                match sql.change(found, wanted, &extracted) {
                    Err(reasons) => blockers.extend(reasons),
                    Ok(None) => {}
                    Ok(Some(change)) => {
                        blockers.extend(self.value_blockers(sql, &live, found, wanted, &extracted).await?);
                        changes.push(change);
                    }
                }
            }
        }
        if blockers.is_empty() {
            return Ok(changes);
        }
        Err(MigrateError::AdoptionBlocked(AdoptionBlockers(blockers)))
    }

    async fn value_blockers(
        &self,
        sql: &dyn AdoptionSql,
        live: &[LiveTable],
        found: Option<&LiveTable>,
        wanted: &Definition<'_>,
        extracted: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Vec<AdoptionBlocker>, StoreError> {
        match found {
            Some(found) => check::check(&self.connections, sql, found, wanted, extracted).await,
            None => Ok(other_spelling(sql, live, wanted.table).into_iter().collect()),
        }
    }

    /// From here on no program writes before the adoption has ended.
    async fn begin_adoption(&self, adoption: &dyn AdoptionSql) -> Result<(), StoreError> {
        let failed = |error| failure::<D>(BOOKKEEPING, error);
        for text in schema::statements(self.schema)
            .into_iter()
            .filter(|text| adoption.is_of_kindex(text))
        {
            let done = self.connections.execute(bookkeeping::schema_statement(text), &[]).await;
            done.map_err(failed)?;
        }
        note(self, sql::begin_again(), &[Param::Time(Timestamp::now())]).await?;
        let params = [
            Param::Int(NUMBER),
            Param::Text(NAME),
            Param::Text(""),
            Param::Int(NUMBER),
            Param::Int(0),
            Param::Time(Timestamp::now()),
            Param::Null,
        ];
        note(self, migration_sql::begin(self.connections.driver.spelling()), &params).await
    }

    async fn take_up_rows(
        &self,
        lock: &mut Lock<D>,
        options: &AdoptOptions,
        progress: &dyn Progress,
    ) -> Result<Vec<AdoptedKind>, MigrateError> {
        let applied = self.applied().await?;
        let begun = adoption(&applied).0;
        let (done, mut after) = begun.map_or((0, None), |it| (it.steps_done, it.fill_after));
        let mut kinds = Vec::new();
        for (index, kind) in self.registry.kinds.iter().enumerate().skip(done) {
            lock.check(self).await?;
            let taken = rows::take_up(self, kind, after.take(), options, progress).await;
            kinds.push(taken.map_err(|source| step(&format!("take up the rows of {}", kind.table), source))?);
            let done = Param::Int(i64::try_from(index + 1).unwrap_or(i64::MAX));
            note(self, migration_sql::step_done(), &[done, Param::Int(NUMBER), done]).await?;
        }
        Ok(kinds)
    }
}

/// The tables of a kind with the columns that are written.
fn tables_of(kind: &Kind) -> Vec<(String, Vec<&'static str>)> {
    let history = kind.history.then(|| table_and_columns(kind));
    tables(kind).into_iter().chain(history).collect()
}

/// A table that is there under the name that a later form of Michelangelo's schema gives it.
fn other_spelling(sql: &dyn AdoptionSql, live: &[LiveTable], wanted: &str) -> Option<AdoptionBlocker> {
    let plain = |name: &str| name.replace('_', "");
    let found: BTreeSet<&str> = live.iter().map(|table| table.name.as_str()).collect();
    let other = found.into_iter().find(|name| plain(name) == plain(wanted))?;
    Some(sql.other_spelling(other, wanted))
}

fn step(title: &str, source: StoreError) -> MigrateError {
    MigrateError::Step {
        migration: NAME.to_owned(),
        step: title.to_owned(),
        source: Box::new(source),
    }
}
