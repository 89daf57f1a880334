//! The whole ingester, production code, against a simulated cluster and a simulated
//! database under one seeded scheduler with virtual time. Every seed is another history
//! of users, faults, crashes and delays.
//!
//! `KINDEX_SIM_SEEDS=20000 cargo test` runs more of them; a failing seed tells its story
//! and replays with `KINDEX_SIM_SEED=<seed> cargo test simulation`.

use kindex_runtime::kind::{Column, ColumnType, Encoded, Kind, Platform, Scope};

/// Adds a line to the story, where one is told.
macro_rules! tell {
    ($world:expr, $($line:tt)*) => {
        if $world.telling {
            let at = $world.elapsed.as_secs_f64();
            let line = format!($($line)*);
            $world.story.push(format!("{at:>8.3}s {line}"));
        }
    };
}

mod checks;
pub mod cluster;
pub mod database;
mod faults;
mod perform;
mod users;
mod world;

pub use perform::version_of;
use world::World;

pub const NAMESPACE: &str = "sim";
pub const FINALIZER: &str = "sim/Ingester";
pub const FOREIGN_FINALIZER: &str = "sim/other";
pub const DELETING: &str = "sim/Deleting";
pub const IMMUTABLE: &str = "sim/Immutable";
/// The value of objects that the database refuses, as their text shows it.
pub const POISON: &str = "\"value\":666";
pub const POISON_VALUE: u64 = 666;

pub static PLATFORM: Platform = Platform {
    group: "sim.kindex",
    version: "v1",
    finalizer: FINALIZER,
    deleting: DELETING,
    immutable: IMMUTABLE,
    restored_from: "test/RestoredFrom",
};

pub static THING: Kind = Kind {
    name: "Thing",
    group: "sim.kindex",
    version: "v1",
    plural: "things",
    singular: "thing",
    scope: Scope::Namespaced,
    table: "thing",
    immutable: false,
    history: false,
    columns: &[Column {
        name: "value",
        path: &["spec", "value"],
        ty: ColumnType::Int64,
        own_namespace: false,
    }],
    keys: &[],
    retention: None,
    manifest: "",
    encode: |_| Encoded {
        proto: None,
        problems: Vec::new(),
    },
};

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is not a number")),
    )
}

#[test]
fn simulation_of_many_histories_holds_the_invariants() {
    if let Some(seed) = number("KINDEX_SIM_SEED") {
        let world = World::run(seed, true);
        println!("{}", world.story());
        world.verdict().unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        return;
    }
    for seed in 0..number("KINDEX_SIM_SEEDS").unwrap_or(300) {
        if let Err(wrong) = World::run(seed, false).verdict() {
            panic!(
                "{}\nseed {seed}: {wrong}\nreplay: KINDEX_SIM_SEED={seed} cargo test simulation",
                World::run(seed, true).story()
            );
        }
    }
}

#[test]
fn a_seed_replays_to_the_letter() {
    for seed in [3, 77, 1234] {
        let story = World::run(seed, true).story();
        assert_eq!(story, World::run(seed, true).story());
    }
}
