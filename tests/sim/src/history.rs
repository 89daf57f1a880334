//! Whole histories: from a seed, or from the turns of another one; and the shortest that
//! still breaks a rule.

use super::coverage::Coverage;
use super::draw::Draw;
use super::ground::{Ground, Parts};
use super::turn::Turn;
use super::world::World;

/// Turns that do something, at least.
pub const STEPS_MIN: u64 = 200;
/// Faults, at least.
pub const FAULTS_MIN: u64 = 5;
/// A seed that cannot reach both in so many turns is broken.
const TURNS_MAX: usize = 20_000;
/// Attempts at making a history shorter.
const ATTEMPTS_MAX: u32 = 400;

/// How a history ended.
#[derive(Clone, Debug)]
pub struct History {
    /// The seed of its settings.
    pub seed: u64,
    /// Which parts were production's.
    pub parts: Parts,
    /// Everything that chance decided.
    pub turns: Vec<Turn>,
    /// Turns that did something.
    pub steps: u64,
    /// Faults among them.
    pub faults: u64,
    /// Which fault met which step.
    pub coverage: Coverage,
    /// The first rule that was broken.
    pub wrong: Option<String>,
    /// What happened, where it was told.
    pub story: String,
}

/// Which parts a seed simulates: one in ten all of them.
pub fn parts_of(seed: u64) -> Parts {
    if seed % 10 == 9 { Parts::All } else { Parts::Controller }
}

/// Plays the whole history of a seed.
pub fn from_seed(seed: u64, parts: Parts, ground: &Ground, telling: bool) -> History {
    let mut world = World::new(seed, parts, ground, telling);
    let mut draw = Draw::new(seed);
    let mut turns = Vec::new();
    world.survive(|world| {
        while world.wrong.is_none() && (world.steps < STEPS_MIN || world.faults < FAULTS_MIN) {
            let turn = draw.turn(world);
            turns.push(turn);
            world.play(turn);
            if turns.len() > TURNS_MAX {
                world.wrong = Some(format!("only {} steps in {TURNS_MAX} turns", world.steps));
            }
        }
    });
    end(seed, parts, turns, world)
}

/// Plays these turns with the settings of a seed.
pub fn from_turns(seed: u64, parts: Parts, turns: &[Turn], ground: &Ground, telling: bool) -> History {
    let mut world = World::new(seed, parts, ground, telling);
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
        world.survive(World::calm_down);
    }
    History {
        seed,
        parts,
        turns,
        steps: world.steps,
        faults: world.faults,
        story: world.story(),
        coverage: world.coverage,
        wrong: world.wrong,
    }
}

/// A shorter history that breaks a rule as well: turns are left out, many at a time and
/// then fewer, as long as something still goes wrong.
pub fn shorten(history: &History, ground: &Ground) -> History {
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
            let shorter = from_turns(best.seed, best.parts, &turns, ground, false);
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
    from_turns(best.seed, best.parts, &best.turns, ground, true)
}
