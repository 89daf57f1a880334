//! How figures are taken and shown: medians of several runs in one process, and ratios
//! between them. Only the ratios carry over to another machine.

use std::time::Duration;

/// The rates of one pattern, in objects a second, one for each run.
#[derive(Clone, Debug, Default)]
pub struct Rates(Vec<f64>);

impl Rates {
    /// Adds a run.
    pub fn add(&mut self, objects: usize, took: Duration) {
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        self.0.push(objects as f64 / took.as_secs_f64());
    }

    /// The middle run; 0 without any.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }

    /// The slowest and the fastest run.
    pub fn range(&self) -> (f64, f64) {
        let slowest = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        let fastest = self.0.iter().copied().fold(0.0, f64::max);
        (slowest, fastest)
    }

    /// `9300 (9100..9500)`.
    pub fn show(&self) -> String {
        let (slowest, fastest) = self.range();
        format!("{:.0} ({slowest:.0}..{fastest:.0})", self.median())
    }
}

/// The smallest of the times that so many percent of them do not exceed; 0 without any.
pub fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// A number from the environment.
///
/// # Panics
/// When the variable is set to something else.
pub fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number"))
    })
}

/// Prints columns of equal width under their heads.
pub fn print_table(heads: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(heads[column].chars().count())
    };
    let line = |cells: &[String]| {
        let padded = cells.iter().enumerate().map(|(index, cell)| {
            let width = width(index);
            format!("{cell:<width$}")
        });
        println!("| {} |", padded.collect::<Vec<_>>().join(" | "));
    };
    line(&heads.iter().map(|&head| head.to_owned()).collect::<Vec<_>>());
    let rules: Vec<String> = (0..heads.len()).map(|index| "-".repeat(width(index))).collect();
    line(&rules);
    for row in rows {
        line(row);
    }
}
