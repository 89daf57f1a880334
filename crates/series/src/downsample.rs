//! Fewer points of a series for a chart. Points are divided by their index, without rounding, so that buckets differ by
//! one point at most and none is empty.

use std::ops::Range;

use crate::points::Series;
use crate::stats::mean;

/// How points are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Largest triangle three buckets: the first, the last, and of each bucket between them the point that the eye
    /// would miss most.
    Lttb,
    /// Of each of half as many buckets, the lowest and the highest.
    MinMax,
    /// The mean of each bucket, at the middle of its steps and times.
    Average,
    /// The first of each bucket.
    First,
    /// The last of each bucket.
    Last,
}

/// What a bucket has in place of its points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// The middle of its steps.
    pub step: i64,
    /// Of its finite values; NaN if there is none. Of a single point its value, whatever it is.
    pub mean: f64,
    /// As the mean.
    pub min: f64,
    /// As the mean.
    pub max: f64,
    /// All of its points.
    pub count: u64,
}

/// At most `points_max` points of an ordered series, in the order of their steps; all of them if there are no more.
///
/// *Guarantees*: `Lttb` keeps the first and the last point (of one point, the last); `First` keeps the first, `Last`
/// the last; `MinMax` keeps the lowest and the highest finite value; every point belongs to a bucket. Values that are
/// not finite are chosen only where a bucket has no others.
#[must_use]
pub fn downsample(series: &Series, method: Method, points_max: usize) -> Series {
    if series.len() <= points_max {
        return series.clone();
    }
    let all = 0..series.len();
    match method {
        Method::Lttb => lttb(series, points_max),
        Method::MinMax if points_max == 1 => chosen(series, all, 1, |bucket| bucket.end - 1),
        Method::MinMax => min_max(series, points_max / 2),
        Method::Average => average(series, points_max),
        Method::First => chosen(series, all, points_max, |bucket| bucket.start),
        Method::Last => chosen(series, all, points_max, |bucket| bucket.end - 1),
    }
}

/// At most `buckets_max` buckets of an ordered series; one for each point if there are no more.
#[must_use]
pub fn buckets(series: &Series, buckets_max: usize) -> Vec<Bucket> {
    let count = buckets_max.min(series.len());
    let buckets = divide(0..series.len(), count).map(|range| match range.len() {
        1 => point(series, range.start),
        _ => bucket(series, &range),
    });
    buckets.collect()
}

fn point(series: &Series, index: usize) -> Bucket {
    let value = series.value(index);
    Bucket {
        step: series.steps[index],
        mean: value,
        min: value,
        max: value,
        count: 1,
    }
}

/// The index range in `count` parts, which differ in length by one at most.
fn divide(range: Range<usize>, count: usize) -> impl Iterator<Item = Range<usize>> {
    let bound = move |part: usize| range.start + (range.len() as u128 * part as u128 / count.max(1) as u128) as usize;
    (0..count).map(move |part| bound(part)..bound(part + 1))
}

fn chosen(series: &Series, all: Range<usize>, count: usize, choose: impl Fn(&Range<usize>) -> usize) -> Series {
    let mut kept = Series::with_capacity(count);
    for bucket in divide(all, count) {
        keep(series, choose(&bucket), &mut kept);
    }
    kept
}

fn keep(series: &Series, index: usize, kept: &mut Series) {
    kept.push(series.steps[index], series.times[index], series.bits[index]);
}

fn min_max(series: &Series, count: usize) -> Series {
    let mut kept = Series::with_capacity(2 * count);
    for bucket in divide(0..series.len(), count) {
        let (mut low, mut high) = (bucket.start, bucket.start);
        for index in bucket {
            let value = series.value(index);
            if !value.is_finite() {
                continue;
            }
            // A first point that is not finite gives way to any that is.
            if !(series.value(low) <= value && series.value(low).is_finite()) {
                low = index;
            }
            if !(series.value(high) >= value && series.value(high).is_finite()) {
                high = index;
            }
        }
        keep(series, low.min(high), &mut kept);
        if low != high {
            keep(series, low.max(high), &mut kept);
        }
    }
    kept
}

fn bucket(series: &Series, range: &Range<usize>) -> Bucket {
    let (mut min, mut max, mut sum, mut finite) = (f64::NAN, f64::NAN, 0.0, 0);
    for &bits in &series.bits[range.clone()] {
        let value = f64::from_bits(bits);
        if value.is_finite() {
            min = min.min(value);
            max = max.max(value);
            sum += value;
            finite += 1;
        }
    }
    Bucket {
        step: series.steps[range.start].midpoint(series.steps[range.end - 1]),
        mean: mean(sum, finite, min, max),
        min,
        max,
        count: range.len() as u64,
    }
}

fn average(series: &Series, count: usize) -> Series {
    let mut kept = Series::with_capacity(count);
    for range in divide(0..series.len(), count) {
        let time = series.times[range.start].midpoint(series.times[range.end - 1]);
        let bucket = bucket(series, &range);
        kept.push(bucket.step, time, bucket.mean.to_bits());
    }
    kept
}

/// Where a point stands on a chart.
type Coordinates = (f64, f64);

fn lttb(series: &Series, points_max: usize) -> Series {
    let last = series.len() - 1;
    if points_max < 3 {
        let ends = [0, last];
        return chosen(series, 0..points_max, points_max, |bucket| {
            ends[2 - points_max + bucket.start]
        });
    }
    let mut kept = Series::with_capacity(points_max);
    keep(series, 0, &mut kept);
    let mut from = place(series, 0);
    let mut inner = divide(1..last, points_max - 2).peekable();
    while let Some(bucket) = inner.next() {
        let next = inner.peek().cloned().unwrap_or(last..last + 1);
        let index = largest_triangle(series, &bucket, from, center(series, next));
        keep(series, index, &mut kept);
        if series.value(index).is_finite() {
            from = place(series, index);
        }
    }
    keep(series, last, &mut kept);
    kept
}

/// Steps count from the first, so that large ones lose no precision.
fn place(series: &Series, index: usize) -> Coordinates {
    let step = series.steps[index].wrapping_sub(series.steps[0]) as u64;
    (step as f64, series.value(index))
}

/// The mean of the finite points of a bucket; of all of them in x, and NaN in y, where none is.
fn center(series: &Series, bucket: Range<usize>) -> Coordinates {
    let (mut x, mut y, mut finite) = (0.0, 0.0, 0.0);
    for index in bucket.clone() {
        let place = place(series, index);
        if place.1.is_finite() {
            x += place.0;
            y += place.1;
            finite += 1.0;
        }
    }
    match finite > 0.0 {
        true => (x / finite, y / finite),
        false => (place(series, bucket.start).0, f64::NAN),
    }
}

/// The point that makes the largest triangle with the two; the first one where none makes any.
fn largest_triangle(series: &Series, bucket: &Range<usize>, from: Coordinates, to: Coordinates) -> usize {
    let finite = |&index: &usize| series.value(index).is_finite();
    let mut chosen = bucket.clone().find(finite).unwrap_or(bucket.start);
    let mut largest = -1.0;
    for index in bucket.clone() {
        let (x, y) = place(series, index);
        // A gap before or after leaves a flat side: the point that is farthest from the other side is chosen.
        let from_y = if from.1.is_finite() { from.1 } else { to.1 };
        let to_y = if to.1.is_finite() { to.1 } else { from.1 };
        let area = ((from.0 - to.0) * (y - from_y) - (from.0 - x) * (to_y - from_y)).abs();
        if y.is_finite() && area > largest {
            (largest, chosen) = (area, index);
        }
    }
    chosen
}

#[cfg(test)]
mod tests;
