//! Each method against a plain one that is written from its definition, for every length up to 3,000.

use super::{Bucket, Method, buckets, downsample};
use crate::Series;
use crate::sample::{self, Random, Shape};

const METHODS: [Method; 5] = [
    Method::Lttb,
    Method::MinMax,
    Method::Average,
    Method::First,
    Method::Last,
];

const MAXIMA: [usize; 8] = [1, 2, 3, 4, 7, 50, 999, 1_000];

type Plain = Vec<(i64, f64)>;

/// Irregular steps, so that indices and steps cannot be confused.
fn irregular(points: usize) -> Series {
    let mut random = Random::new(points as u64);
    let mut series = sample::series(Shape::Noise, points, 11);
    let mut step = 0;
    for index in 0..points {
        step += 1 + (random.number() % 9) as i64;
        series.steps[index] = step;
    }
    series
}

/// The same with few different values, so that many triangles are equal.
fn coarse(points: usize) -> Series {
    let mut series = irregular(points);
    for bits in &mut series.bits {
        *bits = f64::from_bits(*bits).round().to_bits();
    }
    series
}

fn plain_of(series: &Series) -> Plain {
    series.steps.iter().copied().zip(series.values()).collect()
}

/// The points in so many parts, as evenly as whole points allow, without sharing a line with the code under test.
fn parts(points: &[(i64, f64)], count: usize) -> Vec<Plain> {
    let mut parts = vec![Plain::new(); count];
    let mut part = 0;
    for (index, point) in points.iter().enumerate() {
        while index >= (part + 1) * points.len() / count {
            part += 1;
        }
        parts[part].push(*point);
    }
    parts
}

/// Steinarsson's algorithm, in his notation.
fn plain_lttb(points: &Plain, threshold: usize) -> Plain {
    let last = points.len() - 1;
    if threshold == 1 {
        return vec![points[last]];
    }
    let mut sampled = vec![points[0]];
    if threshold > 2 {
        let mut inner = parts(&points[1..last], threshold - 2);
        inner.push(vec![points[last]]);
        for pair in inner.windows(2) {
            let count = pair[1].len() as f64;
            let origin = points[0].0;
            let x = |point: &(i64, f64)| (point.0 - origin) as f64;
            let avg_x = pair[1].iter().map(x).sum::<f64>() / count;
            let avg_y = pair[1].iter().map(|point| point.1).sum::<f64>() / count;
            let a = *sampled.last().unwrap();
            let mut max_area = -1.0;
            let mut next = pair[0][0];
            for point in &pair[0] {
                let area = ((x(&a) - avg_x) * (point.1 - a.1) - (x(&a) - x(point)) * (avg_y - a.1)).abs() * 0.5;
                if area > max_area {
                    (max_area, next) = (area, *point);
                }
            }
            sampled.push(next);
        }
    }
    sampled.push(points[last]);
    sampled
}

fn plain_min_max(points: &Plain, threshold: usize) -> Plain {
    if threshold == 1 {
        return vec![points[points.len() - 1]];
    }
    let mut sampled = Plain::new();
    for part in parts(points, threshold / 2) {
        let least = part.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        let most = part.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
        sampled.extend(part.iter().filter(|point| point.1 == least || point.1 == most));
    }
    sampled
}

fn plain(points: &Plain, method: Method, threshold: usize) -> Plain {
    match method {
        Method::Lttb => plain_lttb(points, threshold),
        Method::MinMax => plain_min_max(points, threshold),
        Method::Average => {
            let average = |part: &Plain| {
                let middle = (part[0].0 + part[part.len() - 1].0) / 2;
                (
                    middle,
                    part.iter().map(|point| point.1).sum::<f64>() / part.len() as f64,
                )
            };
            parts(points, threshold).iter().map(average).collect()
        }
        Method::First => parts(points, threshold).iter().map(|part| part[0]).collect(),
        Method::Last => parts(points, threshold)
            .iter()
            .map(|part| part[part.len() - 1])
            .collect(),
    }
}

#[test]
fn downsampling_equals_its_definition() {
    for points in (1..=3_000).step_by(7).chain([1_000, 1_001, 1_500, 2_999, 3_000]) {
        for (series, has_ties) in [(irregular(points), false), (coarse(points), true)] {
            let all = plain_of(&series);
            for threshold in MAXIMA.into_iter().filter(|&max| max < points) {
                for method in METHODS {
                    let kept = plain_of(&downsample(&series, method, threshold));
                    let expected = plain(&all, method, threshold);
                    match method {
                        // Of equal extremes the definition names all.
                        Method::MinMax if has_ties => assert!(kept.iter().all(|point| expected.contains(point))),
                        _ => assert_eq!(kept, expected, "{method:?}, {points} to {threshold}"),
                    }
                }
            }
        }
    }
}

#[test]
fn downsampling_keeps_first_and_last() {
    for points in 1..=3_000 {
        let series = irregular(points);
        for threshold in MAXIMA {
            for method in METHODS {
                let kept = downsample(&series, method, threshold);
                let context = format!("{method:?}, {points} to {threshold}");
                assert!(kept.is_ordered(), "{context}");
                assert!(!kept.is_empty() && kept.len() <= threshold, "{context}");
                if points <= threshold {
                    assert_eq!(kept, series, "{context}");
                }
                let keeps_first = matches!(method, Method::Lttb | Method::First) && threshold > 1;
                let keeps_last = matches!(method, Method::Lttb | Method::Last);
                assert!(!keeps_first || kept.steps[0] == series.steps[0], "{context}");
                assert!(!keeps_last || kept.steps.last() == series.steps.last(), "{context}");
            }
        }
    }
}

#[test]
fn every_point_is_in_one_bucket() {
    for points in 1..=3_000 {
        let series = irregular(points);
        for threshold in MAXIMA {
            let found = buckets(&series, threshold);
            assert_eq!(found.len(), points.min(threshold));
            let count: u64 = found.iter().map(|bucket| bucket.count).sum();
            assert_eq!(count, points as u64);
            let (least, most) = found.iter().fold((u64::MAX, 0), |(least, most), bucket| {
                (least.min(bucket.count), most.max(bucket.count))
            });
            assert!(most - least <= 1, "{points} in {threshold}: {least} to {most}");
        }
    }
}

#[test]
fn minimum_and_maximum_survive_among_values_that_are_not_finite() {
    let mut series = irregular(2_000);
    for index in (0..2_000).step_by(3) {
        series.bits[index] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][index % 9 / 3].to_bits();
    }
    series.bits[1_234] = (-1e9_f64).to_bits();
    series.bits[1_235] = 1e9_f64.to_bits();
    for threshold in [2, 3, 10, 1_000] {
        let kept = downsample(&series, Method::MinMax, threshold);
        assert!(kept.values().any(|value| value == -1e9), "{threshold}");
        assert!(kept.values().any(|value| value == 1e9), "{threshold}");
        assert!(kept.values().all(f64::is_finite), "{threshold}");
    }
}

#[test]
fn a_stretch_without_finite_values_stays_a_gap() {
    let mut series = irregular(1_000);
    for index in 300..700 {
        series.bits[index] = f64::NAN.to_bits();
    }
    for method in METHODS {
        let kept = downsample(&series, method, 100);
        let gaps = kept.values().filter(|value| value.is_nan()).count();
        assert!((20..=60).contains(&gaps), "{method:?}: {gaps}");
        let inside = kept
            .steps
            .iter()
            .filter(|step| (series.steps[320]..series.steps[680]).contains(step));
        assert!(inside.count() >= 15, "{method:?}");
    }
}

#[test]
fn a_bucket_has_mean_extremes_and_count() {
    let mut series = Series::default();
    for (step, value) in [1.0, 3.0, f64::NAN, f64::INFINITY].into_iter().enumerate() {
        series.push(step as i64, 0, value.to_bits());
    }
    let found = buckets(&series, 2);
    let expected = Bucket {
        step: 0,
        mean: 2.0,
        min: 1.0,
        max: 3.0,
        count: 2,
    };
    assert_eq!(found[0], expected);
    assert!(found[1].mean.is_nan() && found[1].count == 2);
}

#[test]
fn a_bucket_of_one_point_has_its_value_whatever_it_is() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.5] {
        let mut series = Series::default();
        series.push(7, 0, value.to_bits());
        let bucket = buckets(&series, 10)[0];
        let bits = [bucket.mean, bucket.min, bucket.max].map(f64::to_bits);
        assert_eq!((bucket.step, bucket.count, bits), (7, 1, [value.to_bits(); 3]));
    }
}

#[test]
fn hostile_steps_and_values_never_panic() {
    let mut random = Random::new(5);
    let mut series = Series::default();
    for step in 0..500 {
        let far = i64::MIN
            .wrapping_add(step * (i64::MAX / 512))
            .wrapping_add(step * (i64::MAX / 512));
        series.push(far, random.number() as i64, random.number());
    }
    for method in METHODS {
        for threshold in MAXIMA {
            assert!(downsample(&series, method, threshold).len() <= threshold.max(1));
        }
    }
}
