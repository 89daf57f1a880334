//! What may happen next in a play, and how often. Each sort of play has its own odds.

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

/// Something that somebody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A user creates an object.
    Create,
    /// A user changes or deletes one.
    Use,
    /// A user changes or deletes what is archived.
    UseArchived,
    /// A user moves an object, by one request.
    Move,
    /// A user does the next thing that was intended from the beginning.
    Intent,
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

/// How often each action is done, in proportion to the others.
pub(super) type Odds = &'static [(u32, Action)];

/// Few objects with many users.
pub(super) const SMALL: Odds = &[
    (4, Action::Create),
    (3, Action::Use),
    (1, Action::Meddle),
    (3, Action::Others),
    (1, Action::Fail),
    (10, Action::Hear),
    (8, Action::Decide),
    (10, Action::Send),
    (4, Action::Move),
];
/// The same, and many of the objects are archived.
pub(super) const ARCHIVING: Odds = &[
    (4, Action::Create),
    (3, Action::Use),
    (1, Action::Meddle),
    (3, Action::Others),
    (1, Action::Fail),
    (10, Action::Hear),
    (8, Action::Decide),
    (10, Action::Send),
    (4, Action::Move),
    (2, Action::UseArchived),
    (4, Action::Walk),
];
/// Many objects, some of which are deleted, and nothing else is done by users.
pub(super) const LARGE: Odds = &[
    (1, Action::Intent),
    (12, Action::Others),
    (1, Action::Fail),
    (24, Action::Hear),
    (20, Action::Decide),
    (24, Action::Send),
    (6, Action::Walk),
];
/// Many objects, and users who go on.
pub(super) const LARGE_AND_BUSY: Odds = &[
    (1, Action::Intent),
    (12, Action::Others),
    (1, Action::Fail),
    (24, Action::Hear),
    (20, Action::Decide),
    (24, Action::Send),
    (6, Action::Walk),
    (4, Action::Create),
    (2, Action::Use),
    (2, Action::UseArchived),
    (6, Action::Move),
    (1, Action::Meddle),
];

/// What happens next.
pub(super) fn draw(odds: Odds, random: &mut Xoshiro256PlusPlus) -> Action {
    let all = odds.iter().map(|(times, _)| times).sum();
    let mut left = random.random_range(0..all);
    for (times, action) in odds {
        match left.checked_sub(*times) {
            Some(less) => left = less,
            None => return *action,
        }
    }
    unreachable!("less than all of them")
}
