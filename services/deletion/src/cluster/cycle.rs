//! Objects that wait for each other, of which some are archived: who waits for each of them, the loop over the cluster
//! knows of what is live, and SQL of the rest.

use kindex_kube_client::ClusterError;

use super::follower::Follower;
use super::{Cluster, failed};
use crate::archive::cycle::Search;
use crate::decide::Seen;
use crate::notice::{Notice, cycle_notice};
use crate::object::Object;

impl Cluster {
    /// The objects around one of its references back to an object, live or archived, where there is such a path.
    /// Nothing without an archive: the loop knows the cycles of what is live.
    pub(crate) async fn cycle_of(
        &self,
        object: &Object,
        follower: &Follower,
    ) -> Result<Option<Vec<Seen>>, ClusterError> {
        let Some(archive) = self.archive.as_deref() else {
            return Ok(None);
        };
        let mut search = Search::new(Seen::of(object));
        while let Some(holder) = search.next_holder() {
            // References that the cluster alone has are known to the loop, at no cost.
            let live = follower.waiting_for(&holder).await;
            if let Some(path) = search.awaited_by(&holder, live) {
                return Ok(Some(path));
            }
            let waiting = archive.waiting_for(&holder).await.map_err(|error| failed(&error))?;
            if let Some(path) = search.awaited_by(&holder, waiting) {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// The notice of an object that waits, with the path of the cycle that it is on, if there is one. Without an answer
    /// of the archive, people are shown the holders.
    pub(crate) async fn with_cycle(
        &self,
        object: &Object,
        notice: Notice,
        follower: &Follower,
    ) -> (Notice, Option<Vec<Seen>>) {
        let found = self.cycle_of(object, follower).await;
        let path = found.unwrap_or_else(|error| {
            tracing::warn!(object = %object.key, %error, "Whether it waits for itself cannot be read");
            None
        });
        let Some(path) = path else {
            return (notice, None);
        };
        let notice = Notice {
            roots: notice.roots,
            ..cycle_notice(&Seen::keys(&path))
        };
        (notice, Some(path))
    }
}
