//! Curves of several runs over one axis: the union of what they have, thinned evenly, with straight lines between the
//! points of a curve and gaps outside of its range.

/// A curve over any axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    xs: Vec<f64>,
    ys: Vec<f64>,
    times: Vec<i64>,
}

/// A point of a curve: its value, and its time in nanoseconds since 1970.
pub type Point = (f64, i64);

impl Curve {
    /// From points in any order: x, value and time. Of points with one x the last stays; those whose x is NaN are left
    /// out.
    #[must_use]
    pub fn new(points: impl IntoIterator<Item = (f64, f64, i64)>) -> Self {
        let mut points: Vec<_> = points.into_iter().filter(|point| !point.0.is_nan()).collect();
        points.sort_by(|left, right| left.0.total_cmp(&right.0));
        let mut curve = Self::default();
        for (x, y, time) in points {
            if curve.xs.last() == Some(&x) {
                curve.xs.pop();
                curve.ys.pop();
                curve.times.pop();
            }
            curve.xs.push(x);
            curve.ys.push(y);
            curve.times.push(time);
        }
        curve
    }

    /// The point at an x: one that it has, or one on the straight line between its neighbors; `None` outside.
    #[must_use]
    pub fn at(&self, x: f64) -> Option<Point> {
        let right = self.xs.partition_point(|&own| own < x);
        if *self.xs.get(right)? == x {
            return Some((self.ys[right], self.times[right]));
        }
        let left = right.checked_sub(1)?;
        let share = (x - self.xs[left]) / (self.xs[right] - self.xs[left]);
        let value = self.ys[left] + (self.ys[right] - self.ys[left]) * share;
        let span = self.times[right] as f64 - self.times[left] as f64;
        Some((value, self.times[left].saturating_add((span * share) as i64)))
    }
}

/// The axis of curves that come one at a time: all x that they have. Of more than `xs_max`, a part is kept that is even
/// over all of them, with the first and the last.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Ascending, each once.
    xs: Vec<f64>,
    xs_max: usize,
    /// Each level keeps half of what the one before keeps.
    level: u32,
}

impl Axis {
    /// One of no curves.
    #[must_use]
    pub fn new(xs_max: usize) -> Self {
        Self {
            xs: Vec::new(),
            xs_max: xs_max.max(2),
            level: 0,
        }
    }

    /// Adds the x of a curve.
    pub fn add(&mut self, curve: &Curve) {
        self.xs.extend(curve.xs.iter().filter(|x| is_kept(**x, self.level)));
        self.xs.extend(curve.xs.first());
        self.xs.extend(curve.xs.last());
        self.xs.sort_by(f64::total_cmp);
        self.xs.dedup();
        while self.xs.len() > self.xs_max {
            self.level += 1;
            let (level, first, last) = (self.level, self.xs[0], self.xs[self.xs.len() - 1]);
            self.xs.retain(|&x| x == first || x == last || is_kept(x, level));
        }
    }

    /// All x, ascending, thinned evenly to at most `points_max`. The first and the last are kept; of one, the last.
    #[must_use]
    pub fn thinned(self, points_max: usize) -> Vec<f64> {
        let xs = self.xs;
        if xs.len() <= points_max {
            return xs;
        }
        let last = xs.len() - 1;
        match points_max {
            0 => Vec::new(),
            1 => vec![xs[last]],
            _ => (0..points_max)
                .map(|place| xs[last * place / (points_max - 1)])
                .collect(),
        }
    }
}

/// By an x alone, so that the same ones are kept of all curves, and one that many of them have counts once.
fn is_kept(x: f64, level: u32) -> bool {
    let bits = x.to_bits();
    let mixed = (bits ^ (bits >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.leading_zeros() >= level
}

#[cfg(test)]
mod tests {
    use super::{Axis, Curve};

    fn axis<'c>(curves: impl IntoIterator<Item = &'c Curve>, points_max: usize) -> Vec<f64> {
        let mut axis = Axis::new(10_000);
        for curve in curves {
            axis.add(curve);
        }
        axis.thinned(points_max)
    }

    fn curve(points: &[(f64, f64)]) -> Curve {
        Curve::new(points.iter().map(|&(x, y)| (x, y, (x * 10.0) as i64)))
    }

    #[test]
    fn a_curve_is_straight_between_its_points_and_ends_with_them() {
        let curve = curve(&[(0.0, 1.0), (100.0, 3.0)]);
        assert_eq!(curve.at(0.0), Some((1.0, 0)));
        assert_eq!(curve.at(50.0), Some((2.0, 500)));
        assert_eq!(curve.at(100.0), Some((3.0, 1_000)));
        assert_eq!(curve.at(100.1), None);
        assert_eq!(curve.at(-0.1), None);
        assert_eq!(Curve::default().at(0.0), None);
    }

    #[test]
    fn points_may_come_in_any_order_and_the_last_of_an_x_stays() {
        let curve = curve(&[(5.0, 1.0), (2.0, 7.0), (5.0, 9.0)]);
        assert_eq!(curve.at(2.0).map(|point| point.0), Some(7.0));
        assert_eq!(curve.at(5.0).map(|point| point.0), Some(9.0));
    }

    #[test]
    fn the_axis_is_the_union_of_all_steps() {
        let hundreds = curve(&[(0.0, 1.0), (100.0, 1.0), (200.0, 1.0)]);
        let fifties = curve(&[(50.0, 1.0), (100.0, 1.0), (150.0, 1.0)]);
        assert_eq!(axis([&hundreds, &fifties], 500), [0.0, 50.0, 100.0, 150.0, 200.0]);
    }

    #[test]
    fn a_thinned_axis_keeps_first_and_last() {
        let long = Curve::new((0..3_000).map(|x| (f64::from(x), 0.0, 0)));
        for points_max in 2..600 {
            let xs = axis([&long], points_max);
            assert_eq!(xs.len(), points_max);
            assert_eq!((xs[0], xs[points_max - 1]), (0.0, 2_999.0));
            assert!(xs.windows(2).all(|pair| pair[0] < pair[1]));
        }
        assert_eq!(axis([&long], 1), [2_999.0]);
    }

    /// As if each curve were thinned by itself: the places that many of them have would count more than others.
    #[test]
    fn an_axis_of_many_curves_keeps_so_many_places_and_they_are_even() {
        let to = |end: i32| Curve::new((0..end).map(|x| (f64::from(x), 0.0, 0)));
        let (short, long) = (to(10_000), to(100_000));
        let mut axis = Axis::new(1_000);
        for curve in [&short, &short, &long, &short] {
            axis.add(curve);
            assert!((400..=1_000).contains(&axis.xs.len()), "{} are kept", axis.xs.len());
        }
        let xs = axis.thinned(11);
        assert_eq!((xs[0], xs[10]), (0.0, 99_999.0));
        for (x, tenth) in xs.iter().zip(0_i32..) {
            let expected = f64::from(tenth) * 10_000.0;
            assert!((x - expected).abs() < 1_000.0, "{x} is not about {expected}");
        }
    }

    #[test]
    fn a_gap_of_a_curve_stays_one() {
        let curve = curve(&[(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0)]);
        assert!(curve.at(0.5).is_some_and(|point| point.0.is_nan()));
        assert_eq!(curve.at(2.0).map(|point| point.0), Some(3.0));
    }
}
