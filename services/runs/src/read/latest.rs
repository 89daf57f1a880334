//! The last point of each metric: of its last chunk, or of what is not compacted, without reading what comes before.

use std::collections::{BTreeMap, HashMap};

use crate::domain::MetricName;
use crate::store::NamedSeries;

/// Reads that are made for one answer; metrics that end elsewhere share the last.
const GROUPS_MAX: usize = 16;

/// The last point of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Latest {
    /// Its name.
    pub name: MetricName,
    /// The highest step.
    pub step: i64,
    /// Its value.
    pub value: f64,
}

impl Latest {
    /// Of the end of a series.
    pub(super) fn of(found: NamedSeries) -> Option<Self> {
        let last = found.series.len().checked_sub(1)?;
        Some(Self {
            step: found.series.steps[last],
            value: found.series.value(last),
            name: found.name,
        })
    }
}

/// Names to read together, and from which step on: metrics whose last chunks begin at the same step are one group.
/// Nothing that is not compacted is left out, since a late point below the last chunk is not the last point.
pub(super) fn groups(names: Vec<MetricName>, starts: &HashMap<String, i64>) -> Vec<(Vec<MetricName>, Option<i64>)> {
    let mut by_start: BTreeMap<Option<i64>, Vec<MetricName>> = BTreeMap::new();
    for name in names {
        by_start
            .entry(starts.get(name.as_str()).copied())
            .or_default()
            .push(name);
    }
    let mut groups: Vec<_> = by_start.into_iter().map(|(start, names)| (names, start)).collect();
    while groups.len() > GROUPS_MAX {
        // The later ones are read from where the earlier ones begin.
        if let (Some((names, _)), Some((earlier, _))) = (groups.pop(), groups.last_mut()) {
            earlier.extend(names);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_that_end_alike_are_read_together_and_there_are_few_reads() {
        let names: Vec<MetricName> = (0..100).map(|number| MetricName::new(format!("m{number}"))).collect();
        let starts: HashMap<String, i64> = (1..100).map(|number| (format!("m{number}"), number / 2)).collect();
        let groups = groups(names, &starts);
        assert_eq!(groups.len(), GROUPS_MAX);
        assert_eq!(groups[0], (vec![MetricName::new("m0")], None));
        assert_eq!(groups[1], (vec![MetricName::new("m1")], Some(0)));
        assert_eq!(groups.iter().map(|group| group.0.len()).sum::<usize>(), 100);
        for (names, start) in groups {
            assert!(names.iter().all(|name| starts.get(name.as_str()).copied() >= start));
        }
    }
}
