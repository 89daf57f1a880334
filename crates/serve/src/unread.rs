//! Whose watch ends first where memory is short: a decision over what clients have not read yet, and since when.

use std::time::Duration;

use tokio::time::Instant;

/// What one client has been handed and has not taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unread {
    pub(crate) bytes: usize,
    /// When it last took some; nothing where there is nothing to take.
    pub(crate) since: Option<Instant>,
}

impl Unread {
    pub(crate) fn handed(&mut self, bytes: usize, now: Instant) {
        self.bytes += bytes;
        self.since = self.since.or(Some(now));
    }

    pub(crate) fn taken(&mut self, bytes: usize, now: Instant) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.since = (self.bytes > 0).then_some(now);
    }
}

/// What can be done for room.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict<I> {
    /// This watch ends.
    End(I),
    /// Everybody reads, as far as is known; at this time somebody does not.
    Wait(Instant),
    /// Nobody has anything to take.
    Nobody,
}

/// The watch that has stood still longest, and of those the largest. Who took something within `grace` is reading.
pub(crate) fn slowest<I>(now: Instant, grace: Duration, watches: impl Iterator<Item = (I, Unread)>) -> Verdict<I> {
    let waiting = watches.filter_map(|(id, unread)| Some((id, unread.since?, unread.bytes)));
    let slowest = waiting.min_by_key(|(_, since, bytes)| (*since, std::cmp::Reverse(*bytes)));
    match slowest {
        None => Verdict::Nobody,
        Some((id, since, _)) if now.duration_since(since) >= grace => Verdict::End(id),
        Some((_, since, _)) => Verdict::Wait(since + grace),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_ends_then_the_largest_and_nobody_who_reads() {
        let (now, grace) = (Instant::now() + Duration::from_secs(3600), Duration::from_secs(5));
        let unread = |bytes, seconds| Unread {
            bytes,
            since: Some(now - Duration::from_secs(seconds)),
        };
        let idle = Unread::default();
        for (watches, expected) in [
            (vec![unread(10, 9), unread(99, 6)], Verdict::End(0)),
            (vec![unread(10, 9), unread(99, 9)], Verdict::End(1)),
            (
                vec![idle, unread(99, 3), unread(10, 4)],
                Verdict::Wait(now + Duration::from_secs(1)),
            ),
            (vec![idle], Verdict::Nobody),
        ] {
            assert_eq!(
                slowest(now, grace, watches.clone().into_iter().enumerate()),
                expected,
                "{watches:?}"
            );
        }
    }

    #[test]
    fn whoever_takes_something_is_not_standing_still() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut unread = Unread::default();
        unread.handed(10, at(0));
        unread.handed(10, at(1));
        assert_eq!(unread.since, Some(at(0)));
        unread.taken(10, at(2));
        assert_eq!(unread.since, Some(at(2)));
        unread.taken(10, at(3));
        assert_eq!(unread, Unread::default());
    }
}
