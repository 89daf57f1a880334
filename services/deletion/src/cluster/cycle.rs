//! Objects that wait for each other, of which some are archived: who waits for each of them, the loop over the cluster
//! knows of what is live, and SQL of the rest.

use std::time::Duration;

use kindex_kube_client::{ClusterCause, ClusterError};
use tokio::time::timeout;

use super::follower::Follower;
use super::{Cluster, failed};
use crate::archive::Archive;
use crate::archive::cycle::Search;
use crate::decide::Seen;
use crate::object::Object;

/// A search that takes longer has no answer. A connection is waited for less long, so that an outage is known as one.
const TIME_MAX: Duration = Duration::from_secs(15);

/// Whether an object waits for itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CycleAnswer {
    /// The objects around one of its references back to it, live or archived.
    Path(Vec<Seen>),
    /// There is no such path.
    Absent,
    /// The archive has not answered, or not in time.
    Unread,
    /// Nobody follows the cluster any more. Nothing is known, and nothing is to be recorded.
    Stopped,
}

impl Cluster {
    /// Whether an object waits for itself. It does not without an archive: the loop knows the cycles of what is live.
    pub(crate) async fn cycle_of(&self, object: &Object, follower: &Follower) -> CycleAnswer {
        match self.archive.as_deref() {
            Some(archive) => in_time(object, search(archive, Seen::of(object), follower)).await,
            None => CycleAnswer::Absent,
        }
    }
}

async fn search(archive: &dyn Archive, begin: Seen, follower: &Follower) -> Result<CycleAnswer, ClusterError> {
    let mut search = Search::new(begin);
    while let Some(holder) = search.next_holder() {
        // References that the cluster alone has are known to the loop, at no cost.
        let Some(live) = follower.waiting_for(&holder).await else {
            return Ok(CycleAnswer::Stopped);
        };
        if let Some(path) = search.awaited_by(&holder, live) {
            return Ok(CycleAnswer::Path(path));
        }
        let waiting = archive.waiting_for(&holder).await.map_err(|error| failed(&error))?;
        if let Some(path) = search.awaited_by(&holder, waiting) {
            return Ok(CycleAnswer::Path(path));
        }
    }
    Ok(CycleAnswer::Absent)
}

async fn in_time(object: &Object, search: impl Future<Output = Result<CycleAnswer, ClusterError>>) -> CycleAnswer {
    let why = match timeout(TIME_MAX, search).await {
        Ok(Ok(answer)) => return answer,
        // That the database is away, the store says once for all.
        Ok(Err(ClusterError::Retryable {
            cause: ClusterCause::ArchiveAway,
            ..
        })) => return CycleAnswer::Unread,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {TIME_MAX:?}"),
    };
    tracing::warn!(object = %object.key, why, "Whether it waits for itself cannot be read");
    CycleAnswer::Unread
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;
    use crate::archive::ArchiveError;
    use crate::fixture::{deleting, key};

    /// As if a database that hangs held up all searches after this one.
    #[tokio::test(start_paused = true)]
    async fn a_search_ends_without_an_answer_of_the_archive() {
        let object = deleting(key("Network", "a"), "a");
        assert_eq!(in_time(&object, pending()).await, CycleAnswer::Unread);
        for is_outage in [false, true] {
            let error = ArchiveError {
                is_outage,
                ..ArchiveError::wrong("no answer")
            };
            let search = ready(Err(failed(&error)));
            assert_eq!(in_time(&object, search).await, CycleAnswer::Unread, "{is_outage}");
        }
        for answer in [CycleAnswer::Absent, CycleAnswer::Stopped] {
            let is_stopped = answer == CycleAnswer::Stopped;
            let found = in_time(&object, ready(Ok(answer))).await;
            assert_eq!(found == CycleAnswer::Stopped, is_stopped);
        }
    }
}
