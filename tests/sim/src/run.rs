//! Runs many seeds on all processors, each history on one thread, and reports the lowest seed that fails. A panic
//! counts as a failure of its seed.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::coverage::Coverage;
use super::harness::{Harness, Parts};
use super::history::{FAULTS_MIN, History, STEPS_MIN, from_seed, parts_of, shorten};
use super::world::panic_text;

/// A run of at least this many seeds must contain every possible pair of a fault and a step.
pub const COVERED_FROM: u64 = 5_000;

/// The result of many seeds.
#[derive(Debug)]
pub struct Report {
    /// How many seeds were requested.
    pub seeds: u64,
    /// How long they took.
    pub time: Duration,
    /// Steps of all seeds.
    pub steps: u64,
    /// Faults of all seeds.
    pub faults: u64,
    /// How often each fault happened in each step.
    pub coverage: Coverage,
    /// The lowest seed that broke a rule.
    pub failed: Option<Failed>,
}

/// A seed that broke a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The seed.
    pub seed: u64,
    /// The first line of what was wrong.
    pub rule: String,
}

#[derive(Default)]
struct Sum {
    steps: u64,
    faults: u64,
    coverage: Coverage,
}

impl Sum {
    fn add(&mut self, more: &Self) {
        self.steps += more.steps;
        self.faults += more.faults;
        self.coverage.merge(&more.coverage);
    }
}

/// Plays `seeds` seeds from `first` on, and stops at the first that breaks a rule. `parts` overrides the parts that
/// each seed would choose.
pub fn run(first: u64, seeds: u64, parts: Option<Parts>, progress: &(dyn Fn(u64) + Sync)) -> Report {
    let play = |seed, harness: &Harness| from_seed(seed, parts.unwrap_or_else(|| parts_of(seed)), harness, false);
    run_with(first, seeds, &play, progress)
}

/// Like [`run`], with `play` as the function that plays one seed.
pub fn run_with(
    first: u64,
    seeds: u64,
    play: &(dyn Fn(u64, &Harness) -> History + Sync),
    progress: &(dyn Fn(u64) + Sync),
) -> Report {
    let began = Instant::now();
    let next = AtomicU64::new(first);
    let done = AtomicU64::new(0);
    let lowest = AtomicU64::new(u64::MAX);
    let (sum, failed) = (Mutex::new(Sum::default()), Mutex::new(None::<Failed>));
    let fail = |seed, rule| {
        lowest.fetch_min(seed, Ordering::Relaxed);
        let mut failed = failed.lock().expect("no thread panics while it reports");
        if failed.as_ref().is_none_or(|known| seed < known.seed) {
            *failed = Some(Failed { seed, rule });
        }
    };
    let play_some = || {
        let harness = Harness::default();
        let mut own = Sum::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            // Seeds are played in ascending order, so the remaining ones are all higher than the one that failed.
            if seed >= first + seeds || seed > lowest.load(Ordering::Relaxed) {
                break;
            }
            let played = catch_unwind(AssertUnwindSafe(|| {
                let history = play(seed, &harness);
                progress(done.fetch_add(1, Ordering::Relaxed) + 1);
                history
            }));
            match played {
                Err(panic) => fail(seed, panic_text(&*panic)),
                Ok(history) => {
                    if let Some(rule) = broken_rule(&history) {
                        fail(seed, rule);
                    }
                    own.add(&Sum {
                        steps: history.steps,
                        faults: history.faults,
                        coverage: history.coverage,
                    });
                }
            }
        }
        sum.lock().expect("no thread panics while it adds").add(&own);
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(play_some);
        }
    });
    let sum = sum.into_inner().expect("no thread panics while it adds");
    Report {
        seeds,
        time: began.elapsed(),
        steps: sum.steps,
        faults: sum.faults,
        coverage: sum.coverage,
        failed: failed.into_inner().expect("no thread panics while it reports"),
    }
}

/// The first line of the rule that a history broke, if it broke one.
fn broken_rule(history: &History) -> Option<String> {
    let first_line = |wrong: &String| wrong.lines().next().unwrap_or_default().to_owned();
    let (steps, faults) = (history.steps, history.faults);
    let too_few = (steps < STEPS_MIN || faults < FAULTS_MIN).then(|| format!("only {steps} steps and {faults} faults"));
    history.wrong.as_ref().map(first_line).or(too_few)
}

/// Plays one seed and returns its log; if it breaks a rule, with the shortest version found.
pub fn play_with_log(seed: u64, parts: Option<Parts>) -> (History, String) {
    let harness = Harness::default();
    let history = from_seed(seed, parts.unwrap_or_else(|| parts_of(seed)), &harness, true);
    let Some(wrong) = &history.wrong else {
        let log = history.log.clone();
        return (history, log);
    };
    let short = shorten(&history, &harness);
    let log = format!(
        "{}\n\nseed {seed}: {wrong}\n\nThe same with {} of {} turns:\n\n{}\n\nseed {seed}, shortened: {}",
        history.log,
        short.turns.len(),
        history.turns.len(),
        short.log,
        short.wrong.as_deref().unwrap_or("no rule is broken"),
    );
    (history, log)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.time.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = self.seeds as f64 / seconds;
        writeln!(
            f,
            "{} seeds, {} steps, {} faults in {seconds:.1} s: {rate:.0} seeds a second",
            self.seeds, self.steps, self.faults,
        )?;
        write!(f, "{}", self.coverage)
    }
}
