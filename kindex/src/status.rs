//! `kindex status`: objects in the cluster beside rows in SQL, kind by kind.

use kindex_runtime::kind::{Kind, Registry};
use kindex_runtime::store::{Counts, MetadataStorage};
use kube::Client;
use kube::api::ListParams;
use serde::Serialize;

use crate::cli::Output;
use crate::error::{CommandError, CommandResult, chain};
use crate::output::table;

/// One kind's numbers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct KindStatus {
    /// The kind.
    pub(crate) kind: &'static str,
    /// Objects in the cluster.
    pub(crate) objects: u64,
    /// Rows that say live.
    pub(crate) live: u64,
    /// Rows of objects that only SQL holds.
    pub(crate) evicted: u64,
    /// Soft-deleted rows.
    pub(crate) deleted: u64,
}

/// Counts and prints; a difference is a failure.
pub(crate) async fn run(
    registry: &Registry,
    client: &Client,
    store: &dyn MetadataStorage,
    output: Output,
) -> CommandResult {
    let statuses = collect(registry, client, store).await?;
    print!("{}", render(&statuses, output)?);
    match statuses.iter().filter(|status| status.objects != status.live).count() {
        0 => Ok(()),
        differing => Err(CommandError::failure(format_args!("{differing} kinds differ"))
            .hint("the ingester may still be at work: try again, then look at its log and /readyz")),
    }
}

/// The numbers of all kinds.
pub(crate) async fn collect(
    registry: &Registry,
    client: &Client,
    store: &dyn MetadataStorage,
) -> CommandResult<Vec<KindStatus>> {
    let mut statuses = Vec::new();
    for kind in registry.kinds {
        let Counts { live, evicted, deleted } = store
            .count(kind)
            .await
            .map_err(|error| CommandError::failure(chain(&error)))?;
        statuses.push(KindStatus {
            kind: kind.name,
            objects: objects(client, kind).await?,
            live,
            evicted,
            deleted,
        });
    }
    Ok(statuses)
}

/// One page of one object tells the rest by its remaining item count.
async fn objects(client: &Client, kind: &Kind) -> CommandResult<u64> {
    let page = crate::client::all(client, kind)
        .list_metadata(&ListParams::default().limit(1))
        .await
        .map_err(|error| CommandError::failure(format_args!("{}: {}", kind.plural, chain(&error))))?;
    let remaining = page.metadata.remaining_item_count.unwrap_or(0);
    Ok(page.items.len() as u64 + remaining.unsigned_abs())
}

/// The numbers in the form asked for.
pub(crate) fn render(statuses: &[KindStatus], output: Output) -> CommandResult<String> {
    let failed = |error: &dyn std::error::Error| CommandError::failure(chain(error));
    match output {
        Output::Json => Ok(serde_json::to_string_pretty(statuses).map_err(|error| failed(&error))? + "\n"),
        Output::Yaml => serde_saphyr::to_string(&statuses).map_err(|error| failed(&error)),
        Output::Name => Ok(statuses.iter().map(|status| format!("{}\n", status.kind)).collect()),
        Output::Table | Output::Wide => {
            let rows = statuses.iter().map(|status| {
                let numbers = [status.objects, status.live, status.evicted, status.deleted];
                std::iter::once(status.kind.to_owned())
                    .chain(numbers.map(|number| number.to_string()))
                    .collect()
            });
            Ok(table(&["kind", "objects", "live", "evicted", "deleted"], rows))
        }
    }
}
