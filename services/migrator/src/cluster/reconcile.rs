//! One round of the trigger: what discovery, definitions, states and migrations say, and the writes that follow.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use jiff::Timestamp;
use kindex_kube_client::{Outcome, outcome};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::core::ObjectMeta;

use super::discover::{Discovery, discover};
use super::preflight::is_permitted;
use super::{Cluster, ClusterError};
use crate::discovery::Discovered;
use crate::migration::{Cause, Migration, Progress};
use crate::state::State;
use crate::trigger::{Decision, Defined, Effect, Finding, Observation, Settings, decide};
use crate::wire::definition::defined;
use crate::wire::{
    GroupResource, GroupVersionResource, StorageState, StorageStateSpec, StorageStateStatus, StorageVersionMigration,
    StorageVersionMigrationSpec,
};

/// What the trigger knows from one round to the next, and a restart forgets.
#[derive(Debug, Default)]
pub struct Memory {
    shown: BTreeMap<GroupResource, (Discovered, Instant)>,
    /// Resources whose version was compared.
    seen: BTreeSet<GroupResource>,
}

/// What became of one resource.
#[derive(Debug)]
pub struct Reconciled {
    /// Which.
    pub resource: GroupResource,
    /// What should be reported.
    pub finding: Option<Finding>,
    /// How many effects were applied, and the error that ended them.
    pub applied: (usize, Option<ClusterError>),
    /// Whether discovery and the definition do not say the same yet: another round follows soon.
    pub unsettled: bool,
    /// Whether a migration waits for something that no watch tells of: another round follows before long.
    pub waits: bool,
}

/// Everything that is asked for once a round.
struct Round {
    discovery: Discovery,
    definitions: BTreeMap<GroupResource, Defined>,
    /// By name.
    states: BTreeMap<String, StorageState>,
    migrations: BTreeMap<GroupResource, Vec<Migration>>,
    now: Timestamp,
}

/// Reconciles the wanted resources, or all where none is named. One resource in trouble leaves the others alone.
///
/// # Errors
/// Where states, migrations or definitions cannot be listed: nothing is decided then.
pub async fn reconcile(
    cluster: &Cluster,
    memory: &mut Memory,
    settings: &Settings,
    wanted: &BTreeSet<GroupResource>,
) -> Result<Vec<Reconciled>, ClusterError> {
    let round = ask(cluster, wanted).await?;
    let resources: Vec<_> = match wanted.is_empty() {
        true => round.discovery.served.keys().cloned().collect(),
        false => wanted.iter().cloned().collect(),
    };
    let mut reconciled = Vec::new();
    for resource in resources {
        let permitted = match failed_for(&round, &resource, |cause| cause == Cause::Forbidden) {
            true => is_permitted(cluster.first(), &resource).await,
            false => false,
        };
        let decision = decide_on(&round, memory, settings, &resource, permitted);
        let finding = decision.finding;
        let waits = failed_for(&round, &resource, Cause::is_transient) && !decision.effects.contains(&Effect::Start);
        let discovered = round.discovery.of(&resource);
        let compared = !matches!(discovered, Discovered::Partial | Discovered::Absent);
        let applied = apply(cluster, &round, &resource, decision).await;
        let unsettled = unsettled(&discovered, round.definitions.get(&resource), finding);
        if compared && applied.1.is_none() {
            memory.seen.insert(resource.clone());
        }
        reconciled.push(Reconciled {
            resource,
            finding,
            applied,
            unsettled,
            waits: waits && settings.launch,
        });
    }
    Ok(reconciled)
}

/// Whether the next round may see something else without anybody's doing: API servers follow a definition a moment
/// after it was written.
fn unsettled(discovered: &Discovered, definition: Option<&Defined>, finding: Option<Finding>) -> bool {
    let waits = match finding {
        Some(Finding::Settling | Finding::Divided | Finding::PartialDiscovery) => true,
        Some(Finding::NoHash | Finding::WrongSpec) | None => false,
    };
    let behind = definition.is_some_and(|defined| match discovered {
        Discovered::Agreed(hash) => *hash != defined.storage,
        Discovered::Absent => true,
        Discovered::NoHash | Discovered::Divided(_) | Discovered::Partial => false,
    });
    waits || behind
}

async fn ask(cluster: &Cluster, wanted: &BTreeSet<GroupResource>) -> Result<Round, ClusterError> {
    let all = ListParams::default();
    let (states, migrations) = (cluster.states(), cluster.migrations());
    let list = |what| move |source| ClusterError::List { what, source };
    let states = states.list(&all).await.map_err(list("storagestates"))?;
    let migrations = migrations.list(&all).await.map_err(list("storageversionmigrations"))?;
    let definitions = cluster.definitions().await?;
    let groups = wanted.iter().map(|resource| resource.group.clone()).collect();
    let discovery = discover(cluster, &groups).await;
    let mut of_resource: BTreeMap<GroupResource, Vec<Migration>> = BTreeMap::new();
    for migration in &migrations.items {
        let GroupVersionResource { group, resource, .. } = migration.spec.resource.clone();
        let resource = GroupResource { group, resource };
        of_resource
            .entry(resource)
            .or_default()
            .push(Migration::from(migration));
    }
    Ok(Round {
        discovery,
        definitions: definitions.iter().filter_map(defined).collect(),
        states: states
            .items
            .into_iter()
            .map(|state| (state.name_any(), state))
            .collect(),
        migrations: of_resource,
        now: Timestamp::now(),
    })
}

/// Whether a migration of the resource failed for such a cause.
fn failed_for(round: &Round, resource: &GroupResource, which: impl Fn(Cause) -> bool) -> bool {
    let mut migrations = round.migrations.get(resource).into_iter().flatten();
    migrations.any(|migration| matches!(migration.progress, Progress::Failed { cause, .. } if which(cause)))
}

fn decide_on(
    round: &Round,
    memory: &mut Memory,
    settings: &Settings,
    resource: &GroupResource,
    permitted: bool,
) -> Decision {
    let discovered = round.discovery.of(resource);
    let shown = memory.shown.entry(resource.clone());
    let shown = shown.or_insert_with(|| (discovered.clone(), Instant::now()));
    if shown.0 != discovered {
        *shown = (discovered, Instant::now());
    }
    let object = round.states.get(&resource.to_string());
    let state = object.and_then(|state| state.status.as_ref()).map(State::from);
    let observation = Observation {
        now: round.now,
        first: !memory.seen.contains(resource),
        discovered: &shown.0,
        unchanged_for: shown.1.elapsed(),
        definition: round.definitions.get(resource),
        state: state.as_ref(),
        migrations: round.migrations.get(resource).map_or(&[], Vec::as_slice),
        permitted,
        spec_fits: object.is_none_or(|state| state.spec.resource == *resource),
    };
    decide(&observation, settings)
}

async fn apply(
    cluster: &Cluster,
    round: &Round,
    resource: &GroupResource,
    Decision { effects, finding }: Decision,
) -> (usize, Option<ClusterError>) {
    let all = effects.len();
    if let (0, Some(finding)) = (all, finding) {
        return (0, note(cluster, round, resource, finding).await.err());
    }
    for (at, effect) in effects.into_iter().enumerate() {
        if let Err(error) = apply_one(cluster, round, resource, effect, finding).await {
            return (at, Some(error));
        }
    }
    (all, None)
}

async fn apply_one(
    cluster: &Cluster,
    round: &Round,
    resource: &GroupResource,
    effect: Effect,
    finding: Option<Finding>,
) -> Result<(), ClusterError> {
    let name = resource.to_string();
    match effect {
        Effect::Stop { name, uid } => {
            let params = DeleteParams::default().preconditions(Preconditions {
                uid: Some(uid),
                resource_version: None,
            });
            let deleted = cluster.migrations().delete(&name, &params).await.map(drop);
            ignore_not_found(deleted).map_err(|source| write("storageversionmigration", name, source))
        }
        Effect::Start => {
            let migration = migration_of(round, resource);
            let created = cluster.migrations().create(&PostParams::default(), &migration).await;
            let error = |source| write("storageversionmigration", name, source);
            created.map(drop).map_err(error)
        }
        // One without a status is there where a process died before it wrote that.
        Effect::Create(state) | Effect::Update(state) => {
            let before = round.states.get(&resource.to_string());
            put(cluster, resource, before, &state, finding).await
        }
        Effect::Recreate(state) => {
            let before = round.states.get(&name);
            let uid = before.and_then(|state| state.metadata.uid.clone());
            let params = DeleteParams::default().preconditions(Preconditions {
                uid,
                resource_version: None,
            });
            let deleted = cluster.states().delete(&name, &params).await.map(drop);
            ignore_not_found(deleted).map_err(|source| write("storagestate", name, source))?;
            put(cluster, resource, None, &state, finding).await
        }
    }
}

/// Creates the state where there is none, and replaces its status, on condition of the version that was looked at.
async fn put(
    cluster: &Cluster,
    resource: &GroupResource,
    before: Option<&StorageState>,
    state: &State,
    finding: Option<Finding>,
) -> Result<(), ClusterError> {
    let api = cluster.states();
    let name = resource.to_string();
    let error = |source| write("storagestate", resource.to_string(), source);
    let mut object = match before {
        Some(before) => before.clone(),
        None => {
            let spec = StorageStateSpec {
                resource: resource.clone(),
            };
            let created = api
                .create(&PostParams::default(), &StorageState::new(&name, spec))
                .await;
            created.map_err(error)?
        }
    };
    let conditions = object.status.take().unwrap_or_default().conditions;
    let status = StorageStateStatus {
        conditions,
        ..StorageStateStatus::from(state)
    };
    object.status = Some(status);
    replace(cluster, object, finding).await
}

/// Replaces the status, which says what was found.
async fn replace(cluster: &Cluster, mut object: StorageState, finding: Option<Finding>) -> Result<(), ClusterError> {
    let status = object.status.get_or_insert_default();
    status.say(finding, Timestamp::now());
    let name = object.name_any();
    let replaced = cluster
        .states()
        .replace_status(&name, &PostParams::default(), &object)
        .await;
    replaced.map(drop).map_err(|source| write("storagestate", name, source))
}

/// Notes what was found where nothing else is written.
async fn note(
    cluster: &Cluster,
    round: &Round,
    resource: &GroupResource,
    finding: Finding,
) -> Result<(), ClusterError> {
    let Some(object) = round.states.get(&resource.to_string()) else {
        return Ok(());
    };
    match object.status.as_ref().is_some_and(|status| status.says(Some(finding))) {
        true => Ok(()),
        false => replace(cluster, object.clone(), Some(finding)).await,
    }
}

fn migration_of(round: &Round, resource: &GroupResource) -> StorageVersionMigration {
    let served = round.discovery.served.get(resource);
    StorageVersionMigration {
        metadata: ObjectMeta {
            generate_name: Some(format!("{resource}-")),
            ..ObjectMeta::default()
        },
        spec: StorageVersionMigrationSpec {
            resource: GroupVersionResource {
                group: resource.group.clone(),
                version: served.map(|served| served.resource.version.clone()).unwrap_or_default(),
                resource: resource.resource.clone(),
            },
        },
        status: None,
    }
}

fn ignore_not_found(deleted: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match deleted {
        Err(error) if outcome(&error) == Some(Outcome::Absent) => Ok(()),
        other => other,
    }
}

fn write(what: &'static str, name: String, source: kube::Error) -> ClusterError {
    ClusterError::Write { what, name, source }
}
