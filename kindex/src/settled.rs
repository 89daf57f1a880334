//! Waits until SQL holds what the cluster holds, and says kind by kind how it stands.

use std::time::Duration;

use kindex_commands::error::{CommandError, CommandResult};
use kindex_commands::status::{self, KindStatus, State};
use kindex_kube_client::kube_cluster::KubeCluster;
use kindex_model::kind::{Kind, Registry};
use kube::Client;
use tokio::time::{Instant, sleep};

use crate::services::ingester::Ingestion;

/// How often the numbers are compared.
const PERIOD: Duration = Duration::from_millis(50);

/// One kind whose objects are all stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settled {
    /// The kind.
    pub(crate) kind: &'static str,
    /// Objects in the cluster.
    pub(crate) objects: u64,
    /// Rows that are not deleted.
    pub(crate) rows: u64,
    /// Mean time from an event to its committed row, since the start; `None` before the first.
    pub(crate) mean_lag: Option<Duration>,
}

/// Waits so long, then fails with what is missing; at once on what is no database.
pub(crate) async fn wait(
    registry: &Registry,
    client: &Client,
    ingestion: &Ingestion,
    limit: Duration,
) -> CommandResult<Vec<Settled>> {
    let deadline = Instant::now() + limit;
    let kinds: Vec<&'static Kind> = registry.cluster_kinds().collect();
    let cluster = KubeCluster::from(client.clone());
    if let Some(store) = ingestion.store() {
        status::refuse_unusable(store.as_ref()).await?;
    }
    loop {
        let missing = match ingestion.store() {
            None => return Err(ingestion.off_error()),
            Some(store) => match status::collect(&kinds, &registry.platform, &cluster, store.as_ref()).await {
                Ok(kinds) => match behind(&kinds, ingestion) {
                    missing if missing.is_empty() => return Ok(summary(&kinds, ingestion)),
                    missing => missing.join("\n  "),
                },
                Err(error) => without_hint(&error),
            },
        };
        if Instant::now() >= deadline {
            let seconds = limit.as_secs();
            return Err(CommandError::failure(format_args!(
                "not everything is stored after {seconds} s:\n  {missing}"
            ))
            .hint("give it longer with --timeout SECONDS, or see why with --log debug"));
        }
        sleep(PERIOD).await;
    }
}

/// What is wrong. What to do about it is said once, at the end.
fn without_hint(error: &CommandError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn behind(kinds: &[KindStatus], ingestion: &Ingestion) -> Vec<String> {
    let mut missing: Vec<_> = kinds
        .iter()
        // A kind that the cluster does not know has no objects to wait for.
        .filter(|kind| kind.state != State::Unserved && kind.objects != kind.live + kind.departing)
        .map(|kind| format!("{}: {} objects, {} live rows", kind.kind, kind.objects, kind.live))
        .collect();
    missing.extend(ingestion.pending());
    missing
}

fn summary(kinds: &[KindStatus], ingestion: &Ingestion) -> Vec<Settled> {
    let settled = |kind: &KindStatus| Settled {
        kind: kind.kind,
        objects: kind.objects,
        rows: kind.live + kind.evicted,
        mean_lag: ingestion.mean_lag(kind.kind),
    };
    kinds.iter().map(settled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_without_a_hint_of_its_own() {
        let error = CommandError::failure("models: the cluster: refused").hint("does the cluster run?");
        assert_eq!(without_hint(&error), "error: models: the cluster: refused");
    }
}
