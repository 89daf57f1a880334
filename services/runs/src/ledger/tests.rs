//! Every decision on a batch by its own: orders of arrival, bounds at n-1, n and n+1, and times to the tick.

use super::*;
use crate::domain::Status;

const RULES: ReorderRules = ReorderRules {
    batches_max: 100,
    wait: 30_000_000_000,
    gap_max: 1000,
};

/// Delivers batches with these sequences, one a nanosecond; what is applied, by place of arrival.
fn deliver(queue: &mut Queue, sequences: &[i64]) -> Vec<usize> {
    let mut applied = Vec::new();
    for (place, sequence) in sequences.iter().enumerate() {
        let arrival = place as i64;
        let placement = queue.place(arrival, Some(*sequence), &RULES);
        queue.settle(&placement, Some((*sequence, arrival, arrival)));
        applied.extend(placement.applied.iter().map(|arrival| *arrival as usize));
    }
    applied
}

fn permutations(of: &[i64]) -> Vec<Vec<i64>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (place, first) in of.iter().enumerate() {
        let rest: Vec<i64> = [&of[..place], &of[place + 1..]].concat();
        all.extend(
            permutations(&rest)
                .into_iter()
                .map(|rest| [&[*first][..], &rest].concat()),
        );
    }
    all
}

#[test]
fn batches_apply_in_sequence_order() {
    for n in 1..=6 {
        let sequences: Vec<i64> = (1..=n).collect();
        for order in permutations(&sequences) {
            let mut queue = Queue::new(1);
            let applied: Vec<i64> = deliver(&mut queue, &order)
                .into_iter()
                .map(|place| order[place])
                .collect();
            assert_eq!(applied, sequences, "delivered as {order:?}");
            assert_eq!(queue, Queue::new(n + 1));
        }
    }
}

#[test]
fn two_batches_of_one_sequence_are_applied_in_the_order_of_arrival() {
    let mut queue = Queue::new(1);
    assert_eq!(deliver(&mut queue, &[3, 2, 2, 1]), [3, 1, 2, 0]);
    assert_eq!(queue.expected(), 4);
}

#[test]
fn a_late_batch_is_applied_on_arrival() {
    let mut queue = Queue::new(1);
    deliver(&mut queue, &[1, 2]);
    let placement = queue.place(9, Some(2), &RULES);
    assert_eq!(
        (placement.applied, placement.is_late, placement.expected),
        (vec![9], true, 3)
    );
    assert!(queue.place(9, Some(i64::MIN), &RULES).is_late);
    assert!(!queue.place(9, None, &RULES).is_late);
}

#[test]
fn a_gap_beyond_the_bound_is_not_waited_for() {
    let queue = Queue::new(1);
    for (gap, is_held) in [
        (1, true),
        (999, true),
        (1000, true),
        (1001, false),
        (i64::MAX - 1, false),
    ] {
        let placement = queue.place(5, Some(1 + gap), &RULES);
        assert_eq!(placement.is_held, is_held, "gap {gap}");
        assert_eq!(placement.applied.is_empty(), is_held, "gap {gap}");
        assert_eq!(placement.expected, 1, "gap {gap}");
    }
}

#[test]
fn one_batch_more_than_can_be_held_releases_all_in_order() {
    let mut queue = Queue::new(1);
    let held: Vec<i64> = (0..100).map(|n| 200 - n).collect();
    assert_eq!(deliver(&mut queue, &held), [0; 0]);
    assert_eq!(queue.len(), 100);
    let placement = queue.place(100, Some(150), &RULES);
    let mut expected: Vec<i64> = (0..100).rev().collect();
    let place = expected
        .iter()
        .position(|arrival| held[*arrival as usize] > 150)
        .expect("one is higher");
    expected.insert(place, 100);
    assert_eq!(placement.applied, expected);
    assert_eq!(placement.expected, 201);
    queue.settle(&placement, Some((150, 100, 0)));
    assert_eq!(queue, Queue::new(201));
}

#[test]
fn held_batches_wait_thirty_seconds_from_the_oldest() {
    let mut queue = Queue::new(1);
    queue.restore(5, 1, 1_000);
    queue.restore(3, 2, 2_000);
    assert!(!queue.is_due(1_000 + RULES.wait - 1, &RULES));
    assert!(queue.is_due(1_000 + RULES.wait, &RULES));
    let placement = queue.release();
    assert_eq!((placement.applied, placement.expected), (vec![2, 1], 6));
    assert!(!Queue::new(1).is_due(i64::MAX, &RULES));
}

#[test]
fn a_reused_batch_id_with_other_content_is_a_conflict() {
    let hash = [7; 32];
    assert_eq!(compare_with_stored(None, &hash), StoredMatch::New);
    assert_eq!(compare_with_stored(Some(&[7; 32]), &hash), StoredMatch::Duplicate);
    assert_eq!(compare_with_stored(Some(&[8; 32]), &hash), StoredMatch::Conflict);
    assert_eq!(compare_with_stored(Some(&[7; 31]), &hash), StoredMatch::Conflict);
}

#[test]
fn cardinality_warns_at_eighty_percent() {
    let added = |known| admit_names(known, &[5], 10_000, 80);
    assert!(!added(7_998).is_approaching);
    assert!(added(7_999).is_approaching);
    assert!(!admit_names(9_000, &[], 10_000, 80).is_approaching, "nothing was added");
}

#[test]
fn at_the_limit_new_metrics_are_dropped_and_counted() {
    let all = admit_names(9_998, &[1, 2], 10_000, 80);
    assert_eq!(
        (all.admitted, all.names, all.refused_points),
        (vec![true, true], 10_000, 0)
    );
    let some = admit_names(9_998, &[1, 2, 4, 8], 10_000, 80);
    assert_eq!(some.admitted, [true, true, false, false]);
    assert_eq!((some.names, some.refused_names, some.refused_points), (10_000, 2, 12));
    assert!(!admit_names(10_000, &[1], 10_000, 80).is_approaching);
}

#[test]
fn ids_are_kept_for_a_day_and_those_of_open_runs_for_a_week_of_silence() {
    let rules = RetentionRules::default();
    let (day, week) = (rules.kept, rules.resumable);
    let over = |received: i64, status, seen: i64| rules.is_over(-received, status, -seen, 0);
    assert!(!over(day, Status::Finished, week * 2));
    assert!(over(day + 1, Status::Finished, 0));
    for status in [Status::Running, Status::Crashed] {
        assert!(!over(week * 2, status, week), "{status:?}");
        assert!(over(week * 2, status, week + 1), "{status:?}");
    }
}
