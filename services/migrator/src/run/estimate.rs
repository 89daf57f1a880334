//! How far a pass is, and when it will be through.

use std::time::Duration;

/// What is left of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Objects of the pass, as far as the server says.
    pub total: u64,
    /// At the rate so far; `None` before the first object.
    pub left: Option<Duration>,
}

/// Estimates from what was listed in `elapsed` and what the last page says remains. `remaining` is
/// `metadata.remainingItemCount`, which a server need not give and which moves with other writers.
pub fn estimate(listed: u64, remaining: Option<u64>, elapsed: Duration) -> Option<Estimate> {
    let remaining = remaining?;
    let left = (listed > 0).then(|| elapsed.mul_f64(remaining as f64 / listed as f64));
    Some(Estimate {
        total: listed.saturating_add(remaining),
        left,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_an_object_as_what_was_done() {
        let half = estimate(500, Some(1_500), Duration::from_secs(10)).expect("known");
        assert_eq!((half.total, half.left), (2_000, Some(Duration::from_secs(30))));
    }

    #[test]
    fn the_estimate_of_a_million_objects_comes_true_within_a_tenth_at_a_rate_that_varies() {
        let (objects, page) = (1_000_000, 500);
        // By turns slower and faster than 500 a second.
        let ends = |pages: u64| Duration::from_millis(1_000 * pages + 50 * (pages % 7));
        let all = ends(objects / page);
        for pages in 1..=objects / page {
            let listed = pages * page;
            let said = estimate(listed, Some(objects - listed), ends(pages)).expect("known");
            let left = said.left.expect("begun").as_secs_f64();
            let expected = (all - ends(pages)).as_secs_f64();
            assert_eq!(said.total, objects);
            assert!(
                (left - expected).abs() <= all.as_secs_f64() / 10.0,
                "{pages}: {left} of {expected}"
            );
        }
    }

    #[test]
    fn nothing_is_estimated_before_anything_is_known() {
        assert_eq!(estimate(500, None, Duration::from_secs(10)), None);
        let first = estimate(0, Some(9), Duration::ZERO).expect("known");
        assert_eq!((first.total, first.left), (9, None));
    }
}
