//! One look of the trigger: what discovery, definitions, states and migrations say, and the writes that follow.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use jiff::Timestamp;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::core::ObjectMeta;

use super::discover::{Discovery, discover};
use super::{Cluster, ClusterError};
use crate::discovery::Discovered;
use crate::migration::Migration;
use crate::state::State;
use crate::trigger::{Decision, Defined, Effect, Finding, Look, Settings, decide};
use crate::wire::definition::defined;
use crate::wire::{
    GroupResource, GroupVersionResource, StorageState, StorageStateSpec, StorageStateStatus, StorageVersionMigration,
    StorageVersionMigrationSpec,
};

/// What the trigger knows from one look to the next, and a restart forgets.
#[derive(Debug, Default)]
pub struct Memory {
    shown: BTreeMap<GroupResource, (Discovered, Instant)>,
    /// Resources whose version was compared.
    seen: BTreeSet<GroupResource>,
}

/// What became of one resource.
#[derive(Debug)]
pub struct Looked {
    /// Which.
    pub resource: GroupResource,
    /// What should be reported.
    pub finding: Option<Finding>,
    /// How many effects were applied, and the error that ended them.
    pub applied: (usize, Option<ClusterError>),
    /// Whether discovery and the definition do not say the same yet: another look follows soon.
    pub unsettled: bool,
}

/// Everything that is asked for once a look.
struct Round {
    discovery: Discovery,
    definitions: BTreeMap<GroupResource, Defined>,
    states: BTreeMap<GroupResource, StorageState>,
    migrations: BTreeMap<GroupResource, Vec<Migration>>,
    now: Timestamp,
}

/// Looks at the wanted resources, or at all where none is named. One resource in trouble leaves the others alone.
///
/// # Errors
/// Where states, migrations or definitions cannot be listed: nothing is decided then.
pub async fn look(
    cluster: &Cluster,
    memory: &mut Memory,
    settings: &Settings,
    wanted: &BTreeSet<GroupResource>,
) -> Result<Vec<Looked>, ClusterError> {
    let round = ask(cluster, wanted).await?;
    let resources: Vec<_> = match wanted.is_empty() {
        true => round.discovery.served.keys().cloned().collect(),
        false => wanted.iter().cloned().collect(),
    };
    let mut looked = Vec::new();
    for resource in resources {
        let Decision { effects, finding } = decide_on(&round, memory, settings, &resource);
        let discovered = round.discovery.of(&resource);
        let compared = !matches!(discovered, Discovered::Partial | Discovered::Absent);
        let applied = apply(cluster, &round, &resource, effects).await;
        let unsettled = unsettled(&discovered, round.definitions.get(&resource), finding);
        if compared && applied.1.is_none() {
            memory.seen.insert(resource.clone());
        }
        looked.push(Looked {
            resource,
            finding,
            applied,
            unsettled,
        });
    }
    Ok(looked)
}

/// Whether the next look may see something else without anybody's doing: API servers follow a definition a moment
/// after it was written.
fn unsettled(discovered: &Discovered, definition: Option<&Defined>, finding: Option<Finding>) -> bool {
    let waits = match finding {
        Some(Finding::Settling | Finding::Divided | Finding::PartialDiscovery) => true,
        Some(Finding::NoHash) | None => false,
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
            .map(|state| (state.spec.resource.clone(), state))
            .collect(),
        migrations: of_resource,
        now: Timestamp::now(),
    })
}

fn decide_on(round: &Round, memory: &mut Memory, settings: &Settings, resource: &GroupResource) -> Decision {
    let discovered = round.discovery.of(resource);
    let shown = memory.shown.entry(resource.clone());
    let shown = shown.or_insert_with(|| (discovered.clone(), Instant::now()));
    if shown.0 != discovered {
        *shown = (discovered, Instant::now());
    }
    let state = round.states.get(resource).and_then(|state| state.status.as_ref());
    let state = state.map(State::from);
    let look = Look {
        now: round.now,
        first: !memory.seen.contains(resource),
        discovered: &shown.0,
        unchanged_for: shown.1.elapsed(),
        definition: round.definitions.get(resource),
        state: state.as_ref(),
        migrations: round.migrations.get(resource).map_or(&[], Vec::as_slice),
    };
    decide(&look, settings)
}

async fn apply(
    cluster: &Cluster,
    round: &Round,
    resource: &GroupResource,
    effects: Vec<Effect>,
) -> (usize, Option<ClusterError>) {
    let all = effects.len();
    for (at, effect) in effects.into_iter().enumerate() {
        if let Err(error) = apply_one(cluster, round, resource, effect).await {
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
) -> Result<(), ClusterError> {
    let name = resource.to_string();
    match effect {
        Effect::Stop { name, uid } => {
            let params = DeleteParams::default().preconditions(Preconditions {
                uid: Some(uid),
                resource_version: None,
            });
            let deleted = cluster.migrations().delete(&name, &params).await.map(drop);
            gone_is_fine(deleted).map_err(|source| write("storageversionmigration", name, source))
        }
        Effect::Start => {
            let migration = migration_of(round, resource);
            let created = cluster.migrations().create(&PostParams::default(), &migration).await;
            let error = |source| write("storageversionmigration", name, source);
            created.map(drop).map_err(error)
        }
        // One without a status is there where a process died before it wrote that.
        Effect::Create(state) | Effect::Update(state) => {
            put(cluster, resource, round.states.get(resource), &state).await
        }
        Effect::Recreate(state) => {
            let uid = round.states.get(resource).and_then(|state| state.metadata.uid.clone());
            let params = DeleteParams::default().preconditions(Preconditions {
                uid,
                resource_version: None,
            });
            let deleted = cluster.states().delete(&name, &params).await.map(drop);
            gone_is_fine(deleted).map_err(|source| write("storagestate", name, source))?;
            put(cluster, resource, None, &state).await
        }
    }
}

/// Creates the state where there is none, and replaces its status, on condition of the version that was looked at.
async fn put(
    cluster: &Cluster,
    resource: &GroupResource,
    before: Option<&StorageState>,
    state: &State,
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
    object.status = Some(StorageStateStatus::from(state));
    let replaced = api.replace_status(&name, &PostParams::default(), &object).await;
    replaced.map(drop).map_err(error)
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

fn gone_is_fine(deleted: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match deleted {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other,
    }
}

fn write(what: &'static str, name: String, source: kube::Error) -> ClusterError {
    ClusterError::Write { what, name, source }
}
