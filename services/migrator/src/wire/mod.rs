//! The objects of `migration.k8s.io/v1alpha1` as they are written, and what the decisions read of them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kindex_kube_api::condition::ConditionStatus;
use kube::CustomResource;
use serde::{Deserialize, Serialize};

use crate::hash::{Encoding, Hash};
use crate::migration::{Migration, Progress, Target};
use crate::run::{Counts, Refused, Run, Verdict};
use crate::state::{Definition, State};
use crate::trigger::Finding;

pub mod definition;

/// `spec` of a `StorageState`.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "migration.k8s.io",
    version = "v1alpha1",
    kind = "StorageState",
    status = "StorageStateStatus",
    schema = "disabled"
)]
pub struct StorageStateSpec {
    /// The resource that it is about.
    #[serde(default)]
    pub resource: GroupResource,
}

/// A resource, whatever its versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupResource {
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Plural name.
    #[serde(default)]
    pub resource: String,
}

impl From<&GroupVersionResource> for GroupResource {
    fn from(resource: &GroupVersionResource) -> Self {
        Self {
            group: resource.group.clone(),
            resource: resource.resource.clone(),
        }
    }
}

impl std::fmt::Display for GroupResource {
    /// As a `StorageState` of it is named: `models.michelangelo.api`, `pods`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.group.as_str() {
            "" => formatter.write_str(&self.resource),
            group => write!(formatter, "{}.{group}", self.resource),
        }
    }
}

/// `status` of a `StorageState`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageStateStatus {
    /// See [`State::persisted`].
    pub persisted_storage_version_hashes: Vec<String>,
    /// See [`State::current`].
    pub current_storage_version_hash: String,
    /// See [`State::heartbeat`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_time: Option<Time>,
    /// See [`State::definition`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionStatus>,
    /// `Compared`, with the finding of the last round as its reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A state of a CustomResourceDefinition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionStatus {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.generation`.
    pub generation: i64,
}

/// `spec` of a `StorageVersionMigration`.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "migration.k8s.io",
    version = "v1alpha1",
    kind = "StorageVersionMigration",
    status = "StorageVersionMigrationStatus",
    schema = "disabled"
)]
pub struct StorageVersionMigrationSpec {
    /// Whose objects are migrated.
    pub resource: GroupVersionResource,
}

/// A resource by one of its versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupVersionResource {
    /// API group; empty for the core group.
    pub group: String,
    /// A served version; empty for any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Plural name.
    pub resource: String,
}

/// `status` of a `StorageVersionMigration`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageVersionMigrationStatus {
    /// `Running`, `Succeeded` or `Failed`, of which one is true at most.
    pub conditions: Vec<Condition>,
    /// See [`Target::hash`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_storage_version_hash: String,
    /// See [`Target::definition`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionStatus>,
    /// See [`Run::token`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continue_token: Option<String>,
    /// See [`Run::passes`].
    pub passes: u32,
    /// See [`Run::restarts`].
    pub restarts: u32,
    /// Objects of this pass, as far as the API server says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Objects of this pass a second, since the last start of the migrator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects_per_second: Option<u64>,
    /// When this pass will be through, at that rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass_end_time: Option<Time>,
    /// See [`Run::pass`].
    pub pass: CountsStatus,
    /// See [`Run::all_passes`].
    pub all_passes: CountsStatus,
    /// See [`Run::refused`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedStatus>,
}

/// One condition of a migration or a state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// `Running`, `Succeeded` or `Failed`; `Compared`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it is true.
    pub status: ConditionStatus,
    /// When that became so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
}

/// See [`Counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CountsStatus {
    rewritten: u64,
    unchanged: u64,
    conflicts: u64,
    gone: u64,
    refused: u64,
}

/// See [`Refused`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedStatus {
    object: String,
    why: String,
}

impl From<&StorageStateStatus> for State {
    fn from(status: &StorageStateStatus) -> Self {
        let persisted = &status.persisted_storage_version_hashes;
        Self {
            persisted: persisted.iter().map(|hash| Encoding::parse(hash)).collect(),
            current: Encoding::parse(&status.current_storage_version_hash),
            heartbeat: status.last_heartbeat_time.as_ref().map(|time| time.0),
            definition: status.definition.as_ref().map(Definition::from),
        }
    }
}

impl From<&State> for StorageStateStatus {
    fn from(state: &State) -> Self {
        Self {
            persisted_storage_version_hashes: state.persisted.iter().map(Encoding::to_string).collect(),
            current_storage_version_hash: state.current.to_string(),
            last_heartbeat_time: state.heartbeat.map(Time),
            definition: state.definition.as_ref().map(DefinitionStatus::from),
            conditions: Vec::new(),
        }
    }
}

impl StorageStateStatus {
    /// Whether the condition says this of the last round.
    pub fn says(&self, finding: Option<Finding>) -> bool {
        let (status, reason, _) = said(finding);
        let mut conditions = self.conditions.iter();
        conditions.any(|one| one.kind == COMPARED && one.status == status && one.reason == reason)
    }

    /// Lets the condition say what a round found.
    pub fn say(&mut self, finding: Option<Finding>, now: Timestamp) {
        if self.says(finding) {
            return;
        }
        let (status, reason, message) = said(finding);
        put(&mut self.conditions, (COMPARED, status), reason, message, now);
    }
}

/// The condition of a state.
const COMPARED: &str = "Compared";

/// Status, reason and message of the condition of a state.
fn said(finding: Option<Finding>) -> (ConditionStatus, &'static str, String) {
    match finding {
        None => (ConditionStatus::True, "HashShown", String::new()),
        Some(finding) => (ConditionStatus::False, finding.reason(), finding.to_string()),
    }
}

/// Sets the condition of a kind, as the last one. The conditions of `migration.k8s.io` have the time at which they were
/// set, whether their status changed or not.
fn put(
    conditions: &mut Vec<Condition>,
    (kind, status): (&str, ConditionStatus),
    reason: &str,
    message: String,
    now: Timestamp,
) {
    conditions.retain(|condition| condition.kind != kind);
    conditions.push(Condition {
        kind: kind.to_owned(),
        status,
        last_update_time: Some(Time(now)),
        reason: reason.to_owned(),
        message,
    });
}

impl From<&DefinitionStatus> for Definition {
    fn from(status: &DefinitionStatus) -> Self {
        Self {
            uid: status.uid.clone(),
            generation: status.generation,
        }
    }
}

impl From<&Definition> for DefinitionStatus {
    fn from(definition: &Definition) -> Self {
        Self {
            uid: definition.uid.clone(),
            generation: definition.generation,
        }
    }
}

impl StorageVersionMigrationStatus {
    /// What it says of the version that the migration is for.
    pub fn target(&self) -> Target {
        Target {
            hash: Hash::shown(&self.target_storage_version_hash),
            definition: self.definition.as_ref().map(Definition::from),
        }
    }

    /// The condition that is true, where one is.
    pub fn true_condition(&self) -> Option<&Condition> {
        let mut conditions = self.conditions.iter();
        conditions.find(|condition| condition.status == ConditionStatus::True)
    }

    /// Where the migration stands.
    pub fn progress(&self) -> Progress {
        let holds = |condition: &&Condition| condition.status == ConditionStatus::True;
        let of = |condition: &Condition| match condition.kind.as_str() {
            "Succeeded" => Some(Progress::Succeeded),
            "Failed" => Some(Progress::Failed {
                since: condition
                    .last_update_time
                    .as_ref()
                    .map_or(Timestamp::UNIX_EPOCH, |time| time.0),
                cause: Verdict::cause(&condition.reason),
            }),
            "Running" => Some(Progress::Running),
            _ => None,
        };
        let all = self.conditions.iter().filter(holds).filter_map(of);
        all.fold(Progress::Pending, |before, next| match before {
            Progress::Pending | Progress::Running => next,
            Progress::Succeeded | Progress::Failed { .. } => before,
        })
    }

    /// What was saved of the run.
    pub fn run(&self) -> Run {
        Run {
            passes: self.passes,
            token: self.continue_token.clone(),
            pass: Counts::from(self.pass),
            before: Counts::from(self.all_passes).minus(Counts::from(self.pass)),
            refused: self.refused.iter().map(Refused::from).collect(),
            restarts: self.restarts,
        }
    }

    /// Saves a run.
    pub fn save(&mut self, run: &Run) {
        self.pass = CountsStatus::from(run.pass);
        self.all_passes = CountsStatus::from(run.all_passes());
        self.passes = run.passes;
        self.continue_token.clone_from(&run.token);
        self.refused = run.refused.iter().map(RefusedStatus::from).collect();
        self.restarts = run.restarts;
    }

    /// Makes this condition the only true one. One that failed did not succeed, which is said as well.
    pub fn set_condition(&mut self, kind: &str, reason: &str, message: String, now: Timestamp) {
        for condition in &mut self.conditions {
            if condition.status == ConditionStatus::True {
                condition.status = ConditionStatus::False;
                condition.last_update_time = Some(Time(now));
            }
        }
        let holds = (kind, ConditionStatus::True);
        put(&mut self.conditions, holds, reason, message.clone(), now);
        if kind == "Failed" {
            let holds_not = ("Succeeded", ConditionStatus::False);
            put(&mut self.conditions, holds_not, reason, message, now);
        }
    }
}

impl From<CountsStatus> for Counts {
    fn from(status: CountsStatus) -> Self {
        let CountsStatus {
            rewritten,
            unchanged,
            conflicts,
            gone,
            refused,
        } = status;
        Self {
            rewritten,
            unchanged,
            conflicts,
            gone,
            refused,
        }
    }
}

impl From<Counts> for CountsStatus {
    fn from(counts: Counts) -> Self {
        let Counts {
            rewritten,
            unchanged,
            conflicts,
            gone,
            refused,
        } = counts;
        Self {
            rewritten,
            unchanged,
            conflicts,
            gone,
            refused,
        }
    }
}

impl From<&RefusedStatus> for Refused {
    fn from(status: &RefusedStatus) -> Self {
        Self {
            object: status.object.clone(),
            why: status.why.clone(),
        }
    }
}

impl From<&Refused> for RefusedStatus {
    fn from(refused: &Refused) -> Self {
        Self {
            object: refused.object.clone(),
            why: refused.why.clone(),
        }
    }
}

impl From<&StorageVersionMigration> for Migration {
    fn from(object: &StorageVersionMigration) -> Self {
        let status = object.status.clone().unwrap_or_default();
        Self {
            name: object.metadata.name.clone().unwrap_or_default(),
            uid: object.metadata.uid.clone().unwrap_or_default(),
            target: status.target(),
            progress: status.progress(),
        }
    }
}

#[cfg(test)]
mod tests;
