//! `kindex migrate`: brings a database to the schema of this program.

use kindex_model::kind::Registry;
use kindex_store::{
    AdoptOptions, Adopted, MigrateError, MigrateOptions, Migrated, MigrationState, PendingStep, StoreError,
};

use crate::cli::{Form, MigrateArgs};
use crate::data_dir::DataDir;
use crate::database::{self, Store};
use crate::error::{CommandError, CommandResult, chain};
use crate::output::{document, table};
use crate::progress::Bar;
use crate::{say, sides};

/// Runs what the database lacks, or says what it is.
pub async fn run(registry: &Registry, args: &MigrateArgs) -> CommandResult {
    if args.rows_per_second.is_some_and(|rate| rate.is_nan() || rate <= 0.0) {
        return Err(CommandError::usage("--rows-per-second must be above 0"));
    }
    let store = sides::store_to_prepare(registry, &args.store)?;
    let text = if args.adopt {
        adopt(registry, &store, args).await?
    } else if args.dry_run {
        let pending = store.pending().await.map_err(|error| failure(&error))?;
        let state = store.migration_state().await;
        let state = state.map_err(|error| CommandError::failure(chain(&error)))?;
        show_pending(&pending, &state, args.output)?
    } else {
        let options = MigrateOptions {
            rows_per_second: args.rows_per_second,
            refill: args.refill,
            ..MigrateOptions::default()
        };
        // For the report alone: what is wrong, the migration says.
        let was_untracked = matches!(store.migration_state().await, Ok(MigrationState::Untracked));
        let migrated = store.migrate(&options, &Bar::new()).await;
        show_migrated(&migrated.map_err(|error| failure(&error))?, was_untracked, args.output)?
    };
    store.close().await;
    say::print(&text)?;
    Ok(())
}

async fn adopt(registry: &Registry, store: &Store, args: &MigrateArgs) -> CommandResult<String> {
    let archived = match args.archived.as_slice() {
        [] => Vec::new(),
        named => sides::kinds(registry, named)?,
    };
    if args.dry_run {
        let pending = store.adoption().await.map_err(|error| failure(&error))?;
        return show_steps(&pending, args.output);
    }
    let options = AdoptOptions {
        archived: archived.iter().map(|kind| kind.name).collect(),
        rows_per_second: args.rows_per_second,
        ..AdoptOptions::default()
    };
    let adopted = store.adopt(&options, &Bar::new()).await;
    show_adopted(&adopted.map_err(|error| failure(&error))?, args.output)
}

/// The database of a data directory follows the program that opens it: nobody else writes to it.
pub async fn embedded(registry: &Registry, data_dir: &DataDir) -> CommandResult {
    let store = database::open(registry, &data_dir.default_database())?;
    let migrated = store.migrate(&MigrateOptions::default(), &Bar::new()).await;
    store.close().await;
    let migrated = match migrated {
        // A reason for not being ready, which the roles say for as long as it lasts.
        Err(MigrateError::Store(error @ StoreError::Schema(_))) => {
            tracing::warn!("The database is not migrated: {error}");
            return Ok(());
        }
        migrated => migrated.map_err(|error| failure(&error))?,
    };
    for it in migrated {
        let (number, name, rows) = (it.number, it.name, it.rows_filled);
        tracing::info!("Migrated the database to schema {number:04}_{name}, {rows} rows filled");
    }
    Ok(())
}

fn failure(error: &MigrateError) -> CommandError {
    let failure = CommandError::failure(chain(error));
    match error {
        MigrateError::Store(StoreError::Schema(_)) | MigrateError::Script { .. } | MigrateError::Refused(_) => failure,
        MigrateError::Store(_) | MigrateError::Step { .. } | MigrateError::LockLost => {
            failure.hint("what ran stays; once the cause is gone, the same command goes on from there")
        }
        MigrateError::AdoptionBlocked(_) | MigrateError::Broken(_) => {
            failure.hint("fix the problem above, then run the same command again")
        }
    }
}

fn show_pending(pending: &[PendingStep], state: &MigrationState, form: Form) -> CommandResult<String> {
    if form != Form::Table {
        return document(&pending, form);
    }
    if pending.is_empty() {
        return Ok(match state {
            MigrationState::Untracked => {
                "the database has no recorded migrations: tables would be created or adopted\n"
            }
            _ => "nothing to do: the database has the schema of this program\n",
        }
        .to_owned());
    }
    show_steps(pending, form)
}

/// The first line of each statement alone: a document has all of it.
fn show_steps(pending: &[PendingStep], form: Form) -> CommandResult<String> {
    if form != Form::Table {
        return document(&pending, form);
    }
    let rows = pending.iter().map(|step| {
        let sql = step.sql.as_deref().unwrap_or("from the stored objects");
        let sql = sql.lines().next().unwrap_or_default().to_owned();
        vec![step.migration.clone(), step.step.clone(), sql]
    });
    Ok(table(&["migration", "step", "statement"], rows))
}

fn show_adopted(adopted: &Adopted, form: Form) -> CommandResult<String> {
    if form != Form::Table {
        return document(adopted, form);
    }
    if adopted.kinds.is_empty() {
        return Ok("the database has the schema of this program\n".to_owned());
    }
    let rows = adopted.kinds.iter().map(|it| {
        let numbers = [it.rows, it.changed, it.evicted, it.unread].map(|number| number.to_string());
        [vec![it.kind.to_owned()], numbers.to_vec()].concat()
    });
    let mut text = table(&["kind", "rows", "written", "archived", "unread"], rows);
    text.push_str(&format!("\n{} statements on tables ran\n", adopted.statements));
    Ok(text)
}

fn show_migrated(migrated: &[Migrated], was_untracked: bool, form: Form) -> CommandResult<String> {
    if form != Form::Table {
        return document(&migrated, form);
    }
    if migrated.is_empty() {
        let made = "tables were made, or those that were there taken up: ";
        let made = if was_untracked { made } else { "" };
        return Ok(format!("{made}the database has the schema of this program\n"));
    }
    let rows = migrated.iter().map(|it| {
        let title = format!("{:04}_{}", it.number, it.name);
        vec![title, it.steps.to_string(), it.rows_filled.to_string()]
    });
    Ok(table(&["migration", "steps", "rows filled"], rows))
}
