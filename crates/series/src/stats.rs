//! Statistics of a series. Values that are not finite count, and can be the last, but have no part in minimum, maximum
//! and mean.

use crate::points::Series;

/// Of one series, or of consecutive parts of it.
#[derive(Clone, Copy, Debug)]
pub struct Stats {
    /// All points.
    pub count: u64,
    /// Points with a finite value.
    pub finite: u64,
    /// Of the finite values; NaN if there is none.
    pub min: f64,
    /// Of the finite values; NaN if there is none.
    pub max: f64,
    /// Of the finite values.
    pub sum: f64,
    /// The value of the lowest step, as bits.
    pub first_bits: u64,
    /// The value of the highest step, as bits.
    pub last_bits: u64,
    /// The lowest step.
    pub step_min: i64,
    /// The highest step.
    pub step_max: i64,
    /// The earliest time.
    pub time_min: i64,
    /// The latest time.
    pub time_max: i64,
}

/// All fields, with floating point ones as bits, so that NaN equals NaN.
impl PartialEq for Stats {
    fn eq(&self, other: &Self) -> bool {
        let bits = |stats: &Self| [stats.min, stats.max, stats.sum].map(f64::to_bits);
        let numbers = |stats: &Self| (stats.count, stats.finite, stats.first_bits, stats.last_bits);
        let bounds = |stats: &Self| [stats.step_min, stats.step_max, stats.time_min, stats.time_max];
        bits(self) == bits(other) && numbers(self) == numbers(other) && bounds(self) == bounds(other)
    }
}

impl Eq for Stats {}

impl Stats {
    /// Those of an ordered series; `None` if it is empty.
    #[must_use]
    pub fn of(series: &Series) -> Option<Self> {
        let (&step_min, &step_max) = (series.steps.first()?, series.steps.last()?);
        let (&first_bits, &last_bits) = (series.bits.first()?, series.bits.last()?);
        let (&time_min, &time_max) = (series.times.iter().min()?, series.times.iter().max()?);
        let mut stats = Self {
            count: series.len() as u64,
            finite: 0,
            min: f64::NAN,
            max: f64::NAN,
            sum: 0.0,
            first_bits,
            last_bits,
            step_min,
            step_max,
            time_min,
            time_max,
        };
        for value in series.values().filter(|value| value.is_finite()) {
            stats.finite += 1;
            stats.min = stats.min.min(value);
            stats.max = stats.max.max(value);
            stats.sum += value;
        }
        Some(stats)
    }

    /// Those of two parts together, of which `later` has the higher steps.
    #[must_use]
    pub fn with(self, later: Self) -> Self {
        Self {
            count: self.count + later.count,
            finite: self.finite + later.finite,
            min: self.min.min(later.min),
            max: self.max.max(later.max),
            sum: self.sum + later.sum,
            first_bits: self.first_bits,
            last_bits: later.last_bits,
            step_min: self.step_min,
            step_max: later.step_max,
            time_min: self.time_min.min(later.time_min),
            time_max: self.time_max.max(later.time_max),
        }
    }

    /// The mean of the finite values; NaN if there is none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        mean(self.sum, self.finite, self.min, self.max)
    }

    /// The value of the highest step.
    #[must_use]
    pub fn last(&self) -> f64 {
        f64::from_bits(self.last_bits)
    }
}

/// A mean that rounding, and a sum beyond the largest double, cannot carry out of the range of the values.
pub(crate) fn mean(sum: f64, count: u64, min: f64, max: f64) -> f64 {
    match count {
        0 => f64::NAN,
        // Equal values are their mean, and -0.0 keeps its sign.
        _ if min.to_bits() == max.to_bits() => min,
        _ => (sum / count as f64).max(min).min(max),
    }
}

#[cfg(test)]
mod tests {
    use super::{Series, Stats};
    use crate::sample::{self, Shape};

    fn of(values: &[f64]) -> Stats {
        let mut series = Series::default();
        for (step, value) in values.iter().enumerate() {
            series.push(step as i64, 7, value.to_bits());
        }
        Stats::of(&series).unwrap()
    }

    #[test]
    fn statistics_skip_non_finite_values() {
        let stats = of(&[1.0, f64::INFINITY, 2.0, f64::NEG_INFINITY]);
        assert_eq!((stats.min, stats.max, stats.mean()), (1.0, 2.0, 1.5));
        assert_eq!((stats.count, stats.last()), (4, f64::NEG_INFINITY));
        let stats = of(&[f64::NAN, 3.0, f64::NAN]);
        assert_eq!((stats.min, stats.max, stats.mean()), (3.0, 3.0, 3.0));
        assert!(stats.last().is_nan());
        assert_eq!(stats.count, 3);
    }

    #[test]
    fn without_a_finite_value_minimum_maximum_and_mean_are_nan() {
        let stats = of(&[f64::NAN, f64::INFINITY]);
        assert!(stats.min.is_nan() && stats.max.is_nan() && stats.mean().is_nan());
        assert_eq!(stats.last(), f64::INFINITY);
        assert_eq!(Stats::of(&Series::default()), None);
    }

    #[test]
    fn a_mean_stays_within_its_values() {
        assert_eq!(of(&[0.1; 1_000]).mean(), 0.1);
        assert_eq!(of(&[f64::MAX; 3]).mean(), f64::MAX);
        assert_eq!(of(&[-0.0; 3]).mean().to_bits(), (-0.0_f64).to_bits());
    }

    #[test]
    fn parts_have_the_statistics_of_the_whole() {
        let whole = sample::series(Shape::Integers, 1_000, 3);
        for cut in [1, 500, 999] {
            let low = Stats::of(&whole.slice(0..cut)).unwrap();
            let high = Stats::of(&whole.slice(cut..1_000)).unwrap();
            assert_eq!(Some(low.with(high)), Stats::of(&whole));
        }
    }
}
