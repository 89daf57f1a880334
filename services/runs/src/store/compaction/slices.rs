//! What compaction writes, cut into transactions that are short, so that batches wait for one of them and not for all.
//! Pure.
//!
//! Chunks come first, and the batches that they are made of stay: whoever reads meanwhile finds the same points in
//! both, of which those of the batches count. Then the batches go, in the order in which they were applied: those that
//! are left are newer than all that is gone, and so may win over the chunks. A crash in between leaves work that is
//! done once more, and changes nothing.

use crate::store::statements::chunks::NewChunk;

use super::unit::Unit;

/// Chunks of a metric that are put in the place of an older one.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Rewritten {
    /// The number of the older one, and its points.
    pub(super) removed: Option<(i64, i64)>,
    /// What is written.
    pub(super) added: Vec<NewChunk>,
}

/// How much a transaction writes at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransactionLimits {
    /// Chunks.
    pub(super) chunks: usize,
    /// Bytes of chunks.
    pub(super) bytes: usize,
    /// Batches that are gone.
    pub(super) batches: usize,
}

impl TransactionLimits {
    /// For a number of chunks.
    pub(super) fn of(chunks: usize) -> Self {
        Self {
            chunks,
            // As many chunks of a middling size.
            bytes: chunks * 8 * 1024,
            batches: chunks * 4,
        }
    }
}

/// The transactions for chunks of a run, and for its batches with their points, which are in the order in which they
/// were applied. A replaced chunk and what replaces it are in one transaction.
pub(super) fn slices(
    run: i64,
    rewritten: Vec<Rewritten>,
    batches: &[(i64, i64)],
    limits: TransactionLimits,
) -> Vec<Unit> {
    let mut units = vec![Unit::of(run)];
    let mut bytes = 0;
    for part in rewritten {
        let more: usize = part.added.iter().map(|chunk| chunk.body.len()).sum();
        let unit = units.last().expect("there is one");
        let chunks = unit.added.len() + part.added.len();
        if !unit.added.is_empty() && (chunks > limits.chunks || bytes + more > limits.bytes) {
            units.push(Unit::of(run));
            bytes = 0;
        }
        bytes += more;
        let unit = units.last_mut().expect("there is one");
        if let Some((chunk, points)) = part.removed {
            unit.removed.push(chunk);
            unit.removed_points += points;
        }
        unit.added.extend(part.added);
    }
    for (place, batches) in batches.chunks(limits.batches.max(1)).enumerate() {
        // The last chunks and the first batches may go together.
        if place > 0 {
            units.push(Unit::of(run));
        }
        let unit = units.last_mut().expect("there is one");
        unit.arrivals = batches.iter().map(|(arrival, _)| *arrival).collect();
        unit.points = batches.iter().map(|(_, points)| *points).sum();
    }
    units
}

#[cfg(test)]
mod tests {
    use kindex_series::{Series, Stats};

    use super::*;

    fn chunk(metric: u32, bytes: usize) -> NewChunk {
        let mut series = Series::default();
        series.push(i64::from(metric), 0, 0);
        NewChunk {
            metric,
            stats: Stats::of(&series).expect("it has a point"),
            ordinal_max: 0,
            body: vec![0; bytes],
        }
    }

    fn rewritten(removed: i64, chunks: &[usize]) -> Rewritten {
        Rewritten {
            removed: Some((removed, 10)),
            added: chunks.iter().map(|bytes| chunk(removed as u32, *bytes)).collect(),
        }
    }

    fn limits(chunks: usize, bytes: usize, batches: usize) -> TransactionLimits {
        TransactionLimits { chunks, bytes, batches }
    }

    /// For each transaction what it removes, how many chunks it adds, and which batches go.
    fn shape(units: &[Unit]) -> Vec<(Vec<i64>, usize, Vec<i64>)> {
        let shape = units.iter();
        shape
            .map(|unit| (unit.removed.clone(), unit.added.len(), unit.arrivals.clone()))
            .collect()
    }

    #[test]
    fn what_is_little_is_written_in_one_transaction() {
        let units = slices(
            7,
            vec![rewritten(1, &[5]), rewritten(2, &[5])],
            &[(4, 30), (5, 2)],
            limits(2, 10, 2),
        );
        assert_eq!(shape(&units), [(vec![1, 2], 2, vec![4, 5])]);
        assert_eq!((units[0].points, units[0].removed_points), (32, 20));
    }

    #[test]
    fn a_transaction_has_no_more_chunks_bytes_and_batches_than_it_may() {
        let parts = || vec![rewritten(1, &[5]), rewritten(2, &[5]), rewritten(3, &[5])];
        let batches = [(4, 1), (5, 1), (6, 1)];
        let by_count = slices(7, parts(), &batches, limits(2, 1_000, 2));
        let expected = [(vec![1, 2], 2, vec![]), (vec![3], 1, vec![4, 5]), (vec![], 0, vec![6])];
        assert_eq!(shape(&by_count), expected);
        let by_bytes = slices(7, parts(), &batches, limits(9, 9, 9));
        let expected = [(vec![1], 1, vec![]), (vec![2], 1, vec![]), (vec![3], 1, vec![4, 5, 6])];
        assert_eq!(shape(&by_bytes), expected);
    }

    #[test]
    fn a_chunk_goes_with_all_that_replaces_it() {
        let units = slices(
            7,
            vec![rewritten(1, &[5]), rewritten(2, &[5, 5, 5])],
            &[],
            limits(2, 9, 9),
        );
        assert_eq!(shape(&units), [(vec![1], 1, vec![]), (vec![2], 3, vec![])]);
    }

    #[test]
    fn batches_go_after_all_chunks_and_oldest_first() {
        let parts = (0..20).map(|chunk| rewritten(chunk, &[100])).collect();
        let batches: Vec<(i64, i64)> = [9, 3, 7, 1, 8].map(|arrival| (arrival, 1)).to_vec();
        let units = slices(7, parts, &batches, limits(3, 1_000, 2));
        let first = units
            .iter()
            .position(|unit| !unit.arrivals.is_empty())
            .expect("batches go");
        assert!(units[first + 1..].iter().all(|unit| unit.added.is_empty()));
        let gone: Vec<i64> = units.iter().flat_map(|unit| unit.arrivals.clone()).collect();
        assert_eq!(gone, [9, 3, 7, 1, 8], "in the order in which they were applied");
    }
}
