//! An object as references see it: its finalizers, its version, and how far it is.

use bytes::Bytes;
use kindex_model::deletion::Annotations;
use kindex_model::head::Head;
use kindex_model::kind::{Kind, Platform};
use kindex_model::object::{Object, ResourceVersion};
use kindex_model::reference_name::ReferenceName;
use kindex_model::releases::Releases;
use serde_json::{Value, json};

use super::answer::{State, Target};
use super::decide::{Presence, Seen, is_of};
use crate::operations::{ObjectKey, Refusal};

/// A live object.
pub(in super::super) struct LiveObject {
    object: Object,
    head: Head,
    /// The annotation by which releases are recorded.
    released: String,
}

impl LiveObject {
    pub(in super::super) fn read(text: &[u8], kind: &Kind, platform: &Platform) -> Result<Self, Refusal> {
        let unreadable =
            |error: &dyn std::fmt::Display| Refusal::unreachable(&format_args!("what it sends is {error}"));
        let text = std::str::from_utf8(text).map_err(|error| unreadable(&error))?;
        let object = Object::parse_str(text).map_err(|error| unreadable(&error))?;
        let head = Head::of(&object, kind, platform);
        let released = Annotations::of(platform.group).released;
        Ok(Self { object, head, released })
    }

    pub(in super::super) fn uid(&self) -> &str {
        &self.object.metadata.uid.0
    }

    /// The version in which it was read.
    pub(in super::super) fn version(&self) -> ResourceVersion {
        self.object.metadata.resource_version
    }

    pub(in super::super) fn state(&self) -> State {
        if self.head.is_leaving() {
            State::Deleting
        } else {
            State::Live
        }
    }

    /// What is said of it.
    pub(in super::super) fn shown(&self, key: &ObjectKey<'_>) -> Target {
        let releases: Vec<String> = self.releases().all().map(str::to_owned).collect();
        Target {
            resource_version: self.version().to_string(),
            released_reference: releases.first().cloned().unwrap_or_default(),
            released_references: releases,
            ..Target::of(key, self.uid(), Some(self.state()))
        }
    }

    /// Whether the cluster deletes it: by a user's deletion, or on its way to the archive.
    pub(in super::super) fn is_tombstone(&self) -> bool {
        self.head.deletion_timestamp.is_some()
    }

    /// Those of its finalizers that name holders, in its order.
    pub(in super::super) fn references(&self) -> Vec<ReferenceName> {
        references_among(&self.object.metadata.finalizers)
    }

    /// What a decision on one reference depends on.
    pub(in super::super) fn seen(&self, kind: &Kind, reference: &ReferenceName) -> Seen {
        Seen {
            presence: match self.state() {
                State::Deleting => Presence::Leaving,
                State::Live | State::Archived | State::Deleted | State::Unknown => Presence::Staying,
            },
            held: self.object.metadata.finalizers.contains(&reference.to_string()),
            itself: is_of(reference, kind, self.uid()),
            is_as_read: true,
        }
    }

    /// The merge patch that adds a finalizer, where the object is still in this version.
    pub(in super::super) fn with(&self, finalizer: &str) -> Bytes {
        let before = self.object.metadata.finalizers.iter().map(String::as_str);
        Bytes::from(self.patch(before.chain([finalizer]).collect()).to_string())
    }

    /// The one that removes it. By the annotation, `kindex deletion` knows that nobody has taken it off by hand.
    pub(in super::super) fn without(&self, finalizer: &str) -> Bytes {
        self.released(finalizer, &self.releases())
    }

    /// The same without a word of earlier releases, for which the object may have no room.
    pub(in super::super) fn without_earlier_releases(&self, finalizer: &str) -> Bytes {
        self.released(finalizer, &Releases::default())
    }

    fn released(&self, finalizer: &str, earlier: &Releases) -> Bytes {
        let finalizers = self.object.metadata.finalizers.iter().map(String::as_str);
        let mut patch = self.patch(finalizers.filter(|known| *known != finalizer).collect());
        let releases = earlier.with(finalizer, self.version());
        patch["metadata"]["annotations"] = json!({ &self.released: releases.as_str() });
        Bytes::from(patch.to_string())
    }

    /// The releases that are recorded on it.
    fn releases(&self) -> Releases {
        let record = self.object.metadata.annotations.get(&self.released);
        record.map(|record| Releases::read(record)).unwrap_or_default()
    }

    fn patch(&self, finalizers: Vec<&str>) -> Value {
        json!({
            "metadata": {"uid": self.uid(), "resourceVersion": self.version().to_string(), "finalizers": finalizers},
        })
    }
}

/// Those of these finalizers that name holders.
pub(in super::super) fn references_among(finalizers: &[String]) -> Vec<ReferenceName> {
    let references = finalizers.iter().map(String::as_str);
    references.filter_map(ReferenceName::of_finalizer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::objects::tests::PLATFORM;
    use crate::operations::token::tests::KIND;

    fn object(finalizers: &Value, more: &Value) -> LiveObject {
        let mut object = json!({"apiVersion": "g/v1", "kind": "Run", "metadata": {"name": "a", "namespace": "n",
            "uid": "u", "resourceVersion": "7", "finalizers": finalizers}});
        for (field, value) in more.as_object().expect("fields") {
            object["metadata"][field.as_str()] = value.clone();
        }
        LiveObject::read(object.to_string().as_bytes(), &KIND, &PLATFORM).expect("an object")
    }

    #[test]
    fn the_patch_holds_for_the_version_that_was_read_alone() {
        let object = object(&json!(["g/Ingester", "run.g/one"]), &json!({}));
        let patch = |body: Bytes| serde_json::from_slice::<Value>(&body).expect("a patch")["metadata"].clone();
        assert_eq!(
            patch(object.with("run.g/two")),
            json!({"uid": "u", "resourceVersion": "7", "finalizers": ["g/Ingester", "run.g/one", "run.g/two"]})
        );
        assert_eq!(
            patch(object.without("run.g/one")),
            json!({"uid": "u", "resourceVersion": "7", "finalizers": ["g/Ingester"],
                "annotations": {"g/released-reference": "run.g/one@7"}})
        );
    }

    /// As if each release hid those before it from whoever looks less often than they happen.
    #[test]
    fn a_release_is_recorded_beside_those_before_it() {
        let released = json!({"annotations": {"g/released-reference": "run.g/two@5,run.g/three@4"}});
        let object = object(&json!(["run.g/one"]), &released);
        let patch: Value = serde_json::from_slice(&object.without("run.g/one")).expect("a patch");
        let annotations = json!({"g/released-reference": "run.g/one@7,run.g/two@5,run.g/three@4"});
        assert_eq!(patch["metadata"]["annotations"], annotations);
        let key = ObjectKey {
            resource: (&KIND).into(),
            namespace: "n",
            name: "a",
        };
        let shown = object.shown(&key);
        assert_eq!(shown.resource_version, "7");
        assert_eq!(shown.released_reference, "run.g/two@5");
        assert_eq!(shown.released_references, ["run.g/two@5", "run.g/three@4"]);
    }

    #[test]
    fn finalizers_of_controllers_are_no_references() {
        let one = "run.g/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
        let names = json!(["g/Ingester", "foregroundDeletion", one, "example.com/backup"]);
        let found = object(&names, &json!({})).references();
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [one]);
    }

    #[test]
    fn a_deletion_is_seen_by_its_time_or_by_our_annotation() {
        let one: ReferenceName = "job.g/one".parse().expect("a name");
        let presence = |more: Value| object(&json!([]), &more).seen(&KIND, &one).presence;
        assert_eq!(presence(json!({})), Presence::Staying);
        assert_eq!(
            presence(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"})),
            Presence::Leaving
        );
        assert_eq!(
            presence(json!({"annotations": {"g/Deleting": "true"}})),
            Presence::Leaving
        );
        assert_eq!(
            presence(json!({"annotations": {"g/Deleting": "false"}})),
            Presence::Staying
        );
        let itself: ReferenceName = "run.g/u".parse().expect("a name");
        assert!(object(&json!([]), &json!({})).seen(&KIND, &itself).itself);
    }
}
