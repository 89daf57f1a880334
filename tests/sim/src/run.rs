//! Many seeds on all processors. Each history stays on one thread; which seeds are played
//! depends on nothing but their number, and the lowest that fails is the one reported.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::coverage::Coverage;
use super::ground::{Ground, Parts};
use super::history::{FAULTS_MIN, History, STEPS_MIN, from_seed, parts_of, shorten};

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
    pub failed: Option<u64>,
}

#[derive(Default)]
struct Sum {
    steps: u64,
    faults: u64,
    coverage: Coverage,
}

/// Plays the seeds from `first` on, so many, and stops at one that breaks a rule.
/// `parts` replaces what the seeds themselves say.
pub fn run(first: u64, seeds: u64, parts: Option<Parts>, progress: &(dyn Fn(u64) + Sync)) -> Report {
    let began = Instant::now();
    let next = AtomicU64::new(first);
    let done = AtomicU64::new(0);
    let failed = AtomicU64::new(u64::MAX);
    let sum = Mutex::new(Sum::default());
    let play_some = || {
        let ground = Ground::default();
        let mut own = Sum::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            // Seeds come in order: what is left to play lies above the one that failed.
            if seed >= first + seeds || seed > failed.load(Ordering::Relaxed) {
                break;
            }
            let history = from_seed(seed, parts.unwrap_or_else(|| parts_of(seed)), &ground, false);
            own.steps += history.steps;
            own.faults += history.faults;
            own.coverage.merge(&history.coverage);
            if history.wrong.is_some() || history.steps < STEPS_MIN || history.faults < FAULTS_MIN {
                failed.fetch_min(seed, Ordering::Relaxed);
            }
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
        let mut sum = sum.lock().expect("no thread panics while it adds");
        sum.steps += own.steps;
        sum.faults += own.faults;
        sum.coverage.merge(&own.coverage);
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(play_some);
        }
    });
    let sum = sum.into_inner().expect("no thread panics while it adds");
    let failed = failed.into_inner();
    Report {
        seeds,
        time: began.elapsed(),
        steps: sum.steps,
        faults: sum.faults,
        coverage: sum.coverage,
        failed: (failed != u64::MAX).then_some(failed),
    }
}

/// The first line of the rule that a seed breaks.
pub fn broken_rule(seed: u64, parts: Option<Parts>) -> String {
    let history = from_seed(seed, parts.unwrap_or_else(|| parts_of(seed)), &Ground::default(), false);
    let rule = history.wrong.unwrap_or_default();
    rule.lines().next().unwrap_or_default().to_owned()
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
