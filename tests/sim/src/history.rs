//! Whole histories: played from a seed or from a list of turns, and shortened to the turns that break a rule.

use super::coverage::Coverage;
use super::draw::Draw;
use super::harness::{Harness, Parts};
use super::turn::Turn;
use super::world::World;

/// Least turns with an effect.
pub const STEPS_MIN: u64 = 200;
/// Least faults.
pub const FAULTS_MIN: u64 = 5;
/// A seed that does not reach both in so many turns fails.
const TURNS_MAX: usize = 20_000;
/// Most attempts to shorten a history.
const ATTEMPTS_MAX: u32 = 400;

/// How a history ended.
#[derive(Clone, Debug)]
pub struct History {
    /// The seed of its settings.
    pub seed: u64,
    /// Which parts were production code.
    pub parts: Parts,
    /// All turns that were drawn.
    pub turns: Vec<Turn>,
    /// Turns with an effect.
    pub steps: u64,
    /// Faults among them.
    pub faults: u64,
    /// How often each fault happened in each step.
    pub coverage: Coverage,
    /// The first rule that was broken.
    pub wrong: Option<String>,
    /// What happened, if a log was kept.
    pub log: String,
}

/// Which parts of a seed are production code: all of them in one seed of ten.
pub fn parts_of(seed: u64) -> Parts {
    if seed % 10 == 9 { Parts::All } else { Parts::Controller }
}

/// Plays the whole history of a seed.
pub fn from_seed(seed: u64, parts: Parts, harness: &Harness, keep_log: bool) -> History {
    let mut world = World::new(seed, parts, harness, keep_log);
    let mut draw = Draw::new(seed);
    let mut turns = Vec::new();
    world.catch_panic(|world| {
        while world.wrong.is_none() && (world.counts.steps < STEPS_MIN || world.counts.faults < FAULTS_MIN) {
            let turn = draw.turn(world);
            turns.push(turn);
            world.play(turn);
            if turns.len() > TURNS_MAX {
                world.wrong = Some(format!("only {} steps in {TURNS_MAX} turns", world.counts.steps));
            }
        }
    });
    end(seed, parts, turns, world)
}

/// Plays these turns with the settings of a seed.
pub fn from_turns(seed: u64, parts: Parts, turns: &[Turn], harness: &Harness, keep_log: bool) -> History {
    let mut world = World::new(seed, parts, harness, keep_log);
    for turn in turns {
        world.play(*turn);
        if world.wrong.is_some() {
            break;
        }
    }
    end(seed, parts, turns.to_vec(), world)
}

fn end(seed: u64, parts: Parts, turns: Vec<Turn>, mut world: World<'_>) -> History {
    if world.wrong.is_none() {
        world.catch_panic(World::quiesce);
    }
    History {
        seed,
        parts,
        turns,
        steps: world.counts.steps,
        faults: world.counts.faults,
        log: world.log(),
        coverage: world.counts.coverage,
        wrong: world.wrong,
    }
}

/// A shorter history that also breaks a rule: turns are left out, many at a time and then fewer, as long as a rule is
/// still broken.
pub fn shorten(history: &History, harness: &Harness) -> History {
    let mut best = history.clone();
    let mut attempts = 0;
    let mut size = best.turns.len().div_ceil(2);
    while size > 0 && attempts < ATTEMPTS_MAX {
        let mut start = 0;
        let before = best.turns.len();
        while start < best.turns.len() && attempts < ATTEMPTS_MAX {
            attempts += 1;
            let mut turns = best.turns.clone();
            turns.drain(start..(start + size).min(turns.len()));
            let shorter = from_turns(best.seed, best.parts, &turns, harness, false);
            if shorter.wrong.is_some() {
                best = shorter;
            } else {
                start += size;
            }
        }
        if best.turns.len() == before || size > 1 {
            size /= 2;
        }
    }
    from_turns(best.seed, best.parts, &best.turns, harness, true)
}
