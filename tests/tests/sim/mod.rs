//! The simulation's seeds as tests, and the rules of the simulation itself. What is
//! simulated, and how, is the crate `kindex-sim`.
//!
//! `KINDEX_SIM_SEEDS=20000 cargo test` plays more of them; a seed that breaks a rule prints its
//! log, also of a shortened version, and replays with `cargo run -p kindex-sim -- --seed <seed>`.

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use kindex_sim::harness::{Harness, Parts};
use kindex_sim::history::{FAULTS_MIN, STEPS_MIN, from_seed, from_turns};
use kindex_sim::mutations::{misfits, read};
use kindex_sim::run::{COVERED_FROM, Failed, play_with_log, run, run_with};

/// Enough to see a rule broken that is broken easily.
const SEEDS: u64 = 500;
/// More than are played while one panics.
const MANY: u64 = 20_000;
/// Fewer would say little about what the simulation finds.
const MUTATIONS_MIN: usize = 8;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is not a number")),
    )
}

#[test]
fn simulation_of_many_histories_holds_the_rules() {
    let seeds = number("KINDEX_SIM_SEEDS").unwrap_or(SEEDS);
    let report = run(0, seeds, None, &|_| {});
    if let Some(Failed { seed, rule }) = report.failed {
        let (_, log) = play_with_log(seed, None);
        panic!("{log}\n{rule}\nreplay: cargo run -p kindex-sim -- --seed {seed}");
    }
    // Past the test harness, which keeps what a passing test prints.
    writeln!(std::io::stderr(), "simulation: {report}").expect("standard error is open");
    if seeds >= COVERED_FROM {
        let gaps = report.coverage.gaps();
        assert!(gaps.is_empty(), "{}", gaps.join("\n"));
    }
}

/// The seeds above one that failed are not played, by whichever thread.
#[test]
fn a_panic_of_what_plays_a_seed_fails_the_run_at_once_and_is_named() {
    let (panics_at, played) = (3, AtomicU64::new(0));
    let play = |seed, harness: &Harness| {
        assert!(seed != panics_at, "planted at seed {seed}");
        played.fetch_add(1, Ordering::Relaxed);
        from_seed(seed, Parts::Controller, harness, false)
    };
    let report = run_with(0, MANY, &play, &|_| {});
    let failed = report.failed.expect("a panic is a failure");
    assert_eq!((failed.seed, &*failed.rule), (panics_at, "panic: planted at seed 3"));
    assert!(
        played.into_inner() < MANY - 1,
        "seeds above the one that failed are left out"
    );
}

#[test]
fn every_planted_bug_fits_the_code() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = tests.parent().expect("the package is in the workspace");
    let mutations = read(workspace).expect("the list of bugs is readable");
    assert!(mutations.len() >= MUTATIONS_MIN, "{} bugs", mutations.len());
    assert!(
        mutations
            .iter()
            .any(|mutation| mutation.file.ends_with("store/src/statements/kind.rs")),
        "SQL text is code too"
    );
    let misfits = misfits(workspace, &mutations);
    assert!(misfits.is_empty(), "\n{}", misfits.join("\n"));
}

#[test]
fn a_seed_replays_to_the_letter_and_from_its_turns() {
    let harness = Harness::default();
    for (seed, parts) in [
        (3, Parts::Controller),
        (77, Parts::Controller),
        (1234, Parts::Controller),
        (9, Parts::All),
    ] {
        let history = from_seed(seed, parts, &harness, true);
        assert!(history.steps >= STEPS_MIN && history.faults >= FAULTS_MIN);
        assert_eq!(from_seed(seed, parts, &harness, true).log, history.log);
        assert_eq!(from_turns(seed, parts, &history.turns, &harness, true).log, history.log);
    }
}
