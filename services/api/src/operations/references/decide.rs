//! The decision on one reference of one object: what a request does, by what is seen of the object. Pure and total.
//! Knows neither where the object is nor how it is written.

use kindex_model::kind::Kind;
use kindex_model::reference_name::ReferenceName;

/// What a request wants of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Change {
    /// That the object has it.
    Put,
    /// That the object does not have it.
    Delete,
}

/// How far an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Presence {
    /// There is none.
    Absent,
    /// Nobody has deleted it.
    Staying,
    /// It is being deleted.
    Leaving,
}

/// What is seen of the object.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Seen {
    pub(in super::super) presence: Presence,
    /// Whether the object has the reference.
    pub(in super::super) held: bool,
    /// Whether the reference is the object's own name: it would hold itself.
    pub(in super::super) itself: bool,
    /// Whether the object has the version that a release depends on, if it depends on any.
    pub(in super::super) is_as_read: bool,
}

/// What a request comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Decision {
    /// It is so already: success, and nothing is written.
    Done,
    /// The reference is added, if the object is still what was seen.
    Add,
    /// The reference is removed, if the object is still what was seen.
    Remove,
    /// Nothing is done.
    Refuse(RefusalReason),
}

/// Why a change is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum RefusalReason {
    /// There is no object to hold.
    Absent,
    /// An object does not hold itself: it would never go.
    Itself,
    /// The object is being deleted, and may not be used any more.
    Leaving,
    /// The object has changed since the version that the release depends on.
    Changed,
}

/// Decides about one request.
///
/// # Guarantees
/// What is being deleted gets no reference that it does not have. Whoever repeats a request is answered as the first
/// time.
pub(in super::super) fn decide(change: Change, seen: Seen) -> Decision {
    let Seen {
        presence,
        held,
        itself,
        is_as_read,
    } = seen;
    match (change, presence) {
        (Change::Put, Presence::Absent) => Decision::Refuse(RefusalReason::Absent),
        (Change::Put, Presence::Staying | Presence::Leaving) if itself => Decision::Refuse(RefusalReason::Itself),
        (Change::Put, Presence::Staying | Presence::Leaving) if held => Decision::Done,
        (Change::Put, Presence::Staying) => Decision::Add,
        (Change::Put, Presence::Leaving) => Decision::Refuse(RefusalReason::Leaving),
        (Change::Delete, Presence::Staying | Presence::Leaving) if held && !is_as_read => {
            Decision::Refuse(RefusalReason::Changed)
        }
        (Change::Delete, Presence::Staying | Presence::Leaving) if held => Decision::Remove,
        (Change::Delete, Presence::Absent | Presence::Staying | Presence::Leaving) => Decision::Done,
    }
}

/// Whether a reference is the name of this object.
pub(in super::super) fn is_of(reference: &ReferenceName, kind: &Kind, uid: &str) -> bool {
    is_of_kind(reference, kind) && reference.uid() == uid
}

/// Whether the holder of a reference is of this kind.
pub(in super::super) fn is_of_kind(reference: &ReferenceName, kind: &Kind) -> bool {
    reference.group() == kind.group && kind.name.eq_ignore_ascii_case(reference.kind())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::token::tests::KIND;

    #[test]
    fn each_cell() {
        use {Change as C, Decision as D, Presence as S, RefusalReason as R};
        let cells = [
            // change, presence, held, itself
            (C::Put, S::Absent, false, false, D::Refuse(R::Absent)),
            (C::Put, S::Staying, false, false, D::Add),
            (C::Put, S::Staying, true, false, D::Done),
            (C::Put, S::Staying, false, true, D::Refuse(R::Itself)),
            (C::Put, S::Staying, true, true, D::Refuse(R::Itself)),
            (C::Put, S::Leaving, false, false, D::Refuse(R::Leaving)),
            (C::Put, S::Leaving, true, false, D::Done),
            (C::Put, S::Leaving, false, true, D::Refuse(R::Itself)),
            (C::Put, S::Leaving, true, true, D::Refuse(R::Itself)),
            (C::Delete, S::Absent, false, false, D::Done),
            (C::Delete, S::Staying, false, false, D::Done),
            (C::Delete, S::Staying, true, false, D::Remove),
            (C::Delete, S::Staying, true, true, D::Remove),
            (C::Delete, S::Leaving, false, false, D::Done),
            (C::Delete, S::Leaving, true, false, D::Remove),
            (C::Delete, S::Leaving, true, true, D::Remove),
        ];
        for (change, presence, held, itself, expected) in cells {
            let seen = Seen {
                presence,
                held,
                itself,
                is_as_read: true,
            };
            assert_eq!(decide(change, seen), expected, "{change:?} {seen:?}");
        }
    }

    #[test]
    fn an_object_that_has_changed_since_it_was_read_loses_no_reference() {
        use {Decision as D, Presence as S};
        for (presence, held, expected) in [
            (S::Absent, false, D::Done),
            (S::Staying, false, D::Done),
            (S::Leaving, false, D::Done),
            (S::Staying, true, D::Refuse(RefusalReason::Changed)),
            (S::Leaving, true, D::Refuse(RefusalReason::Changed)),
        ] {
            let seen = Seen {
                presence,
                held,
                itself: false,
                is_as_read: false,
            };
            assert_eq!(decide(Change::Delete, seen), expected, "{seen:?}");
        }
    }

    #[test]
    fn an_object_is_known_by_kind_group_and_uid() {
        let name = |text: &str| text.parse::<ReferenceName>().expect("a name");
        assert!(is_of(&name("run.g/u"), &KIND, "u"));
        for other in ["run.g/v", "run.h/u", "job.g/u"] {
            assert!(!is_of(&name(other), &KIND, "u"), "{other}");
        }
    }
}
