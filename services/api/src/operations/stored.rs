//! Stored objects as they are served: archived ones like live ones, deleted ones with the time of their deletion.

use kindex_query::{Life, Stored};
use serde_json::Value;

use super::{ObjectKey, Operations, Refusal, Storage, refusal};

/// The JSON text in which a stored object is shown. Exactly the stored text, wherever that says the truth.
pub(super) fn shown(stored: &Stored) -> String {
    let text = stored.object.text();
    let says_deleted = stored.object.metadata.deletion_timestamp.is_some();
    let is_deleted = stored.life == Life::Deleted;
    if says_deleted == is_deleted {
        return text.to_owned();
    }
    let Ok(mut object) = serde_json::from_str::<Value>(text) else {
        return text.to_owned();
    };
    if let Some(metadata) = object["metadata"].as_object_mut() {
        match stored.delete_time.filter(|_| is_deleted) {
            Some(time) => {
                let time = time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
                metadata.insert("deletionTimestamp".to_owned(), time.into());
            }
            // It left the cluster, by a deletion that was none of the object.
            None => {
                metadata.remove("deletionTimestamp");
                metadata.remove("deletionGracePeriodSeconds");
            }
        }
    }
    object.to_string()
}

impl Operations {
    /// The archived object of that name; none where nothing is stored.
    pub(super) async fn find_archived(&self, key: &ObjectKey<'_>) -> Result<Option<Stored>, Refusal> {
        let Storage::On { store, .. } = &self.storage else {
            return Ok(None);
        };
        let found = store.get_by_name(key.kind, key.namespace, key.name).await;
        let found = found.map_err(|error| refusal::of_store(key, error))?;
        Ok(found.filter(|stored| stored.life == Life::Evicted))
    }
}
