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

    /// Adds a figure of another sort.
    pub fn push(&mut self, figure: f64) {
        self.0.push(figure);
    }

    /// The newest run; 0 without any.
    pub fn last(&self) -> f64 {
        self.0.last().copied().unwrap_or_default()
    }

    /// Each run as a multiple of the run of another pattern that was made beside it.
    pub fn against(&self, other: &Self) -> Self {
        Self(
            self.0
                .iter()
                .zip(&other.0)
                .map(|(ours, theirs)| ours / theirs)
                .collect(),
        )
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

    /// `2.31 (2.20..2.45)`, of multiples.
    pub fn show_multiple(&self) -> String {
        let (least, most) = self.range();
        format!("{:.2} ({least:.2}..{most:.2})", self.median())
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

/// The machine, as figures are read with it: `2 cores of MODEL, 23 GiB of memory`.
pub fn machine() -> String {
    let line = |file: &str, key: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.split_once(':'));
        line.map_or_else(|| "unknown".to_owned(), |(_, value)| value.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = line("/proc/meminfo", "MemTotal");
    let kibibytes = memory.trim_end_matches(" kB").parse::<f64>().unwrap_or_default();
    let gibibytes = kibibytes / f64::from(1 << 20);
    format!(
        "{cores} cores of {}, {gibibytes:.0} GiB of memory",
        line("/proc/cpuinfo", "model name")
    )
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
