//! `kindex release`: takes the finalizer off all objects, so that no deletion waits for an
//! ingester that was switched off.

use std::sync::Arc;
use std::time::Duration;

use kindex_runtime::cluster::kube_cluster::KubeCluster;
use kindex_runtime::kind::Registry;
use kindex_runtime::release::{Options, Place, ReleaseError, Released, release};
use kindex_runtime::store::StoreError;

use crate::cli::{Form, ReleaseArgs};
use crate::error::{CommandError, CommandResult, chain};
use crate::output::{document, table};
use crate::progress::Bar;
use crate::{say, sides};

/// Releases kind by kind and prints what was done.
pub(crate) async fn run(registry: &Registry, args: &ReleaseArgs) -> CommandResult {
    let kinds = sides::kinds(registry, &args.kinds)?;
    if args.objects_per_second.is_some_and(|rate| rate.is_nan() || rate <= 0.0) {
        return Err(CommandError::usage("--objects-per-second must be above 0"));
    }
    let settle = Duration::try_from_secs_f64(args.settle)
        .map_err(|error| CommandError::usage(format_args!("--settle {}: {error}", args.settle)))?;
    let options = Options {
        dry_run: args.dry_run,
        objects_per_second: args.objects_per_second,
        settle,
        ..Options::default()
    };
    let place = place(registry, args).await?;
    let bar = Bar::new();
    let mut released: Vec<Released> = Vec::new();
    for kind in kinds {
        let is_first = released.iter().all(|kind| kind.released == 0);
        let done = release(&place, kind, is_first, &options, &bar).await;
        released.push(done.map_err(|error| stopped(&error))?);
    }
    if let Some(storage) = &place.storage {
        storage.close().await;
    }
    say::print(render(&released, args.output)?)?;
    judge(&released)
}

/// Both sides, or the cluster alone where SQL is not to be asked.
async fn place(registry: &Registry, args: &ReleaseArgs) -> CommandResult<Place> {
    let access = sides::cluster(&args.sides).await?;
    let cluster = KubeCluster::new(access.config).map_err(|error| CommandError::usage(chain(&error)))?;
    let storage = match args.force {
        true => None,
        false => {
            let storage = sides::store(registry, &args.sides.store)?;
            let unready = |error: StoreError| {
                CommandError::failure(chain(&error))
                    .hint("nothing is released that SQL may lack; --force releases without a database")
            };
            storage.prepare().await.map_err(unready)?;
            Some(storage)
        }
    };
    Ok(Place {
        platform: registry.platform,
        cluster: Arc::new(cluster),
        storage,
    })
}

fn stopped(error: &ReleaseError) -> CommandError {
    let failure = CommandError::failure(chain(error));
    match error {
        ReleaseError::Ingester { .. } => failure.hint(
            "nothing is released. Switch the ingester off first (metadataStorage.enableMetadataStorage: false, or stop \
             the process), or say --force",
        ),
        ReleaseError::Cluster { .. } | ReleaseError::Store(_) => {
            failure.hint("run the same command again: what was released stays released")
        }
    }
}

fn render(released: &[Released], form: Form) -> CommandResult<String> {
    if form != Form::Table {
        return document(&released, form);
    }
    let rows = released.iter().map(|kind| {
        let numbers = [
            kind.objects,
            kind.guarded,
            kind.released,
            kind.gone,
            kind.stored,
            kind.unstored,
            kind.contended,
        ];
        std::iter::once(kind.kind.to_owned())
            .chain(numbers.map(|number| number.to_string()))
            .collect()
    });
    let heads = [
        "kind",
        "objects",
        "guarded",
        "released",
        "gone",
        "stored",
        "unstored",
        "contended",
    ];
    Ok(table(&heads, rows))
}

fn judge(released: &[Released]) -> CommandResult {
    let unstored: u64 = released.iter().map(|kind| kind.unstored).sum();
    let contended: u64 = released.iter().map(|kind| kind.contended).sum();
    if unstored + contended == 0 {
        return Ok(());
    }
    let message = format!(
        "{unstored} objects stay guarded, for the database refuses them, {contended}, for they change all the time"
    );
    Err(CommandError::failure(message).hint(
        "`kindex quarantine list` says why they are refused; --force releases them all the same; run the command again \
         for the others",
    ))
}
