//! `kindex migrate`: brings a database to the schema of this program.

use kindex_runtime::kind::Registry;
use kindex_runtime::store::{MigrateError, MigrateOptions, Migrated, MigrationStanding, PendingStep};

use crate::cli::{Form, MigrateArgs};
use crate::data_dir::DataDir;
use crate::database;
use crate::error::{CommandError, CommandResult, chain};
use crate::output::{document, table};
use crate::progress::Bar;
use crate::sides;

/// Runs what the database lacks, or says what it is.
pub(crate) async fn run(registry: &Registry, args: &MigrateArgs) -> CommandResult {
    if args.rows_per_second.is_some_and(|rate| rate.is_nan() || rate <= 0.0) {
        return Err(CommandError::usage("--rows-per-second must be above 0"));
    }
    let store = sides::store(registry, &args.store)?;
    let text = if args.dry_run {
        let pending = store.pending().await.map_err(|error| failure(&error))?;
        let standing = store.standing().await;
        let standing = standing.map_err(|error| CommandError::failure(chain(&error)))?;
        show_pending(&pending, &standing, args.output)?
    } else {
        let options = MigrateOptions {
            rows_per_second: args.rows_per_second,
            refill: args.refill,
        };
        let migrated = store.migrate(&options, &Bar::new()).await;
        show_migrated(&migrated.map_err(|error| failure(&error))?, args.output)?
    };
    store.close().await;
    print!("{text}");
    Ok(())
}

/// The database of a data directory follows the program that opens it: nobody else writes to it.
pub(crate) async fn embedded(registry: &Registry, data_dir: &DataDir) -> CommandResult {
    let store = database::open(registry, &data_dir.default_database())?;
    let migrated = store.migrate(&MigrateOptions::default(), &Bar::new()).await;
    store.close().await;
    for it in migrated.map_err(|error| failure(&error))? {
        let (number, name, rows) = (it.number, it.name, it.rows_filled);
        tracing::info!("Migrated the database to schema {number:04}_{name}, {rows} rows filled");
    }
    Ok(())
}

fn failure(error: &MigrateError) -> CommandError {
    let said = CommandError::failure(chain(error));
    match error {
        MigrateError::Store(_) | MigrateError::Step { .. } | MigrateError::LockLost => {
            said.hint("what ran stays; once the cause is gone, the same command goes on from there")
        }
        MigrateError::Script { .. } | MigrateError::Refused(_) => said,
    }
}

fn show_pending(pending: &[PendingStep], standing: &MigrationStanding, form: Form) -> CommandResult<String> {
    if form != Form::Table {
        return document(&pending, form);
    }
    if pending.is_empty() {
        return Ok(match standing {
            MigrationStanding::Untracked => {
                "the database remembers no migration: its tables would be made or taken up\n"
            }
            _ => "nothing to do: the database has the schema of this program\n",
        }
        .to_owned());
    }
    let rows = pending.iter().map(|step| {
        let sql = step.sql.as_deref().unwrap_or("from the stored objects");
        let sql = sql.lines().next().unwrap_or_default().to_owned();
        vec![step.migration.clone(), step.step.clone(), sql]
    });
    Ok(table(&["migration", "step", "statement"], rows))
}

fn show_migrated(migrated: &[Migrated], form: Form) -> CommandResult<String> {
    if form != Form::Table {
        return document(&migrated, form);
    }
    if migrated.is_empty() {
        return Ok("the database has the schema of this program\n".to_owned());
    }
    let rows = migrated.iter().map(|it| {
        let title = format!("{:04}_{}", it.number, it.name);
        vec![title, it.steps.to_string(), it.rows_filled.to_string()]
    });
    Ok(table(&["migration", "steps", "rows filled"], rows))
}
