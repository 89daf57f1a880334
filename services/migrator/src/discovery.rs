//! What the discovery documents of all API servers say of one resource together.

use std::collections::BTreeSet;

use crate::hash::Hash;

/// What one API server shows of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The resource with this hash.
    Hash(Hash),
    /// The resource without a hash, as where its storage version is not served.
    NoHash,
    /// Its group and version, but not the resource.
    Absent,
    /// No answer, or none for its group and version.
    Silent,
}

/// What all API servers show of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Discovered {
    /// All the same hash.
    Agreed(Hash),
    /// At least two different hashes, or a hash on some of them alone.
    Divided(BTreeSet<Hash>),
    /// The resource, and none a hash.
    NoHash,
    /// None has the resource.
    Absent,
    /// At least one did not answer: nothing follows.
    Partial,
}

/// Puts the answers of all API servers together. No answer at all is a partial one.
pub fn combine(shown: impl IntoIterator<Item = Shown>) -> Discovered {
    let (mut hashes, mut unhashed, mut absent) = (BTreeSet::new(), false, false);
    for one in shown {
        match one {
            Shown::Hash(hash) => {
                hashes.insert(hash);
            }
            Shown::NoHash => unhashed = true,
            Shown::Absent => absent = true,
            Shown::Silent => return Discovered::Partial,
        }
    }
    let only = hashes.len() == 1 && !unhashed && !absent;
    match (hashes.pop_first(), unhashed, absent) {
        (Some(hash), ..) if only => Discovered::Agreed(hash),
        (Some(hash), ..) => {
            hashes.insert(hash);
            Discovered::Divided(hashes)
        }
        (None, true, _) => Discovered::NoHash,
        (None, false, true) => Discovered::Absent,
        (None, false, false) => Discovered::Partial,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> Shown {
        Shown::Hash(Hash::shown(text).expect("not empty"))
    }

    #[test]
    fn servers_that_show_one_hash_agree() {
        assert!(matches!(combine([hash("a"), hash("a")]), Discovered::Agreed(_)));
    }

    #[test]
    fn every_hash_of_a_divided_answer_is_listed() {
        let Discovered::Divided(hashes) = combine([hash("a"), hash("b"), hash("a")]) else {
            panic!("divided");
        };
        assert_eq!(hashes.len(), 2);
    }

    #[test]
    fn a_server_that_has_not_learnt_of_the_resource_yet_divides() {
        for other in [Shown::Absent, Shown::NoHash] {
            assert!(matches!(combine([hash("a"), other]), Discovered::Divided(_)));
        }
    }

    #[test]
    fn one_silent_server_leaves_everything_open() {
        assert_eq!(combine([hash("a"), Shown::Silent]), Discovered::Partial);
        assert_eq!(combine([]), Discovered::Partial);
    }

    #[test]
    fn a_resource_that_nobody_has_is_absent() {
        assert_eq!(combine([Shown::Absent, Shown::Absent]), Discovered::Absent);
        assert_eq!(combine([Shown::NoHash, Shown::Absent]), Discovered::NoHash);
    }
}
