//! The rules of a kind that keeps all its versions: what SQL acknowledged is in the history, and
//! what a watch told is there before it is left behind. Looks at the cluster and at SQL alone.

use std::collections::BTreeMap;

use kindex_runtime::cluster::WatchEvent;
use kindex_runtime::object::{Object, ResourceVersion};

use super::cluster::SimCluster;
use super::database::{SimDatabase, SimRow};

/// What a watch told and no saved position has passed yet, by version.
#[derive(Debug, Default)]
pub struct Told(BTreeMap<ResourceVersion, Object>);

impl Told {
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
