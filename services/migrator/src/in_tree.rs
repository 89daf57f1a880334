//! The cluster's own storage version migrator, which kube-controller-manager runs for `storagemigration.k8s.io`: what
//! its conditions mean, and what of a definition's `storedVersions` has to be put back after it. It lets only the
//! storage version stand at the end of a run, also of one that failed, and with the other versions goes what keeps
//! people from dropping one that objects are still stored in.
//! <https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/controller/storageversionmigrator/migrationrunner.go>

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kindex_kube_api::condition::ConditionStatus;
use serde::{Deserialize, Serialize};

/// What a definition said of its stored versions before a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredVersions {
    /// `metadata.uid`.
    pub uid: String,
    /// `status.storedVersions`.
    pub stored: Vec<String>,
}

/// How the cluster's own migrator ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By its own account every object is in the storage version.
    Succeeded,
    /// It gave up.
    Failed {
        /// Why, in its words.
        why: String,
    },
}

/// Reads the conditions of a migration; `None` while it is under way. It is so until `Running` is false: the
/// definition is written just before that.
pub fn ended(conditions: &[Condition]) -> Option<Ended> {
    let find = |kind: &str| conditions.iter().find(|condition| condition.type_ == kind);
    let find_in = |kind: &str, status: ConditionStatus| {
        let is_in = |one: &&Condition| ConditionStatus::read(&one.status) == status;
        find(kind).filter(is_in)
    };
    find_in("Running", ConditionStatus::False)?;
    let holds = |kind: &str| find_in(kind, ConditionStatus::True);
    let failed = holds("Failed").map(|condition| Ended::Failed {
        why: condition.message.clone(),
    });
    failed.or_else(|| holds("Succeeded").map(|_| Ended::Succeeded))
}

/// What becomes of `storedVersions` after a run that left objects in other versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredVersionsRepair {
    /// The list to write; `None` where it holds all that it has to.
    pub list: Option<Vec<String>>,
    /// Versions that were taken from the list.
    pub narrowed: Vec<String>,
    /// Those of them that the definition does not declare any more: objects in them cannot be read.
    pub lost: Vec<String>,
}

/// Compares what was noted with a definition of now, of which all versions are `declared`. Another definition of the
/// same name owes nothing to the one before.
pub fn put_back(noted: &StoredVersions, now: &StoredVersions, declared: &[String]) -> StoredVersionsRepair {
    if noted.uid != now.uid {
        return StoredVersionsRepair::default();
    }
    let missing = noted.stored.iter().filter(|version| !now.stored.contains(version));
    let narrowed: Vec<String> = missing.cloned().collect();
    let (back, lost): (Vec<String>, Vec<String>) =
        narrowed.iter().cloned().partition(|version| declared.contains(version));
    // The server lists versions in the order in which they came to be stored.
    let since = now.stored.iter().filter(|version| !noted.stored.contains(version));
    let before = noted.stored.iter().filter(|version| !lost.contains(version));
    let list = (!back.is_empty()).then(|| before.chain(since).cloned().collect());
    StoredVersionsRepair { list, narrowed, lost }
}

impl fmt::Display for StoredVersionsRepair {
    /// What an operator should know; nothing where nothing was taken.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.narrowed.is_empty() {
            return Ok(());
        }
        let narrowed = self.narrowed.join(", ");
        write!(
            formatter,
            "the cluster's own migrator took {narrowed} from status.storedVersions although objects may be stored so"
        )?;
        match self.lost.as_slice() {
            [] => formatter.write_str("; it is put back"),
            lost => {
                let lost = lost.join(", ");
                write!(
                    formatter,
                    ". The definition does not declare {lost} any more: declare it again, or objects stored so cannot \
                     be read"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests;
