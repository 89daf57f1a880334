//! The points that were logged and not answered yet, in their order. Knows neither clock nor network.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// A batch has about this many bytes at most, below the service's limit of 1 MiB.
const BATCH_BYTES: usize = 512 * 1024;
/// What a point has beside its name.
const POINT_BYTES: usize = 40;

/// A value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) name: Arc<str>,
    pub(crate) step: i64,
    pub(crate) value: f64,
    /// Nanoseconds since the epoch.
    pub(crate) time: i64,
}

/// A bounded queue. What is sent stays in it until it is answered.
#[derive(Debug)]
pub(crate) struct Buffer {
    points: VecDeque<Point>,
    names: HashSet<Arc<str>>,
    points_max: usize,
}

impl Buffer {
    pub(crate) fn new(points_max: usize) -> Self {
        Self {
            points: VecDeque::new(),
            names: HashSet::new(),
            points_max,
        }
    }

    /// Takes all values or none; whether it did.
    pub(crate) fn push(&mut self, step: i64, values: &[(&str, f64)], time: i64) -> bool {
        if self.points.len() + values.len() > self.points_max {
            return false;
        }
        for (name, value) in values {
            let name = self.named(name);
            self.points.push_back(Point {
                name,
                step,
                value: *value,
                time,
            });
        }
        true
    }

    /// Each name is kept once.
    fn named(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        name
    }

    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    /// The first points, as many as fit into a batch; one at least, if there is any.
    pub(crate) fn batch(&self, points_max: usize) -> Vec<Point> {
        let mut bytes = 0;
        let fits = |point: &&Point| {
            let is_first = bytes == 0;
            bytes += point.name.len() + POINT_BYTES;
            is_first || bytes <= BATCH_BYTES
        };
        self.points.iter().take(points_max).take_while(fits).cloned().collect()
    }

    /// The first points were answered.
    pub(crate) fn answered(&mut self, points: usize) {
        self.points.drain(..points.min(self.points.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(points: &[Point]) -> Vec<i64> {
        points.iter().map(|point| point.step).collect()
    }

    #[test]
    fn a_full_buffer_takes_all_of_a_call_or_nothing() {
        let mut buffer = Buffer::new(3);
        assert!(buffer.push(1, &[("a", 1.0), ("b", 2.0)], 0));
        assert!(!buffer.push(2, &[("a", 1.0), ("b", 2.0)], 0), "one place is left");
        assert_eq!(buffer.len(), 2);
        assert!(buffer.push(3, &[("a", 1.0)], 0));
        assert!(!buffer.push(4, &[("a", 1.0)], 0));
        assert_eq!(steps(&buffer.batch(9)), [1, 1, 3]);
    }

    #[test]
    fn points_leave_in_their_order_once_they_are_answered() {
        let mut buffer = Buffer::new(10);
        for step in 0..5 {
            assert!(buffer.push(step, &[("a", 0.5)], 7));
        }
        assert_eq!(steps(&buffer.batch(2)), [0, 1]);
        assert_eq!(steps(&buffer.batch(2)), [0, 1], "they were not answered");
        buffer.answered(2);
        assert_eq!(steps(&buffer.batch(9)), [2, 3, 4]);
        assert!(buffer.push(5, &[("a", 0.5)], 7));
        assert_eq!(buffer.len(), 4);
    }

    #[test]
    fn a_batch_stays_below_its_bytes_but_is_never_empty() {
        let mut buffer = Buffer::new(10);
        let long = "n".repeat(BATCH_BYTES);
        assert!(buffer.push(0, &[(&long, 0.0), ("a", 0.0)], 0));
        assert_eq!(buffer.batch(9).len(), 1);
        buffer.answered(1);
        let half = "n".repeat(BATCH_BYTES / 2 - POINT_BYTES);
        assert!(buffer.push(1, &[(&half, 0.0), (&half, 1.0)], 0));
        assert_eq!(buffer.batch(9).len(), 2, "the short one and one of the others");
    }

    #[test]
    fn a_name_is_kept_once() {
        let mut buffer = Buffer::new(10);
        assert!(buffer.push(0, &[("loss", 0.0)], 0) && buffer.push(1, &[("loss", 0.0)], 0));
        let batch = buffer.batch(2);
        assert!(Arc::ptr_eq(&batch[0].name, &batch[1].name));
    }
}
