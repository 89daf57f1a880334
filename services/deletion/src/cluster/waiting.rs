//! Holders that wait in turn for the object which they hold.

use std::collections::BTreeSet;

use kindex_kube_client::ClusterError;

use super::failed;
use crate::archive::cycle::Search;
use crate::archive::{Archive, Holder};
use crate::decide::Seen;

/// With so many known that wait for an object, no more are looked for: that is read in each sweep over its holders.
const WAITING_MAX: usize = 200;

/// Who waits for an object, which is read once, and only if somebody holds the object by a field alone.
pub(super) struct Waiting<'a> {
    target: &'a Seen,
    known: Option<BTreeSet<String>>,
}

impl<'a> Waiting<'a> {
    pub(super) fn of(target: &'a Seen) -> Self {
        Self { target, known: None }
    }

    /// Leaves those holders out that hold the object by a field alone and wait for it themselves. There is nothing of
    /// theirs that anybody could release: both would wait for ever.
    pub(super) async fn leave_out(
        &mut self,
        archive: &dyn Archive,
        holders: &mut Vec<Holder>,
    ) -> Result<(), ClusterError> {
        let target = self.target;
        let by_field = |holder: &Holder| holder.reference.is_none() && holder.uid != target.uid;
        if !holders.iter().any(by_field) {
            return Ok(());
        }
        let known = match self.known.take() {
            Some(known) => known,
            None => uids_waiting_for(archive, target).await?,
        };
        holders.retain(|holder| !(by_field(holder) && known.contains(&holder.uid)));
        self.known = Some(known);
        Ok(())
    }
}

/// The uids of those that are leaving and wait for an object.
async fn uids_waiting_for(archive: &dyn Archive, target: &Seen) -> Result<BTreeSet<String>, ClusterError> {
    let mut search = Search::new(target.clone());
    while let Some(holder) = search.next_holder_until(WAITING_MAX) {
        let waiting = archive.waiting_for(&holder).await.map_err(|error| failed(&error))?;
        search.awaited_by(&holder, waiting);
    }
    Ok(search.into_waiting())
}
