//! The refusals with which a release begins. Where the first objects of a namespace are all refused for one reason, so
//! are the others, most likely, and each would cost a request. Whether this holds for the whole kind shows in the next
//! namespace: a policy may be about one, and the rights of an account about others. Pure.

use kindex_kube_client::{ObjectName, RefusedBy};

/// So many objects in a row are refused before no other one of their namespace is tried.
pub(super) const REFUSALS_MAX: usize = 20;

/// An object whose release the cluster refused.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) name: ObjectName,
    /// As the cluster says it.
    pub(super) why: String,
}

/// Why others of a kind were not tried: the cluster refused the release of the first ones for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedAlike {
    /// How many were refused.
    pub objects: usize,
    /// The first of them.
    pub object: String,
    /// Why the cluster refuses that one.
    pub message: String,
    /// Who refuses all of them.
    pub by: RefusedBy,
}

/// Who refused an object: an account that lacks the right, or this webhook or policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    by: RefusedBy,
    admission: Option<String>,
}

impl Reason {
    fn of(refusal: &Refusal) -> Option<Self> {
        Some(Self {
            by: RefusedBy::of(&refusal.why)?,
            admission: RefusedBy::admission(&refusal.why).map(ToOwned::to_owned),
        })
    }
}

/// What became of the objects of a kind so far.
#[derive(Debug)]
pub(super) enum Refusals {
    /// None was tried.
    Untried,
    /// Each was refused for the same reason.
    Alike {
        first: Refusal,
        reason: Reason,
        count: usize,
        /// Whether they are in more than one namespace.
        in_several: bool,
    },
    /// The cluster let one pass, or had another reason. What it refuses from now on is about that object alone.
    Mixed {
        /// The namespace whose first objects were refused alike. The others of it are not tried, in whichever order
        /// they come.
        given_up: Option<String>,
    },
}

impl Refusals {
    /// Takes up the next object, with its refusal if it was refused.
    pub(super) fn note(&mut self, refusal: Option<&Refusal>) {
        let next = refusal.and_then(|refusal| Some((refusal, Reason::of(refusal)?)));
        match self {
            Self::Untried => {
                *self = match next {
                    Some((first, reason)) => Self::Alike {
                        first: first.clone(),
                        reason,
                        count: 1,
                        in_several: false,
                    },
                    None => Self::Mixed { given_up: None },
                };
            }
            Self::Alike {
                first,
                reason,
                count,
                in_several,
            } => match next {
                Some((refusal, same)) if *reason == same => {
                    *count += 1;
                    *in_several |= refusal.name.namespace != first.name.namespace;
                }
                Some(_) | None => {
                    let given_up = (*count >= REFUSALS_MAX).then(|| first.name.namespace.clone());
                    *self = Self::Mixed { given_up };
                }
            },
            Self::Mixed { .. } => {}
        }
    }

    /// The refusals, once that many objects were refused that others are not to be tried.
    pub(super) fn alike(&self) -> Option<RefusedAlike> {
        match self {
            Self::Alike {
                first, reason, count, ..
            } if *count >= REFUSALS_MAX => Some(RefusedAlike {
                objects: *count,
                object: first.name.to_string(),
                message: first.why.clone(),
                by: reason.by,
            }),
            Self::Untried | Self::Alike { .. } | Self::Mixed { .. } => None,
        }
    }

    /// Whether an object of this namespace is to be tried.
    pub(super) fn may_try(&self, namespace: &str) -> bool {
        match self {
            Self::Alike {
                first,
                count,
                in_several,
                ..
            } => *count < REFUSALS_MAX || !*in_several && first.name.namespace != namespace,
            Self::Untried => true,
            Self::Mixed { given_up } => given_up.as_deref() != Some(namespace),
        }
    }

    /// How many objects may be tried before it is looked at again.
    pub(super) fn room(&self) -> usize {
        match self {
            Self::Untried => REFUSALS_MAX,
            Self::Alike { count, .. } => REFUSALS_MAX.saturating_sub(*count).max(1),
            Self::Mixed { .. } => usize::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_RIGHT: &str =
        "things.g \"a\" is forbidden: User \"u\" cannot patch resource \"things\" in API group \"g\"";
    const DENIED: &str = "admission webhook \"w\" denied the request: no";
    const DENIED_BY_ANOTHER: &str = "admission webhook \"v\" denied the request: no";
    const INVALID: &str = "Thing.g \"a\" is invalid: spec: Required value";

    fn refusal(namespace: &str, name: usize, why: &str) -> Refusal {
        Refusal {
            name: ObjectName {
                namespace: namespace.to_owned(),
                name: name.to_string(),
            },
            why: why.to_owned(),
        }
    }

    /// What becomes of so many objects of a namespace that are all refused for this reason.
    fn refused(objects: usize, why: &str) -> Refusals {
        let mut refusals = Refusals::Untried;
        (0..objects).for_each(|name| refusals.note(Some(&refusal("a", name, why))));
        refusals
    }

    #[test]
    fn objects_are_refused_alike_from_the_twentieth_on() {
        for (why, expected) in [(NO_RIGHT, RefusedBy::Authorization), (DENIED, RefusedBy::Admission)] {
            for objects in [0, 1, REFUSALS_MAX - 1] {
                let refusals = refused(objects, why);
                assert!(refusals.alike().is_none() && refusals.may_try("a"), "{objects}");
                assert_eq!(refusals.room(), REFUSALS_MAX - objects);
            }
            for objects in [REFUSALS_MAX, REFUSALS_MAX + 1] {
                let refusals = refused(objects, why);
                let alike = refusals.alike().expect("there are enough");
                assert_eq!(
                    (alike.object.as_str(), alike.objects, alike.by),
                    ("a/0", objects, expected)
                );
                assert!(!refusals.may_try("a"));
            }
        }
    }

    /// As if one webhook ended the release of what it does not know.
    #[test]
    fn what_is_refused_after_another_outcome_is_about_one_object() {
        for other in [None, Some(DENIED), Some(INVALID)] {
            for before in [0, 1, REFUSALS_MAX - 1] {
                let mut refusals = refused(before, NO_RIGHT);
                refusals.note(other.map(|why| refusal("a", before, why)).as_ref());
                (0..REFUSALS_MAX - 1).for_each(|name| refusals.note(Some(&refusal("a", name, NO_RIGHT))));
                assert!(
                    refusals.alike().is_none() && refusals.may_try("a"),
                    "{before} {other:?}"
                );
            }
        }
        assert!(refused(2 * REFUSALS_MAX, INVALID).alike().is_none());
    }

    #[test]
    fn two_webhooks_are_two_reasons() {
        let mut refusals = refused(REFUSALS_MAX - 1, DENIED);
        refusals.note(Some(&refusal("a", REFUSALS_MAX, DENIED_BY_ANOTHER)));
        assert!(refusals.alike().is_none() && refusals.may_try("a"));
    }

    /// As if a policy of one namespace, or an account with rights in others, ended the release of all.
    #[test]
    fn the_first_object_of_the_next_namespace_says_whether_the_others_are_tried() {
        let enough = || refused(REFUSALS_MAX, NO_RIGHT);
        assert!(enough().may_try("b") && enough().room() == 1);
        let after = |why: Option<&str>| {
            let mut refusals = enough();
            refusals.note(why.map(|why| refusal("b", 0, why)).as_ref());
            ["a", "b", "c"].map(|namespace| refusals.may_try(namespace))
        };
        assert_eq!(after(Some(NO_RIGHT)), [false; 3]);
        assert_eq!(after(None), [false, true, true]);
        assert_eq!(after(Some(DENIED)), [false, true, true], "that is another reason");
    }

    /// As if thousands of namespaces with few objects each were tried one after the other.
    #[test]
    fn twenty_objects_of_several_namespaces_are_enough() {
        let mut refusals = refused(REFUSALS_MAX - 1, DENIED);
        refusals.note(Some(&refusal("b", 0, DENIED)));
        assert!(!["a", "b", "c"].iter().any(|namespace| refusals.may_try(namespace)));
    }
}
