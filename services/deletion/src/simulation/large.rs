//! Plays of large graphs: some two hundred objects in layers, trees, stars and rings, a part of them archived, a part
//! of SQL-only kinds, and some held by the API alone. Users delete a few, and what must become of each object is known
//! beforehand. Or users go on: once they have stopped, it follows from what is there, and from what there was.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, available_parallelism};

use kindex_model::reference::OnDelete;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};

use super::action;
use super::bug::Bug;
use super::oracle::{Oracle, Tally};
use super::world::{FIELDS, Field, KINDS, Refusal, fields};
use super::{Play, Setting, names};
use crate::object::Key;

/// Names of each of the eight kinds.
const NAMES: usize = 25;
const STEPS: usize = 1500;
/// Seeds that are played each time.
const SEEDS: u64 = 100;

/// Whom the objects of a kind name by a field, each by its number.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Anyone.
    Any,
    /// One of the first: many hold few.
    Few(usize),
    /// The one of the same number.
    Same,
    /// The one of half the number: a tree.
    Half,
    /// One of those before.
    Before,
    /// The next one, and the last one names the first: a ring, within a kind.
    Next,
}

impl Shape {
    const ALL: [Self; 7] = [
        Self::Any,
        Self::Few(1),
        Self::Few(4),
        Self::Same,
        Self::Half,
        Self::Before,
        Self::Next,
    ];

    fn target(self, at: usize, random: &mut Xoshiro256PlusPlus) -> usize {
        match self {
            Self::Any => random.random_range(0..NAMES),
            Self::Few(few) => random.random_range(0..few),
            Self::Same => at,
            Self::Half => at / 2,
            Self::Before => random.random_range(0..at.max(1)),
            Self::Next => (at + 1) % NAMES,
        }
    }
}

/// What a user is about to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// An object is deleted.
    Delete(Key, String),
    /// An object that holds another one by the API alone is deleted, and releases it.
    Release(String),
}

impl Intent {
    fn uid(&self) -> &str {
        match self {
            Self::Delete(_, uid) | Self::Release(uid) => uid,
        }
    }
}

fn any<T: Copy>(of: &[T], random: &mut Xoshiro256PlusPlus) -> T {
    *of.choose(random).expect("there are some")
}

/// The kinds that are only in SQL: in half of the plays none. They have draws of their own, so that a play without any
/// is what it would be if there were no such kinds.
fn any_sql_only(seed: u64) -> BTreeSet<&'static str> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(!seed);
    let share = any(&[0.0, 0.0, 0.25, 0.5], &mut random);
    KINDS.into_iter().filter(|_| random.random_bool(share)).collect()
}

/// A random play. Of three, users go on in one.
fn play(seed: u64, bug: Bug) -> Result<Tally, String> {
    let is_busy = seed.is_multiple_of(3);
    let mut play = Play::of_many(seed, is_busy, bug);
    play.create_all();
    play.settle()?;
    play.archive_some();
    play.settle()?;
    play.hold_from_sql();
    play.settle()?;
    let oracle = Oracle::of(&play.world);
    play.intend();
    let deleted: BTreeSet<String> = play.intents.iter().map(|intent| intent.uid().to_owned()).collect();
    for _ in 0..STEPS {
        play.step();
        play.hold()?;
    }
    play.fulfill_all();
    play.settle()?;
    play.world.in_reach()?;
    play.world.after_archived()?;
    if !is_busy {
        let tally = oracle.judge(&deleted, &play.world)?;
        play.rest()?;
        return Ok(tally);
    }
    play.rest()?;
    let gone = play.world.in_reach()?;
    play.world.after_archived()?;
    let now = Oracle::now(&play.world).judge(&BTreeSet::new(), &play.world)?;
    Ok(Tally { gone, ..now })
}

impl Play {
    /// A play in which there is nothing yet.
    fn of_many(seed: u64, is_busy: bool, bug: Bug) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let setting = Setting {
            twofold: random.random_bool(0.3),
            meddling: is_busy && random.random_bool(0.3),
            archiving: true,
        };
        let odds = if is_busy { action::LARGE_AND_BUSY } else { action::LARGE };
        let divided = random.random_bool(0.4);
        let mut play = Self::of(random, divided, setting, odds, bug);
        play.names = names(NAMES);
        play.world.services.takes_references = true;
        play.world.archives.across = true;
        play.world.services.sql_only_kinds = any_sql_only(seed);
        // The first ones did not know of this.
        play.controllers.clear();
        play.employ();
        play
    }

    /// All objects, in any order.
    fn create_all(&mut self) {
        let shapes = FIELDS.iter().map(|field| {
            let shape = any(&Shape::ALL, &mut self.random);
            let shares = match field.on_delete {
                OnDelete::Cascade => [0.5, 0.9, 1.0],
                OnDelete::Block | OnDelete::Orphan => [0.1, 0.3, 0.8],
            };
            let share = any(&shares, &mut self.random);
            (shape, share)
        });
        let shapes: Vec<(Shape, f64)> = shapes.collect();
        let mut order: Vec<(&str, usize)> = KINDS.iter().flat_map(|kind| (0..NAMES).map(|at| (*kind, at))).collect();
        order.shuffle(&mut self.random);
        for (kind, at) in order {
            let named = self.shaped(kind, at, &shapes);
            let foreign = self.random.random_bool(0.2);
            self.world
                .create(self.world.services.key(kind, &self.names[at]), named, foreign, false);
        }
    }

    fn shaped(&mut self, kind: &str, at: usize, shapes: &[(Shape, f64)]) -> BTreeMap<&'static str, String> {
        let mut named = BTreeMap::new();
        for (field, (shape, share)) in FIELDS.iter().zip(shapes).filter(|(field, _)| field.holder == kind) {
            if self.random.random_bool(*share) {
                let target = shape.target(at, &mut self.random);
                named.insert(field.name, self.names[target].clone());
            }
        }
        named
    }

    /// Some objects become final, but for what is only in SQL.
    fn archive_some(&mut self) {
        let share = any(&[0.0, 0.2, 0.5, 0.8], &mut self.random);
        let keys = self.world.servers.objects.keys();
        let mut chosen: BTreeSet<Key> = keys.filter(|_| self.random.random_bool(share)).cloned().collect();
        chosen.retain(|key| !self.world.services.is_sql_only(&key.kind));
        for key in self.leaving(&chosen) {
            let written = self.world.write(&key, None, None, |object| object.immutable = true);
            assert!(written.is_ok(), "everything answers");
        }
    }

    /// Those of them that can leave the cluster: an owner does after what it owns.
    fn leaving(&self, chosen: &BTreeSet<Key>) -> BTreeSet<Key> {
        let mut owned: BTreeMap<&Key, Vec<Key>> = chosen.iter().map(|key| (key, Vec::new())).collect();
        for (holder, _, target) in self.named().into_iter().filter(|(_, field, _)| field.owned) {
            if let Some(owned) = owned.get_mut(&target).filter(|_| holder != target) {
                owned.push(holder);
            }
        }
        let mut leaving: BTreeSet<Key> = BTreeSet::new();
        loop {
            let free = owned
                .extract_if(.., |_, owned| owned.iter().all(|one| leaving.contains(one)))
                .map(|(key, _)| key.clone());
            let free: Vec<Key> = free.collect();
            if free.is_empty() {
                return leaving;
            }
            leaving.extend(free);
        }
    }

    /// Who names whom by which field.
    fn named(&self) -> Vec<(Key, &'static Field, Key)> {
        let mut named = Vec::new();
        for object in self.world.servers.objects.values() {
            for field in fields(&object.key.kind.kind) {
                if let Some(name) = object.named.get(field.name) {
                    named.push((object.key.clone(), field, self.world.services.key(field.target, name)));
                }
            }
        }
        named
    }

    /// Everything that is there, in the cluster and archived.
    fn everything(&self) -> Vec<(Key, String)> {
        let rows = self.world.archives.rows.values().filter(|row| !row.deleted);
        let all = self.world.servers.objects.values().chain(rows.map(|row| &row.object));
        all.map(|object| (object.key.clone(), object.uid.clone())).collect()
    }

    /// Objects that the graph does not know hold some of them.
    fn hold_from_sql(&mut self) {
        let all = self.everything();
        let number = any(&[0, 4, 16], &mut self.random);
        for (key, uid) in all.sample(&mut self.random, number) {
            self.world.hold_from_sql(key, uid);
        }
    }

    /// Users are about to delete a few objects, and some of those that the graph does not know.
    fn intend(&mut self) {
        let all = self.everything();
        // Much follows from the deletion of what is at the bottom.
        let bottom = |key: &Key| matches!(&*key.kind.kind, "Project" | "Identity" | "Tree");
        let (low, high): (Vec<_>, Vec<_>) = all.into_iter().partition(|(key, _)| bottom(key));
        let mut intents = Vec::new();
        for (some, numbers) in [(low, [1, 4, 12, 36]), (high, [0, 2, 6, 18])] {
            let number = any(&numbers, &mut self.random);
            let some = some.sample(&mut self.random, number);
            intents.extend(some.map(|(key, uid)| Intent::Delete(key.clone(), uid.clone())));
        }
        for uid in self.world.api_holders.keys() {
            if self.random.random_bool(0.5) {
                intents.push(Intent::Release(uid.clone()));
            }
        }
        intents.shuffle(&mut self.random);
        self.intents = intents;
    }

    /// A user does the next thing.
    pub(super) fn fulfill(&mut self) {
        let Some(intent) = self.intents.pop() else {
            return;
        };
        let done = match &intent {
            Intent::Release(uid) => self.world.release_from_sql(uid),
            Intent::Delete(key, uid) => self.delete_this(key, uid),
        };
        if !done {
            self.intents.insert(0, intent);
        }
    }

    fn fulfill_all(&mut self) {
        self.world.servers.down = None;
        while !self.intents.is_empty() {
            self.fulfill();
        }
    }

    /// Whether the server answers.
    fn delete_this(&mut self, key: &Key, uid: &str) -> bool {
        if self.world.archives.is_archived(uid) {
            self.world.judge.history.deleted_by_user(uid);
            self.world.drop_row(uid);
            return true;
        }
        let asks = self.random.random_bool(0.3);
        let written = self.world.write(key, Some(uid), None, |object| {
            object.asked = true;
            match asks || object.immutable {
                true => object.requested = true,
                false => object.terminating = true,
            }
        });
        if written.is_ok() {
            self.world.judge.history.deleted_by_user(uid);
        }
        !matches!(written, Err(Refusal::Down))
    }
}

/// What has become of all objects, and the seeds in which a rule was broken.
type Played = (Tally, Vec<String>);

/// Plays these seeds, as many at a time as there are processors, until rules were broken in so many of them.
fn play_all(seeds: u64, bug: Bug, enough: usize) -> Played {
    let played = Mutex::new(Played::default());
    on_all_processors(seeds, |seed| {
        let came = play(seed, bug);
        let mut played = played.lock().expect("nobody panics");
        match came {
            Ok(tally) => played.0.add(tally),
            Err(rule) => {
                println!("seed {seed}: {rule}");
                played.1.push(format!("seed {seed}: {rule}"));
            }
        }
        match played.1.len() < enough {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    played.into_inner().expect("nobody panics")
}

/// Works on each number below `count`, as many at a time as there are processors, until it breaks off.
fn on_all_processors(count: u64, work: impl Fn(u64) -> ControlFlow<()> + Sync) {
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    if work(number).is_break() {
                        next.store(count, Ordering::Relaxed);
                    }
                }
            });
        }
    });
}

/// `KINDEX_GRAPHS=full` for ten thousand, which take minutes without optimization.
fn seeds() -> u64 {
    match std::env::var("KINDEX_GRAPHS").as_deref() {
        Ok("full") => 10_000,
        _ => SEEDS,
    }
}

#[test]
fn in_large_graphs_exactly_what_can_go_goes() {
    let seeds = seeds();
    let (all, broken) = play_all(seeds, Bug::None, 20);
    assert!(broken.is_empty(), "{broken:#?}");
    println!("{seeds} seeds: {all:?}");
    let counts = [all.archived, all.sql_only, all.untouched, all.waiting, all.gone];
    assert!(
        counts.into_iter().min() >= Some(100),
        "hardly anything happens: {all:?}"
    );
}

#[test]
fn every_bug_of_large_graphs_is_found() {
    let missed = Mutex::new(Vec::new());
    on_all_processors(Bug::IN_LARGE.len() as u64, |number| {
        let bug = Bug::IN_LARGE[number as usize];
        match (0..SEEDS).find_map(|seed| Some((seed, play(seed, bug).err()?))) {
            Some((seed, rule)) => println!("{bug:?}: seed {seed}: {rule}"),
            None => missed.lock().expect("nobody panics").push(bug),
        }
        ControlFlow::Continue(())
    });
    let missed = missed.into_inner().expect("nobody panics");
    assert!(missed.is_empty(), "not found in {SEEDS} seeds: {missed:?}");
}
