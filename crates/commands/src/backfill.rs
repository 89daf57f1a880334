//! `kindex backfill`: stores what the cluster lists and SQL lacks.

use kindex_maintenance::backfill::{Filled, Options, backfill};
use kindex_maintenance::sides::RepairError;
use kindex_model::kind::Registry;

use crate::cli::{BackfillArgs, Form};
use crate::error::{CommandError, CommandResult, chain};
use crate::output::{document, table};
use crate::progress::Bar;
use crate::unserved::Unserved;
use crate::{say, sides};

/// Fills kind by kind and prints what was done.
pub async fn run(registry: &Registry, args: &BackfillArgs) -> CommandResult {
    let kinds = sides::cluster_kinds(registry, &args.kinds)?;
    if args.objects_per_second.is_some_and(|rate| rate.is_nan() || rate <= 0.0) {
        return Err(CommandError::usage("--objects-per-second must be above 0"));
    }
    let options = Options {
        objects_per_second: args.objects_per_second,
        restart: args.restart,
        ..Options::default()
    };
    let sides = sides::open_to_fill(registry, &args.sides).await?;
    let prepared = sides.storage.prepare().await;
    prepared.map_err(|error| CommandError::failure(chain(&error)))?;
    let bar = Bar::new();
    let mut filled = Vec::new();
    let mut unserved = Unserved::default();
    for kind in &kinds {
        match backfill(&sides, kind, &options, &bar).await {
            Err(error) if error.is_unserved() => unserved.add(kind),
            done => filled.push(done.map_err(interrupted)?),
        }
    }
    sides.storage.close().await;
    unserved.report(&kinds)?;
    say::print(render(&filled, args.output)?)?;
    judge(&filled)
}

fn interrupted(error: RepairError) -> CommandError {
    CommandError::failure(chain(&error)).hint("run the same command again: it goes on where it was")
}

fn render(filled: &[Filled], form: Form) -> CommandResult<String> {
    match form {
        Form::Json | Form::Yaml => document(&filled, form),
        Form::Table => {
            let rows = filled.iter().map(|kind| {
                let numbers = [
                    kind.objects,
                    kind.inserted,
                    kind.updated,
                    kind.unchanged,
                    kind.newer,
                    kind.left,
                    kind.quarantined,
                ];
                std::iter::once(kind.kind.to_owned())
                    .chain(numbers.map(|number| number.to_string()))
                    .collect()
            });
            let heads = [
                "kind",
                "objects",
                "inserted",
                "updated",
                "unchanged",
                "newer",
                "left",
                "quarantined",
            ];
            Ok(table(&heads, rows))
        }
    }
}

fn judge(filled: &[Filled]) -> CommandResult {
    let quarantined: u64 = filled.iter().map(|kind| kind.quarantined).sum();
    let unreadable: u64 = filled.iter().map(|kind| kind.unreadable).sum();
    if quarantined + unreadable == 0 {
        return Ok(());
    }
    let message = format!("{quarantined} objects are refused by the database, {unreadable} are not objects");
    Err(CommandError::failure(message).hint("`kindex quarantine list` says why; the log has the others"))
}
