//! Rules for events before a saved checkpoint: rows hold their version or a newer one, also those of objects that are
//! gone, and the history of a kind that keeps one holds each of them. Reads the cluster and SQL, never an ingester.

use std::collections::BTreeMap;

use kindex_kube_client::WatchEvent;
use kindex_model::object::{Object, ResourceVersion};

use super::cluster::SimCluster;
use super::database::{SimDatabase, SimRow};
use super::stored::stored_revision;

/// Events that a watch has delivered and that are newer than the saved checkpoint, by version.
#[derive(Debug, Default)]
pub struct UnsavedEvents(BTreeMap<ResourceVersion, Object>);

impl UnsavedEvents {
    /// Records an event that a watch has delivered.
    pub fn note(&mut self, event: &WatchEvent) {
        if let WatchEvent::Applied(object) | WatchEvent::Deleted(object) = event {
            self.0.insert(object.metadata.resource_version, object.clone());
        }
    }

    /// Forgets all events: the process ended, and will receive them again.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// No watch repeats an event before the saved checkpoint, so the history must hold it by then, byte for byte. The
    /// echo of an ingester's own effect is not a version of its own.
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

/// The row of an object holds the last version that was delivered, or a newer one. Excepted are texts that the
/// database rejects, and objects that left before they had a row.
fn the_row_follows(delivered: &Object, cluster: &SimCluster, database: &SimDatabase) -> Result<(), String> {
    let metadata = &delivered.metadata;
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
        "the checkpoint has passed {version}, but the row holds {}: {}",
        row.version,
        delivered.text()
    ))
}

/// The history holds the version that a row holds.
pub(super) fn has_the_row(row: &SimRow, database: &SimDatabase) -> Result<(), String> {
    let object = row.object();
    let Some(history) = database.history.as_ref().filter(|_| row.version.0 > 0) else {
        return Ok(());
    };
    match history.get(&object.metadata.uid, row.version) {
        Some(kept) if kept.text() == object.text() => Ok(()),
        Some(kept) => Err(format!(
            "the history holds {}, but the row holds {}",
            kept.text(),
            object.text()
        )),
        None => Err(format!("the history lacks what a row holds: {}", object.text())),
    }
}
