//! Last write wins: one point a step, the one that was applied last.

use crate::points::Series;

/// The points of a series as they arrived, in the order of their steps, the last of each step.
#[must_use]
pub fn in_step_order(arrived: Series) -> Series {
    if arrived.is_ordered() {
        return arrived;
    }
    let mut order: Vec<(i64, usize)> = arrived.steps.iter().copied().zip(0..).collect();
    order.sort_by_key(|&(step, _)| step);
    let mut ordered = Series::with_capacity(arrived.len());
    for (place, &(step, index)) in order.iter().enumerate() {
        let is_last = order.get(place + 1).is_none_or(|&(next, _)| next != step);
        if is_last {
            ordered.push(step, arrived.times[index], arrived.bits[index]);
        }
    }
    ordered
}

/// Two ordered series as one; where both have a step, the newer's point.
#[must_use]
pub fn merge(older: &Series, newer: &Series) -> Series {
    let mut merged = Series::with_capacity(older.len() + newer.len());
    let mut from = 0;
    for index in 0..newer.len() {
        let step = newer.steps[index];
        let until = from + older.steps[from..].partition_point(|&old| old < step);
        merged.extend_from(older, from..until);
        merged.push(step, newer.times[index], newer.bits[index]);
        from = until + usize::from(older.steps.get(until) == Some(&step));
    }
    merged.extend_from(older, from..older.len());
    merged
}

/// Any number of series in the order in which they were applied, each as its points arrived, as one ordered series.
#[must_use]
pub fn merge_all<'s>(layers: impl IntoIterator<Item = &'s Series>) -> Series {
    let mut arrived = Series::default();
    for layer in layers {
        arrived.extend(layer);
    }
    in_step_order(arrived)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, proptest};

    use super::{Series, in_step_order, merge, merge_all};

    /// Points as they arrived, with few different steps, so that many are rewritten.
    fn arrived() -> impl Strategy<Value = Series> {
        vec((0_i64..60, any::<i64>(), any::<u64>()), 0..80).prop_map(|points| {
            let mut series = Series::default();
            for (step, time, bits) in points {
                series.push(step, time, bits);
            }
            series
        })
    }

    fn model(layers: &[Series]) -> Series {
        let mut last = BTreeMap::new();
        for layer in layers {
            for index in 0..layer.len() {
                last.insert(layer.steps[index], (layer.times[index], layer.bits[index]));
            }
        }
        let mut series = Series::default();
        for (step, (time, bits)) in last {
            series.push(step, time, bits);
        }
        series
    }

    proptest! {
        #[test]
        fn the_last_write_of_a_step_wins(layers in vec(arrived(), 0..5)) {
            let expected = model(&layers);
            assert_eq!(merge_all(&layers), expected);
            let one_by_one = layers.iter().fold(Series::default(), |merged, layer| {
                merge(&merged, &in_step_order(layer.clone()))
            });
            assert_eq!(one_by_one, expected);
        }
    }

    #[test]
    fn a_late_batch_that_was_applied_last_wins_at_every_step() {
        let mut older = Series::default();
        let mut newer = Series::default();
        for step in 0..100 {
            older.push(step, 1, 1);
            newer.push(step, 2, 2);
        }
        assert_eq!(merge(&older, &newer), newer);
        assert_eq!(merge(&newer, &older), older);
    }
}
