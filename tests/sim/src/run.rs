//! Many seeds on all processors. Each history stays on one thread; which seeds are played
//! depends on nothing but their number, and the lowest that fails is the one reported. A panic of what plays them is a
//! failure of its seed like any other.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::coverage::Coverage;
use super::ground::{Ground, Parts};
use super::history::{FAULTS_MIN, History, STEPS_MIN, from_seed, parts_of, shorten};
use super::world::panic_text;

/// From this number on, every pair of a fault and a step must have met.
pub const COVERED_FROM: u64 = 5_000;

/// What came of many seeds.
#[derive(Debug)]
pub struct Report {
    /// How many were asked for.
    pub seeds: u64,
    /// How long they took.
    pub time: Duration,
    /// How many steps they had in all.
    pub steps: u64,
    /// How many faults.
    pub faults: u64,
    /// Which fault met which step.
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

/// Plays the seeds from `first` on, so many, and stops at one that breaks a rule.
/// `parts` replaces what the seeds themselves say.
pub fn run(first: u64, seeds: u64, parts: Option<Parts>, progress: &(dyn Fn(u64) + Sync)) -> Report {
    let play = |seed, ground: &Ground| from_seed(seed, parts.unwrap_or_else(|| parts_of(seed)), ground, false);
    run_with(first, seeds, &play, progress)
}

/// As [`run`], by another player of one seed.
pub fn run_with(
    first: u64,
    seeds: u64,
    play: &(dyn Fn(u64, &Ground) -> History + Sync),
    progress: &(dyn Fn(u64) + Sync),
) -> Report {
    let began = Instant::now();
    let next = AtomicU64::new(first);
    let done = AtomicU64::new(0);
    let lowest = AtomicU64::new(u64::MAX);
    let (sum, failed) = (Mutex::new(Sum::default()), Mutex::new(None::<Failed>));
    let fail = |seed, rule| {
        lowest.fetch_min(seed, Ordering::Relaxed);
        let mut failed = failed.lock().expect("no thread panics while it tells");
        if failed.as_ref().is_none_or(|known| seed < known.seed) {
            *failed = Some(Failed { seed, rule });
        }
    };
    let play_some = || {
        let ground = Ground::default();
        let mut own = Sum::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            // Seeds come in order: what is left to play lies above the one that failed.
            if seed >= first + seeds || seed > lowest.load(Ordering::Relaxed) {
                break;
            }
            let played = catch_unwind(AssertUnwindSafe(|| {
                let history = play(seed, &ground);
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
        failed: failed.into_inner().expect("no thread panics while it tells"),
    }
}

/// The first line of what is wrong with a history.
fn broken_rule(history: &History) -> Option<String> {
    let first_line = |wrong: &String| wrong.lines().next().unwrap_or_default().to_owned();
    let (steps, faults) = (history.steps, history.faults);
    let too_few = (steps < STEPS_MIN || faults < FAULTS_MIN).then(|| format!("only {steps} steps and {faults} faults"));
    history.wrong.as_ref().map(first_line).or(too_few)
}

/// The story of one seed; of one that breaks a rule also the shortest version found.
pub fn tell(seed: u64, parts: Option<Parts>) -> (History, String) {
    let ground = Ground::default();
    let history = from_seed(seed, parts.unwrap_or_else(|| parts_of(seed)), &ground, true);
    let Some(wrong) = &history.wrong else {
        let story = history.story.clone();
        return (history, story);
    };
    let short = shorten(&history, &ground);
    let story = format!(
        "{}\n\nseed {seed}: {wrong}\n\nThe same with {} of {} turns:\n\n{}\n\nseed {seed}, shortened: {}",
        history.story,
        short.turns.len(),
        history.turns.len(),
        short.story,
        short.wrong.as_deref().unwrap_or("no rule is broken"),
    );
    (history, story)
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
