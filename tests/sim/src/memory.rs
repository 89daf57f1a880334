//! The rules of what a watch told before it is left behind: rows have it, or something newer, also those of objects
//! that are gone; and where a kind keeps all its versions, the history has it. Looks at the cluster and at SQL alone.

use std::collections::BTreeMap;

use kindex_kube_client::WatchEvent;
use kindex_model::object::{Object, ResourceVersion};

use super::cluster::SimCluster;
use super::database::{SimDatabase, SimRow};
use super::stored::stored_revision;

/// What a watch told and no saved position has passed yet, by version.
#[derive(Debug, Default)]
pub struct UnsavedEvents(BTreeMap<ResourceVersion, Object>);

impl UnsavedEvents {
    /// A watch told this.
    pub fn note(&mut self, event: &WatchEvent) {
        if let WatchEvent::Applied(object) | WatchEvent::Deleted(object) = event {
            self.0.insert(object.metadata.resource_version, object.clone());
        }
    }

    /// Who was told is no more, and is told again.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// Nobody is told again what comes before a saved position: it is kept by then, to the byte. The
    /// echo of what an ingester did itself is no version of its own.
    pub(super) fn is_kept(
        &mut self,
        position: ResourceVersion,
        cluster: &SimCluster,
        database: &SimDatabase,
    ) -> Result<(), String> {
        let later = self.0.split_off(&ResourceVersion(position.0 + 1));
        let passed = std::mem::replace(&mut self.0, later);
        for object in passed.values() {
            the_row_follows(object, cluster, database)?;
        }
        let Some(history) = &database.history else {
            return Ok(());
        };
        for (version, object) in passed {
            let kept = history.get(&object.metadata.uid, version);
            let text = object.text();
            if kept.is_none_or(|kept| kept.text() != text) && !cluster.echoes.contains(&version.0) {
                return Err(format!("{position} is saved, and the history lacks {text}"));
            }
        }
        Ok(())
    }
}

/// The last version that was told of an object is in its row, whatever became of the object; and so is everything
/// before it. What the database refuses it cannot hold, nor what left before there was a row.
fn the_row_follows(told: &Object, cluster: &SimCluster, database: &SimDatabase) -> Result<(), String> {
    let metadata = &told.metadata;
    let (Some(row), Some(revisions)) = (
        database.rows.get(&metadata.uid),
        cluster.revisions.get(&*metadata.uid.0),
    ) else {
        return Ok(());
    };
    let version = metadata.resource_version.0;
    let mut since = revisions
        .iter()
        .filter(|revision| revision.version >= version)
        .peekable();
    let Some(revision) = since.peek().filter(|revision| revision.version == version) else {
        return Ok(());
    };
    let content = revision.content();
    let follows =
        stored_revision(row, cluster).is_some_and(|stored| stored.version >= version || stored.content() == content);
    if follows || since.any(|revision| revision.is_poison()) {
        return Ok(());
    }
    Err(format!(
        "{version} was told and left behind, and the row holds {}: {}",
        row.version,
        told.text()
    ))
}

/// The history has what a row holds.
pub(super) fn has_the_row(row: &SimRow, database: &SimDatabase) -> Result<(), String> {
    let object = row.object();
    let Some(history) = database.history.as_ref().filter(|_| row.version.0 > 0) else {
        return Ok(());
    };
    match history.get(&object.metadata.uid, row.version) {
        Some(kept) if kept.text() == object.text() => Ok(()),
        Some(kept) => Err(format!(
            "the history says {}, and the row {}",
            kept.text(),
            object.text()
        )),
        None => Err(format!("the history lacks what a row holds: {}", object.text())),
    }
}
