//! Which chunks of a metric new points belong to: only those are rewritten. Pure.

use std::ops::Range;

use kindex_series::Series;

use crate::store::statements::chunks::Bounds;

/// Points of a chunk at most.
pub(super) const CHUNK_POINTS_MAX: usize = 4096;
/// A chunk with fewer points is rewritten when more come behind it.
const FULL_ENOUGH: i64 = 512;

/// What becomes of some new points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rewrite {
    /// The chunk that they are merged with.
    pub(super) replaces: Option<Bounds>,
    /// Their places among the new points.
    pub(super) points: Range<usize>,
}

/// Decides for the new points of a metric, which are ordered, given the chunks that their steps can belong to, from the
/// last that begins at or before the first new step. A chunk has the steps up to the beginning of the next.
pub(super) fn plan(chunks: &[Bounds], new: &Series) -> Vec<Rewrite> {
    let mut rewrites = Vec::new();
    let mut from = 0;
    for (place, chunk) in chunks.iter().enumerate() {
        let until = match chunks.get(place + 1) {
            Some(next) => new.steps.partition_point(|step| *step < next.step_min),
            None => new.len(),
        };
        if from < until {
            rewrites.extend(for_chunk(chunk, new, from..until));
        }
        from = until.max(from);
    }
    if from < new.len() {
        rewrites.push(Rewrite {
            replaces: None,
            points: from..new.len(),
        });
    }
    rewrites
}

/// Points before and behind a chunk that is full enough become chunks of their own.
fn for_chunk(chunk: &Bounds, new: &Series, points: Range<usize>) -> Vec<Rewrite> {
    let whole = |replaces| Rewrite {
        replaces,
        points: points.clone(),
    };
    let (first, last) = (new.steps[points.start], new.steps[points.end - 1]);
    let is_apart = first > chunk.step_max || last < chunk.step_min;
    if is_apart && chunk.n >= FULL_ENOUGH {
        return vec![whole(None)];
    }
    vec![whole(Some(*chunk))]
}

/// Where a series is cut into chunks of about the same size.
pub(super) fn cut(points: usize) -> impl Iterator<Item = Range<usize>> {
    let chunks = points.div_ceil(CHUNK_POINTS_MAX);
    (0..chunks).map(move |chunk| points * chunk / chunks..points * (chunk + 1) / chunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(chunk_no: i64, step_min: i64, step_max: i64, n: i64) -> Bounds {
        Bounds {
            chunk_no,
            step_min,
            step_max,
            n,
        }
    }

    fn steps(steps: &[i64]) -> Series {
        let mut series = Series::default();
        for step in steps {
            series.push(*step, 0, 0);
        }
        series
    }

    fn planned(chunks: &[Bounds], new: &[i64]) -> Vec<(Option<i64>, Range<usize>)> {
        let rewrites = plan(chunks, &steps(new)).into_iter();
        rewrites
            .map(|rewrite| (rewrite.replaces.map(|chunk| chunk.chunk_no), rewrite.points))
            .collect()
    }

    #[test]
    fn points_behind_a_full_chunk_make_a_new_one_and_behind_a_small_one_join_it() {
        assert_eq!(planned(&[bounds(1, 0, 99, 512)], &[100, 101]), [(None, 0..2)]);
        assert_eq!(planned(&[bounds(1, 0, 99, 511)], &[100, 101]), [(Some(1), 0..2)]);
        assert_eq!(planned(&[], &[5]), [(None, 0..1)]);
    }

    #[test]
    fn only_chunks_that_get_points_are_rewritten() {
        let chunks = [
            bounds(1, 0, 99, 600),
            bounds(2, 100, 199, 600),
            bounds(3, 300, 399, 600),
        ];
        assert_eq!(planned(&chunks, &[50, 350]), [(Some(1), 0..1), (Some(3), 1..2)]);
        assert_eq!(planned(&chunks, &[250, 500]), [(None, 0..1), (None, 1..2)]);
        assert_eq!(planned(&chunks, &[150, 250]), [(Some(2), 0..2)]);
        assert_eq!(planned(&chunks, &[100, 300]), [(Some(2), 0..1), (Some(3), 1..2)]);
        assert_eq!(planned(&chunks, &[-5, 0]), [(Some(1), 0..2)]);
    }

    #[test]
    fn a_series_is_cut_evenly_and_never_over_the_size_of_a_chunk() {
        for points in [1, 4095, 4096, 4097, 8192, 8193, 100_000] {
            let cuts: Vec<Range<usize>> = cut(points).collect();
            assert_eq!(cuts.iter().map(ExactSizeIterator::len).sum::<usize>(), points);
            assert!(
                cuts.iter().all(|cut| (1..=CHUNK_POINTS_MAX).contains(&cut.len())),
                "{points}"
            );
        }
        assert_eq!(cut(0).count(), 0);
    }
}
