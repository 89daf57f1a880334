//! NATS, as the flags say: it is fed from the outbox, and the events of other services are read from it. What both need
//! is there before anything begins.

use std::sync::Arc;

use jiff::Timestamp;
use kindex_commands::database::{OpenedStorage, Store};
use kindex_commands::error::{CommandError, CommandResult};
use kindex_commands::nats;
use kindex_deletion::peer::Transport;
use kindex_model::kind::Registry;
use kindex_nats::partitions::Partitions;
use kindex_nats::{Connection, Feeders, Metrics, NatsSource};
use kindex_store::Outbox;
use tokio::sync::watch;

use super::args::{FeedArgs, PeerArgs};

/// What feeds the server that the flags name; `None` where they name none, or one that is only read. A server that is
/// away is no error: events wait in the outbox.
///
/// # Errors
/// Nothing to feed from, and a server that will never take anything.
pub(super) async fn feeders(
    registry: &Registry,
    args: &FeedArgs,
    peers: &PeerArgs,
    storage: Option<&OpenedStorage>,
    metrics: &prometheus::Registry,
) -> CommandResult<Option<Arc<Feeders>>> {
    let Some(server) = args.server.server() else {
        return Ok(None);
    };
    if !registry.kinds.iter().any(|kind| kind.events) {
        if peers.are_heard_over_nats() {
            return Ok(None);
        }
        let error = CommandError::usage("--nats: no kind has events");
        return Err(error.hint("set `events = true` at a kind in crds.toml, and build"));
    }
    let outbox: Arc<dyn Outbox> = database(storage)?.clone();
    let connection = Connection::open(&server).await;
    let connection = connection.map_err(|error| nats::unusable(&error))?;
    let metrics = Metrics::new(metrics);
    let feeders = Feeders::new(registry, &connection, &outbox, args.nats_partitions, &metrics);
    Ok(Some(Arc::new(feeders)))
}

/// What the events of other services are read from.
///
/// # Errors
/// No server is named, or one that will never answer.
pub(super) async fn events(args: &FeedArgs, peers: &PeerArgs) -> CommandResult<Transport> {
    peers.check(args)?;
    let Some(server) = args.server.server().filter(|_| peers.are_heard_over_nats()) else {
        return Ok(peers.transport(None));
    };
    let connection = Connection::open(&server).await;
    let connection = connection.map_err(|error| nats::unusable(&error))?;
    // One process reads all of them, for as long as it runs.
    let (_, partitions) = watch::channel(Partitions::All);
    let source = NatsSource::new(connection, partitions, Timestamp::now);
    Ok(peers.transport(Some(Arc::new(source))))
}

fn database(storage: Option<&OpenedStorage>) -> CommandResult<&Store> {
    match storage {
        Some(OpenedStorage::On(store)) => Ok(store),
        Some(OpenedStorage::Off(reason)) => Err(CommandError::usage(format_args!(
            "--nats: events are read from SQL, and there is no database: {reason}"
        ))),
        None => Err(
            CommandError::usage("--nats: events are read from SQL, and there is no database")
                .hint("name one with --database or --config"),
        ),
    }
}
