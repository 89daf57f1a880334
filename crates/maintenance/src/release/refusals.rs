//! The refusals with which a release begins. Where the first objects are all refused for one reason, so are the others,
//! most likely, and each would cost a request. Pure.

use kindex_kube_client::{ObjectName, RefusedBy};

/// So many objects in a row are refused before no other one is tried.
pub(super) const REFUSALS_MAX: usize = 20;

/// An object whose release the cluster refused.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) name: ObjectName,
    /// As the cluster says it.
    pub(super) why: String,
}

/// What became of the objects of a kind so far.
#[derive(Debug)]
pub(super) enum Refusals {
    /// None was tried.
    Untried,
    /// Each was refused for the same reason.
    Alike {
        first: Refusal,
        by: RefusedBy,
        count: usize,
    },
    /// The cluster let one pass, or had another reason. What it refuses from now on is about that object alone.
    Mixed,
}

impl Refusals {
    /// Takes up the next object, with its refusal if it was refused.
    pub(super) fn note(&mut self, refusal: Option<&Refusal>) {
        let next = refusal.and_then(|refusal| Some((refusal, RefusedBy::of(&refusal.why)?)));
        match self {
            Self::Untried => {
                *self = match next {
                    Some((first, by)) => Self::Alike {
                        first: first.clone(),
                        by,
                        count: 1,
                    },
                    None => Self::Mixed,
                };
            }
            Self::Alike { by, count, .. } => match next {
                Some((_, same)) if *by == same => *count += 1,
                Some(_) | None => *self = Self::Mixed,
            },
            Self::Mixed => {}
        }
    }

    /// The first refusal, and whose it is, once that many objects were refused that no other one is to be tried.
    pub(super) fn of_all(&self) -> Option<(&Refusal, RefusedBy)> {
        match self {
            Self::Alike { first, by, count } if *count >= REFUSALS_MAX => Some((first, *by)),
            Self::Untried | Self::Alike { .. } | Self::Mixed => None,
        }
    }

    /// How many objects may be tried before it is looked at again.
    pub(super) fn room(&self) -> usize {
        match self {
            Self::Untried => REFUSALS_MAX,
            Self::Alike { count, .. } => REFUSALS_MAX.saturating_sub(*count).max(1),
            Self::Mixed => usize::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_RIGHT: &str =
        "things.g \"a\" is forbidden: User \"u\" cannot patch resource \"things\" in API group \"g\"";
    const DENIED: &str = "admission webhook \"w\" denied the request: no";
    const INVALID: &str = "Thing.g \"a\" is invalid: spec: Required value";

    fn refusal(name: usize, why: &str) -> Refusal {
        Refusal {
            name: ObjectName {
                namespace: String::new(),
                name: name.to_string(),
            },
            why: why.to_owned(),
        }
    }

    /// What becomes of so many objects that are all refused for this reason.
    fn refused(objects: usize, why: &str) -> Refusals {
        let mut refusals = Refusals::Untried;
        (0..objects).for_each(|name| refusals.note(Some(&refusal(name, why))));
        refusals
    }

    #[test]
    fn objects_are_refused_alike_from_the_twentieth_on() {
        for (why, expected) in [(NO_RIGHT, RefusedBy::Authorization), (DENIED, RefusedBy::Admission)] {
            for objects in [0, 1, REFUSALS_MAX - 1] {
                let refusals = refused(objects, why);
                assert!(refusals.of_all().is_none(), "{objects}");
                assert_eq!(refusals.room(), REFUSALS_MAX - objects);
            }
            for objects in [REFUSALS_MAX, REFUSALS_MAX + 1] {
                let refusals = refused(objects, why);
                let (first, by) = refusals.of_all().expect("there are enough");
                assert_eq!((&*first.name.name, by), ("0", expected), "{objects}");
            }
        }
    }

    /// As if one webhook ended the release of what it does not know.
    #[test]
    fn what_is_refused_after_another_outcome_is_about_one_object() {
        for other in [None, Some(DENIED), Some(INVALID)] {
            for before in [0, 1, REFUSALS_MAX - 1] {
                let mut refusals = refused(before, NO_RIGHT);
                refusals.note(other.map(|why| refusal(before, why)).as_ref());
                (0..REFUSALS_MAX - 1).for_each(|name| refusals.note(Some(&refusal(name, NO_RIGHT))));
                assert!(refusals.of_all().is_none(), "{before} {other:?}");
            }
        }
        assert!(refused(2 * REFUSALS_MAX, INVALID).of_all().is_none());
    }
}
