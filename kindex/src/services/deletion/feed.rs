//! Feeding NATS from the outbox, as the flags say: what it needs is there before anything begins.

use std::sync::Arc;

use kindex_model::kind::Registry;
use kindex_nats::{Connection, Feeding, Figures};
use kindex_store::Outbox;

use super::args::FeedArgs;
use crate::database::{Rows, Store};
use crate::error::{CommandError, CommandResult};
use crate::nats;

/// What feeds the server that the flags name; `None` where they name none. A server that is away is no error: events
/// wait in the outbox.
///
/// # Errors
/// Nothing to feed from, and a server that will never take anything.
pub(super) async fn feeding(
    registry: &Registry,
    args: &FeedArgs,
    rows: Option<&Rows>,
    figures: &prometheus::Registry,
) -> CommandResult<Option<Arc<Feeding>>> {
    let Some(server) = args.server.server() else {
        return Ok(None);
    };
    if !registry.kinds.iter().any(|kind| kind.events) {
        let error = CommandError::usage("--nats: no kind has events");
        return Err(error.hint("set `events = true` at a kind in crds.toml, and build"));
    }
    let outbox: Arc<dyn Outbox> = database(rows)?.clone();
    let connection = Connection::open(&server).await;
    let connection = connection.map_err(|error| nats::unusable(&error))?;
    let figures = Figures::new(figures);
    let feeding = Feeding::new(registry, &connection, &outbox, args.nats_partitions, &figures);
    Ok(Some(Arc::new(feeding)))
}

fn database(rows: Option<&Rows>) -> CommandResult<&Store> {
    match rows {
        Some(Rows::Stored(store)) => Ok(store),
        Some(Rows::Off(reason)) => Err(CommandError::usage(format_args!(
            "--nats: events are read from SQL, and there is no database: {reason}"
        ))),
        None => Err(
            CommandError::usage("--nats: events are read from SQL, and there is no database")
                .hint("name one with --database or --config"),
        ),
    }
}
