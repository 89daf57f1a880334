//! A model of the history of a kind: each version once. Versions that a restored cluster has lost are on branches of
//! their own.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kindex_model::object::{Object, ResourceVersion, Uid};

/// The branch that the cluster continues. Sorts after all lost branches.
const PRESENT: Timestamp = Timestamp::MAX;

/// When a branch was lost, and a version on it.
type BranchKey = (Timestamp, ResourceVersion);

/// All versions of all objects that were kept.
#[derive(Clone, Debug, Default)]
pub struct SimHistory {
    kept: BTreeMap<Uid, BTreeMap<BranchKey, Object>>,
}

impl SimHistory {
    /// Keeps a version, unless it is already kept.
    pub fn keep(&mut self, object: &Object) {
        let metadata = &object.metadata;
        let versions = self.kept.entry(metadata.uid.clone()).or_default();
        versions
            .entry((PRESENT, metadata.resource_version))
            .or_insert_with(|| object.clone());
    }

    /// Moves all versions of an object to a lost branch.
    pub fn branch_off(&mut self, uid: &Uid, now: Timestamp) {
        let Some(versions) = self.kept.get_mut(uid) else {
            return;
        };
        let present = versions.split_off(&(PRESENT, ResourceVersion(0)));
        versions.extend(
            present
                .into_iter()
                .map(|((_, version), object)| ((now, version), object)),
        );
    }

    /// Moves all versions above this one to a lost branch.
    pub fn branch_off_beyond(&mut self, version: ResourceVersion, now: Timestamp) {
        for versions in self.kept.values_mut() {
            let lost = versions.split_off(&(PRESENT, ResourceVersion(version.0 + 1)));
            versions.extend(lost.into_iter().map(|((_, version), object)| ((now, version), object)));
        }
    }

    /// A version that the cluster did not lose.
    pub fn get(&self, uid: &Uid, version: ResourceVersion) -> Option<&Object> {
        self.kept.get(uid)?.get(&(PRESENT, version))
    }

    /// All versions of an object, the newest first.
    pub fn versions(&self, uid: &Uid) -> impl Iterator<Item = &Object> {
        self.kept
            .get(uid)
            .into_iter()
            .flat_map(|versions| versions.values().rev())
    }
}
