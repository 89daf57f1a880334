//! Points as columns: of one metric, and of the several metrics of a batch. Values are kept as bits, so that equality
//! and copies see every NaN and both zeros.

use std::ops::Range;

/// Points of one metric. All columns have the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// The steps. An *ordered* series has strictly ascending ones.
    pub steps: Vec<i64>,
    /// Nanoseconds since 1970.
    pub times: Vec<i64>,
    /// The bits of the values.
    pub bits: Vec<u64>,
}

impl Series {
    /// An empty series with room for so many points.
    #[must_use]
    pub fn with_capacity(points: usize) -> Self {
        Self {
            steps: Vec::with_capacity(points),
            times: Vec::with_capacity(points),
            bits: Vec::with_capacity(points),
        }
    }

    /// Appends a point.
    pub fn push(&mut self, step: i64, time: i64, bits: u64) {
        self.steps.push(step);
        self.times.push(time);
        self.bits.push(bits);
    }

    /// Appends the points of another series.
    pub fn extend(&mut self, other: &Self) {
        self.extend_from(other, 0..other.len());
    }

    /// Appends some points of another series.
    pub fn extend_from(&mut self, other: &Self, range: Range<usize>) {
        self.steps.extend_from_slice(&other.steps[range.clone()]);
        self.times.extend_from_slice(&other.times[range.clone()]);
        self.bits.extend_from_slice(&other.bits[range]);
    }

    /// How many points it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether its steps are strictly ascending.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.steps.windows(2).all(|pair| pair[0] < pair[1])
    }

    /// The value of a point.
    #[must_use]
    pub fn value(&self, index: usize) -> f64 {
        f64::from_bits(self.bits[index])
    }

    /// All values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = f64> + DoubleEndedIterator {
        self.bits.iter().map(|&bits| f64::from_bits(bits))
    }

    /// Where the points with steps from `min` to `max` stand, both inclusive, in an ordered series.
    #[must_use]
    pub fn within_steps(&self, min: Option<i64>, max: Option<i64>) -> Range<usize> {
        let start = min.map_or(0, |min| self.steps.partition_point(|&step| step < min));
        let end = max.map_or(self.len(), |max| self.steps.partition_point(|&step| step <= max));
        start..end.max(start)
    }

    /// Some of its points.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let mut part = Self::with_capacity(range.len());
        part.extend_from(self, range);
        part
    }

    /// The points with times from `min` to `max`, both inclusive.
    #[must_use]
    pub fn within_times(self, min: Option<i64>, max: Option<i64>) -> Self {
        let is_inside = |time: i64| min.is_none_or(|min| min <= time) && max.is_none_or(|max| time <= max);
        if self.times.iter().all(|&time| is_inside(time)) {
            return self;
        }
        let mut kept = Self::default();
        for (index, &time) in self.times.iter().enumerate() {
            if is_inside(time) {
                kept.push(self.steps[index], time, self.bits[index]);
            }
        }
        kept
    }
}

/// Points of several metrics, in the order in which they arrived. All columns have the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Of each point, the index of its metric in a list that is kept beside.
    pub names: Vec<u32>,
    /// The steps.
    pub steps: Vec<i64>,
    /// Nanoseconds since 1970.
    pub times: Vec<i64>,
    /// The bits of the values.
    pub bits: Vec<u64>,
}

impl Columns {
    /// No points, with room for so many.
    #[must_use]
    pub fn with_capacity(points: usize) -> Self {
        Self {
            names: Vec::with_capacity(points),
            steps: Vec::with_capacity(points),
            times: Vec::with_capacity(points),
            bits: Vec::with_capacity(points),
        }
    }

    /// Appends a point.
    pub fn push(&mut self, name: u32, step: i64, time: i64, bits: u64) {
        self.names.push(name);
        self.steps.push(step);
        self.times.push(time);
        self.bits.push(bits);
    }

    /// How many points there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The points of each of `names` metrics, in the order in which they arrived.
    ///
    /// *Assumption*: every name index is below `names`; points of others are left out.
    #[must_use]
    pub fn split(&self, names: usize) -> Vec<Series> {
        let mut counts = vec![0_usize; names];
        for &name in &self.names {
            if let Some(count) = counts.get_mut(name as usize) {
                *count += 1;
            }
        }
        let mut series: Vec<Series> = counts.into_iter().map(Series::with_capacity).collect();
        for (index, &name) in self.names.iter().enumerate() {
            if let Some(series) = series.get_mut(name as usize) {
                series.push(self.steps[index], self.times[index], self.bits[index]);
            }
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use super::{Columns, Series};

    fn series(steps: &[i64]) -> Series {
        let mut series = Series::default();
        for &step in steps {
            series.push(step, step * 10, (step as f64).to_bits());
        }
        series
    }

    #[test]
    fn bounds_of_steps_are_inclusive() {
        let steps = series(&[1, 3, 5, 7]);
        assert_eq!(steps.within_steps(Some(3), Some(5)), 1..3);
        assert_eq!(steps.within_steps(Some(2), Some(6)), 1..3);
        assert_eq!(steps.within_steps(None, Some(1)), 0..1);
        assert_eq!(steps.within_steps(Some(8), None), 4..4);
        assert!(steps.within_steps(Some(6), Some(2)).is_empty());
    }

    #[test]
    fn bounds_of_times_are_inclusive() {
        let kept = series(&[1, 3, 5, 7]).within_times(Some(30), Some(50));
        assert_eq!(kept.steps, [3, 5]);
    }

    #[test]
    fn a_batch_is_split_without_changing_the_order_of_points() {
        let mut columns = Columns::default();
        columns.push(1, 5, 50, 1);
        columns.push(0, 9, 90, 2);
        columns.push(1, 4, 40, 3);
        let split = columns.split(3);
        assert_eq!(split[0].steps, [9]);
        assert_eq!(split[1].steps, [5, 4]);
        assert_eq!(split[1].bits, [1, 3]);
        assert!(split[2].is_empty());
    }
}
