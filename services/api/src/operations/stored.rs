//! Stored objects as they are served: archived ones like live ones, also while they are deleted, and deleted ones with
//! the time of their deletion, all in the version that is asked for, whichever their texts are in.

use std::borrow::Cow;

use kindex_kube_api::meta;
use kindex_model::deletion::Annotations;
use kindex_model::kind::Platform;
use kindex_model::object::Object;
use kindex_query::{Life, Stored};
use serde_json::Value;

use super::{Backends, ObjectKey, Refusal, Resource, Storage, refusal};

/// How stored objects are shown to who asks for a resource.
#[derive(Clone, Copy)]
pub(super) struct View {
    pub(super) platform: Platform,
    pub(super) resource: Resource,
}

impl View {
    /// The JSON text in which a stored object is shown. Exactly the stored text, wherever that says the truth.
    ///
    /// # Errors
    /// 500 for an object that has no form in the version.
    pub(super) fn shown(&self, stored: &Stored) -> Result<String, Refusal> {
        let text = self.text(&stored.object)?.into_owned();
        let says_deleted = stored.object.metadata.deletion_timestamp.is_some();
        let is_deleted = match stored.life {
            Life::Live => says_deleted,
            Life::Archived => Annotations::of(self.platform.group).is_recorded(&stored.object.metadata),
            Life::Deleted => true,
        };
        if says_deleted == is_deleted {
            return Ok(text);
        }
        let Ok(mut object) = serde_json::from_str::<Value>(&text) else {
            return Ok(text);
        };
        if let Some(metadata) = object["metadata"].as_object_mut() {
            match stored.delete_time.filter(|_| is_deleted) {
                Some(time) => {
                    metadata.insert("deletionTimestamp".to_owned(), meta::time(time).into());
                }
                // It left the cluster, by a deletion that was none of the object.
                None => {
                    metadata.remove("deletionTimestamp");
                    metadata.remove("deletionGracePeriodSeconds");
                }
            }
        }
        Ok(object.to_string())
    }

    /// The fields of a stored object as it is shown.
    ///
    /// # Errors
    /// As [`shown`](Self::shown), and for a text that is too deep to be read.
    pub(super) fn shown_value(&self, stored: &Stored) -> Result<Value, Refusal> {
        let text = self.shown(stored)?;
        serde_json::from_str(&text).map_err(|error| refusal::of_conversion(&self.resource, &error))
    }

    /// The text of an object in the version: unread where it is in that already.
    ///
    /// # Errors
    /// As [`shown`](Self::shown).
    pub(super) fn text<'t>(&self, object: &'t Object) -> Result<Cow<'t, str>, Refusal> {
        let Resource { kind, version } = self.resource;
        let text = kindex_convert::text_in(&self.platform, kind, object, version);
        text.map_err(|error| refusal::of_conversion(&self.resource, &error))
    }

    /// The same of a past object, which nobody can correct: as it was stored, if it has no form in the version by now.
    pub(super) fn past<'t>(&self, object: &'t Object) -> Cow<'t, str> {
        self.text(object).unwrap_or(Cow::Borrowed(object.text()))
    }

    /// The fields of an object in the version.
    ///
    /// # Errors
    /// As [`shown`](Self::shown).
    pub(super) fn value(&self, object: &Object) -> Result<Value, Refusal> {
        let text = self.text(object)?;
        serde_json::from_str(&text).map_err(|error| refusal::of_conversion(&self.resource, &error))
    }

    /// An object as it is kept in SQL: in its kind's own version.
    ///
    /// # Errors
    /// As [`shown`](Self::shown).
    pub(super) fn kept(&self, object: &Object) -> Result<Object, Refusal> {
        let kind = self.resource.kind;
        let kept = kindex_convert::object_in(&self.platform, kind, object, kind.version);
        kept.map_err(|error| refusal::of_conversion(&kind.into(), &error))
    }
}

impl Backends {
    /// The archived object of that name; none where nothing is stored.
    pub(super) async fn find_archived(&self, key: &ObjectKey<'_>) -> Result<Option<Stored>, Refusal> {
        let Storage::On { store, .. } = &self.storage else {
            return Ok(None);
        };
        let found = store.get_by_name(key.resource.kind, key.namespace, key.name).await;
        let found = found.map_err(|error| refusal::of_store(key, error))?;
        Ok(found.filter(|stored| stored.life == Life::Archived))
    }

    /// The same for what many ask at the same time, as each creation does for what it names: they share a statement.
    pub(super) async fn find_archived_together(&self, key: &ObjectKey<'_>) -> Result<Option<Stored>, Refusal> {
        let Storage::On { store, names, .. } = &self.storage else {
            return Ok(None);
        };
        let found = names.find(store, key).await?;
        Ok(found.filter(|stored| stored.life == Life::Archived))
    }
}
