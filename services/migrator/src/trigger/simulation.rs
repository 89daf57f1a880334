//! A resource whose API servers are upgraded and downgraded one by one, while objects are written, migrations run, and
//! the trigger crashes between any two of its writes. The rule: no stored object has an encoding that the state does
//! not list, other than one that no complete round could see yet.

use std::collections::BTreeSet;

use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::discovery::{Shown, combine};
use crate::migration::Target;

const SEEDS: u64 = 1_000;
const STEPS: usize = 150;
const OBJECTS: usize = 4;
const VERSIONS: [&str; 3] = ["a", "b", "c"];
const SETTINGS: Settings = Settings {
    period: Duration::from_secs(600),
    settle: Duration::from_secs(30),
    retry: Duration::from_secs(3_600),
    launch: true,
};
/// Longest time for which a server writes in the version before, after it shows the next: less than the settle time.
const LAG_SECONDS: i64 = 20;

/// What is wrong with the trigger that is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// Migrations that ended are left when the version changes.
    KeepEnded,
    /// The change is noted before migrations are stopped.
    NoteFirst,
    /// The version that discovery shows is not added.
    ForgetVersion,
    /// Servers that disagree are taken for silent ones.
    IgnoreDivided,
    /// The age of a heartbeat counts for nothing.
    TrustAnyState,
}

/// One API server: discovery runs ahead of its handlers.
#[derive(Clone, Copy, Debug)]
struct Server {
    shows: &'static str,
    writes: &'static str,
    follows_at: i64,
}

#[derive(Clone, Debug)]
struct Run {
    migration: Migration,
    pass: usize,
    next: usize,
    changed: bool,
}

struct World {
    random: Xoshiro256PlusPlus,
    bug: Bug,
    second: i64,
    servers: Vec<Server>,
    objects: [&'static str; OBJECTS],
    /// Versions that were written since the last complete round.
    unseen: BTreeSet<&'static str>,
    state: Option<State>,
    runs: Vec<Run>,
    running: bool,
    first: bool,
    shown: Discovered,
    shown_since: i64,
    uids: u32,
}

impl World {
    fn new(seed: u64, bug: Bug) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let server = Server {
            shows: "a",
            writes: "a",
            follows_at: 0,
        };
        let servers = vec![server; random.random_range(1..=3)];
        Self {
            random,
            bug,
            second: 0,
            servers,
            objects: ["a"; OBJECTS],
            unseen: BTreeSet::new(),
            state: None,
            runs: Vec::new(),
            running: true,
            first: true,
            shown: Discovered::Partial,
            shown_since: 0,
            uids: 0,
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.second).expect("in range")
    }

    fn step(&mut self) {
        match self.random.random_range(0..12) {
            0..3 => self.write(),
            3 => self.roll(),
            4 => self.pass(),
            5..8 => self.migrate(),
            8 if self.random.random_bool(0.2) => (self.running, self.first) = (false, true),
            8 => self.running = true,
            _ => self.reconcile(),
        }
    }

    fn write(&mut self) {
        let object = self.random.random_range(0..OBJECTS);
        let server = self.any_server();
        self.store(object, server);
    }

    fn any_server(&mut self) -> usize {
        self.random.random_range(0..self.servers.len())
    }

    /// Writes an object through a server; whether its bytes changed.
    fn store(&mut self, object: usize, server: usize) -> bool {
        let server = &mut self.servers[server];
        if self.second >= server.follows_at {
            server.writes = server.shows;
        }
        let changed = self.objects[object] != server.writes;
        self.objects[object] = server.writes;
        changed
    }

    /// One server goes to another version. A version that no round saw does not go away while the trigger runs: that is
    /// what the period is for.
    fn roll(&mut self) {
        let server = self.any_server();
        let old = self.servers[server].shows;
        let shown_elsewhere = (0..self.servers.len()).any(|other| other != server && self.servers[other].shows == old);
        if self.unseen.contains(old) && !shown_elsewhere && !self.overdue() {
            return;
        }
        let new = VERSIONS.choose(&mut self.random).expect("there are versions");
        let lag = self.random.random_range(0..=LAG_SECONDS);
        let follows_at = self.second + lag;
        let server = &mut self.servers[server];
        if self.second >= server.follows_at {
            server.writes = server.shows;
        }
        (server.shows, server.follows_at) = (new, follows_at);
        self.unseen.insert(new);
    }

    /// Whether the trigger was away for so long that its state counts for nothing when it comes back.
    fn overdue(&self) -> bool {
        let heartbeat = self.state.as_ref().and_then(|state| state.heartbeat);
        let age = heartbeat.map(|heartbeat| self.second - heartbeat.as_second());
        self.first && age.is_some_and(|age| age > 600)
    }

    fn pass(&mut self) {
        self.second += self.random.random_range(1..=200);
    }

    fn agreed(&self) -> Option<&'static str> {
        let first = self.servers[0].shows;
        self.servers.iter().all(|server| server.shows == first).then_some(first)
    }

    /// One object of the oldest migration that has not ended, under the rules of the migrator: it writes once discovery
    /// has settled, and succeeds once a whole pass changed nothing.
    fn migrate(&mut self) {
        let ended = |run: &Run| !matches!(run.migration.progress, Progress::Pending | Progress::Running);
        let Some(at) = self.runs.iter().position(|run| !ended(run)) else {
            return;
        };
        let agreed = self.agreed().map(|version| Hash::shown(version).expect("not empty"));
        let settled = self.servers.iter().all(|server| self.second >= server.follows_at + 10);
        if self.runs[at].migration.progress == Progress::Pending {
            if agreed.is_none() || !settled {
                return;
            }
            self.runs[at].migration.target.hash = agreed;
        } else if self.runs[at].migration.target.hash != agreed {
            self.runs[at].migration.progress = Progress::Failed {
                since: self.now(),
                cause: Cause::Outdated,
            };
            return;
        }
        let server = self.any_server();
        let next = self.runs[at].next;
        let changed = self.store(next, server);
        let run = &mut self.runs[at];
        run.migration.progress = Progress::Running;
        run.changed |= changed;
        run.next += 1;
        if run.next == OBJECTS {
            if run.pass > 0 && !run.changed {
                run.migration.progress = Progress::Succeeded;
            }
            (run.pass, run.next, run.changed) = (run.pass + 1, 0, false);
        }
    }

    fn reconcile(&mut self) {
        if !self.running {
            return;
        }
        let silent = self.random.random_bool(0.1).then(|| self.any_server());
        let shown = (0..self.servers.len()).map(|at| match silent == Some(at) {
            true => Shown::Silent,
            false => Shown::Hash(Hash::shown(self.servers[at].shows).expect("not empty")),
        });
        let discovered = combine(shown);
        if discovered != self.shown {
            (self.shown, self.shown_since) = (discovered.clone(), self.second);
        }
        let complete = discovered != Discovered::Partial;
        let effects = self.decide(discovered);
        let crash_at = self
            .random
            .random_bool(0.2)
            .then(|| self.random.random_range(0..=effects.len()));
        for (at, effect) in effects.into_iter().enumerate() {
            if crash_at == Some(at) {
                break;
            }
            self.apply(effect);
        }
        if crash_at.is_some() {
            (self.first, self.shown) = (true, Discovered::Partial);
        } else if complete {
            self.first = false;
            self.unseen.clear();
        }
    }

    /// The decision of the trigger, with the bug in it.
    fn decide(&self, discovered: Discovered) -> Vec<Effect> {
        let migrations: Vec<_> = self.runs.iter().map(|run| run.migration.clone()).collect();
        let ended: BTreeSet<_> = migrations
            .iter()
            .filter(|migration| migration.progress == Progress::Succeeded)
            .map(|migration| migration.uid.clone())
            .collect();
        let discovered = match discovered {
            Discovered::Divided(_) if self.bug == Bug::IgnoreDivided => Discovered::Partial,
            other => other,
        };
        let observation = Observation {
            now: self.now(),
            first: self.first && self.bug != Bug::TrustAnyState,
            discovered: &discovered,
            unchanged_for: Duration::from_secs(u64::try_from(self.second - self.shown_since).expect("time goes on")),
            definition: None,
            state: self.state.as_ref(),
            migrations: &migrations,
            permitted: false,
            spec_fits: true,
        };
        let mut effects = decide(&observation, &SETTINGS).effects;
        match self.bug {
            Bug::KeepEnded => {
                effects.retain(|effect| !matches!(effect, Effect::Stop { uid, .. } if ended.contains(uid)))
            }
            Bug::NoteFirst if effects.is_empty() => {}
            Bug::NoteFirst => effects.rotate_right(1),
            Bug::ForgetVersion => {
                for effect in &mut effects {
                    if let Effect::Update(state) = effect
                        && state.persisted.len() > 1
                    {
                        state.persisted.pop();
                    }
                }
            }
            Bug::None | Bug::IgnoreDivided | Bug::TrustAnyState => {}
        }
        effects
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Stop { uid, .. } => self.runs.retain(|run| run.migration.uid != uid),
            Effect::Start => {
                self.uids += 1;
                let migration = Migration {
                    name: format!("run-{}", self.uids),
                    uid: self.uids.to_string(),
                    target: Target::default(),
                    progress: Progress::Pending,
                };
                self.runs.push(Run {
                    migration,
                    pass: 0,
                    next: 0,
                    changed: false,
                });
            }
            Effect::Create(state) | Effect::Update(state) | Effect::Recreate(state) => self.state = Some(state),
        }
    }

    /// The first object that the state does not account for.
    fn unaccounted(&self) -> Option<String> {
        let state = self.state.as_ref()?;
        if self.overdue() {
            return None;
        }
        let lost = |version: &&&'static str| {
            let hash = Hash::shown(version).expect("not empty");
            !state.may_hold(&hash) && !self.unseen.contains(**version)
        };
        let version = self.objects.iter().find(lost)?;
        Some(format!(
            "an object is in {version}, the state lists {:?}",
            state.persisted
        ))
    }

    /// Nothing changes any more: everything has to come to the version in which the servers write.
    fn rest(&mut self) -> Result<(), String> {
        self.running = true;
        while !self.unseen.is_empty() {
            self.reconcile();
        }
        let version = self.servers[0].shows;
        for server in &mut self.servers {
            (server.shows, server.follows_at) = (version, self.second);
        }
        for _ in 0..200 {
            self.reconcile();
            self.migrate();
            self.second += 20;
            self.hold()?;
        }
        let migrated = self.state.as_ref().is_some_and(State::migrated);
        let stored = self.objects.iter().all(|object| *object == version);
        (migrated && stored)
            .then_some(())
            .ok_or_else(|| format!("not migrated to {version}: {:?} {:?}", self.objects, self.state))
    }

    fn hold(&self) -> Result<(), String> {
        self.unaccounted().map_or(Ok(()), Err)
    }
}

fn play(seed: u64, bug: Bug) -> Result<(), String> {
    let mut world = World::new(seed, bug);
    for _ in 0..STEPS {
        world.step();
        world.hold()?;
    }
    world.rest()
}

#[test]
fn no_stored_version_is_ever_missing_from_the_state() {
    for seed in 0..SEEDS {
        if let Err(broken) = play(seed, Bug::None) {
            panic!("seed {seed}: {broken}");
        }
    }
}

#[test]
fn every_bug_is_found() {
    let bugs = [
        Bug::KeepEnded,
        Bug::NoteFirst,
        Bug::ForgetVersion,
        Bug::IgnoreDivided,
        Bug::TrustAnyState,
    ];
    for bug in bugs {
        let found = (0..SEEDS).find(|seed| play(*seed, bug).is_err());
        assert!(found.is_some(), "{bug:?} is not found in {SEEDS} seeds");
    }
}
