//! Finds the version of the cluster that a row holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cluster::SimCluster;
use super::database::SimRow;
use super::object::Revision;

/// The version that a row holds, byte for byte, even if the cluster has lost it.
pub(crate) fn stored_revision<'a>(row: &SimRow, cluster: &'a SimCluster) -> Option<&'a Revision> {
    find_text(row, &cluster.revisions).or_else(|| find_text(row, &cluster.lost))
}

/// Whether a row holds a version that the cluster lost when it was restored.
pub(crate) fn holds_lost_version(row: &SimRow, cluster: &SimCluster) -> bool {
    find_text(row, &cluster.revisions).is_none() && find_text(row, &cluster.lost).is_some()
}

fn find_text<'a>(row: &SimRow, revisions: &'a BTreeMap<String, Vec<Arc<Revision>>>) -> Option<&'a Revision> {
    let known = revisions.get(&*row.object().metadata.uid.0)?;
    let text = row.object().text();
    let found = known.iter().rev().find(|revision| revision.object.text() == text);
    found.map(|revision| &**revision)
}
