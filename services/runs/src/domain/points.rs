//! Points in columns: one name for each metric of a batch, and for each point its place in the names.

use super::ids::MetricName;

/// The points of a batch in the order of the request; all columns but `names` have the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// Each name once, in the order of its first point.
    pub names: Vec<MetricName>,
    /// For each point the place of its name in `names`.
    pub name_of: Vec<u32>,
    /// Not negative.
    pub steps: Vec<i64>,
    /// Nanoseconds since the epoch.
    pub times: Vec<i64>,
    /// `f64::to_bits` of each value; subnormals were flushed to zero.
    pub values: Vec<u64>,
}

impl Points {
    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// How many points each name has.
    #[must_use]
    pub fn count_by_name(&self) -> Vec<u64> {
        let mut counts = vec![0; self.names.len()];
        for name in &self.name_of {
            counts[*name as usize] += 1;
        }
        counts
    }

    /// About how much memory they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let names: usize = self.names.iter().map(|name| name.as_str().len() + 24).sum();
        names + self.len() * (4 + 3 * 8)
    }
}
