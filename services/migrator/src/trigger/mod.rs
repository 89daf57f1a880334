//! What the trigger does about one resource in one round: the rules of the enhancement proposal, and of its section on
//! several API servers, as one pure function.

use std::time::Duration;

use jiff::Timestamp;

use crate::discovery::Discovered;
use crate::hash::{Encoding, Hash};
use crate::migration::{Cause, Migration, Progress};
use crate::state::{Definition, State};

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

/// Everything that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// Wall clock.
    pub now: Timestamp,
    /// Whether this process looks at the resource for the first time: a heartbeat that is too old counts then alone.
    pub first: bool,
    /// What discovery shows.
    pub discovered: &'a Discovered,
    /// For how long it has shown the same without a break, as far as this process knows.
    pub unchanged_for: Duration,
    /// The CustomResourceDefinition of the resource, where it has one.
    pub definition: Option<&'a Defined>,
    /// The `StorageState`, where there is one.
    pub state: Option<&'a State>,
    /// Whether its `spec` is of this resource, or there is none.
    pub spec_fits: bool,
    /// All migrations of the resource, whatever became of them.
    pub migrations: &'a [Migration],
    /// Whether the rights are there now that a migration failed for.
    pub permitted: bool,
}

/// A CustomResourceDefinition as it was when discovery was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defined {
    /// Which one, and which state of it.
    pub definition: Definition,
    /// Hash of the version that `spec` declares as the stored one.
    pub storage: Hash,
    /// Hashes of `status.storedVersions`.
    pub stored: Vec<Hash>,
}

/// How the trigger is set.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Between two rounds. At a start, a heartbeat that is older makes a state worthless.
    pub period: Duration,
    /// How long API servers that disagreed must have agreed before a migration begins.
    pub settle: Duration,
    /// How long a migration that was refused stands before another one begins.
    pub retry: Duration,
    /// Whether migrations are started; otherwise that is left to people.
    pub launch: bool,
}

/// One write. An effect that fails ends the list: what follows it is for the next round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A migration is deleted, on condition of its uid, which also stops it.
    Stop {
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
    },
    /// A migration is created. The migrator notes for which version when it begins.
    Start,
    /// The state is created.
    Create(State),
    /// The status is replaced, on condition of the version that was looked at.
    Update(State),
    /// The state is deleted and created again.
    Recreate(State),
}

/// What an operator should know of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// An API server did not answer, or not for this resource.
    PartialDiscovery,
    /// Discovery shows no hash: the storage version is not served.
    NoHash,
    /// The API servers write in different versions.
    Divided,
    /// They agree again, for too short a time yet.
    Settling,
    /// The state of this name is about another resource.
    WrongSpec,
}

impl Finding {
    /// All there are.
    pub const ALL: [Self; 5] = [
        Self::PartialDiscovery,
        Self::NoHash,
        Self::Divided,
        Self::Settling,
        Self::WrongSpec,
    ];

    /// In metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::PartialDiscovery => "partial_discovery",
            Self::NoHash => "no_hash",
            Self::Divided => "divided",
            Self::Settling => "settling",
            Self::WrongSpec => "wrong_spec",
        }
    }

    /// Of a condition.
    pub fn reason(self) -> &'static str {
        match self {
            Self::PartialDiscovery => "PartialDiscovery",
            Self::NoHash => "NoHash",
            Self::Divided => "Divided",
            Self::Settling => "Settling",
            Self::WrongSpec => "WrongSpec",
        }
    }
}

impl std::fmt::Display for Finding {
    /// For people.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::PartialDiscovery => "not every API server says what it serves; nothing is decided",
            Self::NoHash => "discovery shows no storage version hash: the stored version is not served",
            Self::Divided => "the API servers write in different versions",
            Self::Settling => "the API servers agree again; the settle time is not over",
            Self::WrongSpec => "spec.resource is not the resource that metadata.name says: delete this StorageState",
        })
    }
}

/// What follows from an observation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// In this order.
    pub effects: Vec<Effect>,
    /// To be reported.
    pub finding: Option<Finding>,
}

impl Decision {
    fn found(finding: Finding) -> Self {
        Self {
            effects: Vec::new(),
            finding: Some(finding),
        }
    }

    fn of(effects: Vec<Effect>) -> Self {
        Self { effects, finding: None }
    }
}

/// Decides about one resource. What discovery leaves open changes nothing.
pub fn decide(observation: &Observation<'_>, settings: &Settings) -> Decision {
    if !observation.spec_fits {
        return Decision::found(Finding::WrongSpec);
    }
    match (observation.discovered, observation.definition) {
        (Discovered::Partial, _) => Decision::found(Finding::PartialDiscovery),
        (Discovered::Absent, _) => Decision::default(),
        (Discovered::NoHash, None) => Decision::found(Finding::NoHash),
        (Discovered::NoHash, Some(defined)) => Decision {
            finding: Some(Finding::NoHash),
            ..compare(observation, settings, &defined.storage)
        },
        (Discovered::Divided(hashes), _) => Decision {
            effects: divide(observation, settings, hashes.iter()),
            finding: Some(Finding::Divided),
        },
        (Discovered::Agreed(hash), _) => compare(observation, settings, hash),
    }
}

/// The API servers write in different versions: all of them may be stored, and nothing can be migrated.
fn divide<'h>(
    observation: &Observation<'_>,
    settings: &Settings,
    hashes: impl Iterator<Item = &'h Hash>,
) -> Vec<Effect> {
    let mut effects = stop(observation, |progress| {
        matches!(progress, Progress::Pending | Progress::Running)
    });
    let unknown = || State::unknown(Encoding::Unknown, None, observation.now);
    let known = observation
        .state
        .filter(|state| !is_worthless(observation, settings, state));
    let mut state = seen(observation, known.cloned().unwrap_or_else(unknown));
    hashes.for_each(|hash| state.append(Encoding::Known(hash.clone())));
    state.current = Encoding::Unknown;
    effects.push(match observation.state {
        Some(_) => Effect::Update(state),
        None => Effect::Create(state),
    });
    effects
}

fn compare(observation: &Observation<'_>, settings: &Settings, hash: &Hash) -> Decision {
    let current = Encoding::Known(hash.clone());
    let Some(state) = observation.state else {
        return Decision::of(begin(observation, settings, hash, Effect::Create));
    };
    if is_worthless(observation, settings, state) {
        return Decision::of(begin(observation, settings, hash, Effect::Recreate));
    }
    if state.current == Encoding::Unknown && observation.unchanged_for < settings.settle {
        let mut state = seen(observation, state.clone());
        state.append(current);
        return Decision {
            effects: vec![Effect::Update(state)],
            finding: Some(Finding::Settling),
        };
    }
    if state.current == current && !may_have_missed(observation, state) {
        return Decision::of(keep(observation, settings, hash, state));
    }
    let mut effects = restart(observation, settings);
    let mut state = seen(observation, state.clone());
    stored(observation).for_each(|hash| state.append(hash));
    state.append(current.clone());
    state.current = current;
    effects.push(Effect::Update(state));
    Decision::of(effects)
}

/// Nothing is known of the stored objects: they are migrated, whatever their state says.
fn begin(observation: &Observation<'_>, settings: &Settings, hash: &Hash, put: fn(State) -> Effect) -> Vec<Effect> {
    let mut effects = restart(observation, settings);
    let definition = observation.definition.map(|defined| defined.definition.clone());
    effects.push(put(State::unknown(
        Encoding::Known(hash.clone()),
        definition,
        observation.now,
    )));
    effects
}

/// The version is the one that was known: the state follows a migration that succeeded, and one is started where none
/// is under way.
fn keep(observation: &Observation<'_>, settings: &Settings, hash: &Hash, state: &State) -> Vec<Effect> {
    let mut effects = Vec::new();
    let mut state = seen(observation, state.clone());
    let is_for_it =
        |migration: &&Migration| migration.target.hash.as_ref() == Some(hash) && is_of_now(observation, migration);
    let succeeded = |migration: &Migration| migration.progress == Progress::Succeeded;
    if observation.migrations.iter().filter(is_for_it).any(succeeded) {
        state.persisted = vec![state.current.clone()];
    } else if (!state.migrated() || lists_others(observation, &state))
        && settings.launch
        && !observation
            .migrations
            .iter()
            .any(|one| stands(observation, settings, one))
    {
        effects = restart(observation, settings);
    }
    if let Some(defined) = observation.definition.filter(|defined| defined.storage != *hash) {
        state.append(Encoding::Known(defined.storage.clone()));
    }
    effects.push(Effect::Update(state));
    effects
}

/// Whether the definition still lists other versions as stored: only a migration that succeeded on this definition
/// allows them to be dropped, and any change of it takes that back.
fn lists_others(observation: &Observation<'_>, state: &State) -> bool {
    stored(observation).any(|encoding| encoding != state.current)
}

/// Whether a migration leaves no room for another one: it is under way, or failed not long ago and on this definition,
/// for a cause that is still there. Where discovery agrees, the cause of one that was outdated is gone.
fn stands(observation: &Observation<'_>, settings: &Settings, migration: &Migration) -> bool {
    match migration.progress {
        Progress::Pending | Progress::Running => true,
        Progress::Succeeded => false,
        Progress::Failed { since, cause } => {
            let stands_for = match cause {
                Cause::Outdated => settings.settle,
                Cause::Forbidden if observation.permitted => settings.settle,
                Cause::Forbidden | Cause::Refused => settings.retry,
            };
            is_of_now(observation, migration) && age(observation, since) < stands_for
        }
    }
}

/// Whether a migration was for the definition that is there now. Of one before, another version may have been the
/// stored one since.
fn is_of_now(observation: &Observation<'_>, migration: &Migration) -> bool {
    migration.target.definition.as_ref() == observation.definition.map(|defined| &defined.definition)
}

/// Every migration of the resource gives way to a new one. Those that ended go as well: one that succeeded before the
/// version changed twice would speak for objects that were written since. Where people start migrations, one that has
/// not begun stays: it notes its target when it begins.
fn restart(observation: &Observation<'_>, settings: &Settings) -> Vec<Effect> {
    let mut effects = stop(observation, |progress| settings.launch || progress != Progress::Pending);
    if settings.launch {
        effects.push(Effect::Start);
    }
    effects
}

fn stop(observation: &Observation<'_>, which: impl Fn(Progress) -> bool) -> Vec<Effect> {
    let chosen = observation
        .migrations
        .iter()
        .filter(|migration| which(migration.progress));
    let effect = |migration: &Migration| Effect::Stop {
        name: migration.name.clone(),
        uid: migration.uid.clone(),
    };
    chosen.map(effect).collect()
}

/// The state with this round noted in it.
fn seen(observation: &Observation<'_>, state: State) -> State {
    State {
        heartbeat: Some(observation.now),
        definition: observation.definition.map(|defined| defined.definition.clone()),
        ..state
    }
}

/// Whether a state says nothing of the objects that are stored now.
fn is_worthless(observation: &Observation<'_>, settings: &Settings, state: &State) -> bool {
    (observation.first && stale(observation, settings, state)) || replaced(observation, state)
}

fn stale(observation: &Observation<'_>, settings: &Settings, state: &State) -> bool {
    state
        .heartbeat
        .is_none_or(|heartbeat| age(observation, heartbeat) > settings.period)
}

/// How long ago; nothing for a moment that is yet to come.
fn age(observation: &Observation<'_>, moment: Timestamp) -> Duration {
    observation.now.duration_since(moment).try_into().unwrap_or_default()
}

/// Whether the definition is another one than that of the state. A state without one, of a resource that has one, is
/// another program's.
fn replaced(observation: &Observation<'_>, state: &State) -> bool {
    match (observation.definition, &state.definition) {
        (Some(now), Some(then)) => now.definition.uid != then.uid,
        (None, Some(_)) | (Some(_), None) => true,
        (None, None) => false,
    }
}

/// Whether the storage version may have changed there and back since the last round: the definition changed more than
/// once, and objects were stored in versions that the state does not list.
fn may_have_missed(observation: &Observation<'_>, state: &State) -> bool {
    let (Some(now), Some(then)) = (observation.definition, &state.definition) else {
        return false;
    };
    now.definition.generation > then.generation.saturating_add(1)
        && stored(observation).any(|encoding| !state.persisted.contains(&encoding))
}

/// What the definition lists as stored.
fn stored(observation: &Observation<'_>) -> impl Iterator<Item = Encoding> {
    let hashes = observation.definition.map_or(&[][..], |defined| &defined.stored);
    hashes.iter().cloned().map(Encoding::Known)
}
