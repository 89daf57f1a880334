//! What may happen next in a play, and how often. Each sort of play has its own odds.

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

/// Something that somebody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// A user creates an object.
    Create,
    /// A user changes or deletes one.
    Use,
    /// A user changes or deletes what is archived.
    UseArchived,
    /// A user moves an object, by one request.
    Move,
    /// A user does the next thing that was intended from the beginning.
    Wish,
    /// Somebody interferes with the controllers.
    Meddle,
    /// A controller, a watch or an API server fails.
    Fail,
    /// The ingester and the controllers of others.
    Others,
    /// A controller hears of something.
    Hear,
    /// A controller decides on an object.
    Decide,
    /// A controller sends a request.
    Send,
    /// A controller goes on with its walk over tombstones.
    Walk,
}

/// How often each deed is done, in proportion to the others.
pub(super) type Odds = &'static [(u32, Deed)];

/// Few objects with many users.
pub(super) const SMALL: Odds = &[
    (4, Deed::Create),
    (3, Deed::Use),
    (1, Deed::Meddle),
    (3, Deed::Others),
    (1, Deed::Fail),
    (10, Deed::Hear),
    (8, Deed::Decide),
    (10, Deed::Send),
    (4, Deed::Move),
];
/// The same, and many of the objects are archived.
pub(super) const ARCHIVING: Odds = &[
    (4, Deed::Create),
    (3, Deed::Use),
    (1, Deed::Meddle),
    (3, Deed::Others),
    (1, Deed::Fail),
    (10, Deed::Hear),
    (8, Deed::Decide),
    (10, Deed::Send),
    (4, Deed::Move),
    (2, Deed::UseArchived),
    (4, Deed::Walk),
];
/// Many objects, some of which are deleted, and nothing else is done by users.
pub(super) const LARGE: Odds = &[
    (1, Deed::Wish),
    (12, Deed::Others),
    (1, Deed::Fail),
    (24, Deed::Hear),
    (20, Deed::Decide),
    (24, Deed::Send),
    (6, Deed::Walk),
];
/// Many objects, and users who go on.
pub(super) const LARGE_AND_BUSY: Odds = &[
    (1, Deed::Wish),
    (12, Deed::Others),
    (1, Deed::Fail),
    (24, Deed::Hear),
    (20, Deed::Decide),
    (24, Deed::Send),
    (6, Deed::Walk),
    (4, Deed::Create),
    (2, Deed::Use),
    (2, Deed::UseArchived),
    (6, Deed::Move),
    (1, Deed::Meddle),
];

/// What happens next.
pub(super) fn draw(odds: Odds, random: &mut Xoshiro256PlusPlus) -> Deed {
    let all = odds.iter().map(|(times, _)| times).sum();
    let mut left = random.random_range(0..all);
    for (times, deed) in odds {
        match left.checked_sub(*times) {
            Some(less) => left = less,
            None => return *deed,
        }
    }
    unreachable!("less than all of them")
}
