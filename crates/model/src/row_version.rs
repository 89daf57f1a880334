//! The version of a stored text: the cluster gave it, or SQL did, to an archived object. The one place that
//! knows how both share the numbers of a column.

use std::cmp::Ordering;
use std::fmt;

use crate::object::ResourceVersion;

/// A number in which this bit is the highest is a version of SQL. No cluster comes so far, and the column holds it: it
/// is below 2^63.
pub const DIRECT_BIT: u32 = 62;
/// From this bit on such a number counts the changes; below it stands the version of the cluster that they followed.
pub const COUNT_BIT: u32 = 44;

const COUNTS: u64 = 1 << (DIRECT_BIT - COUNT_BIT);

/// A version of a stored text.
///
/// An object that left the cluster at version 4711 has, changed in SQL, the versions `2^62 + 1 * 2^44 + 4711`,
/// `2^62 + 2 * 2^44 + 4711` and so on: each is larger than all before, none is one of the cluster, and each says which
/// of the cluster's it followed. They are ordered as their numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowVersion {
    /// The cluster gave it.
    Cluster(ResourceVersion),
    /// SQL gave it.
    Direct(DirectVersion),
}

/// A version that SQL gave: a change of an object after the last version that the cluster gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DirectVersion {
    /// Which of the changes it is; below [`COUNTS`].
    count: u64,
    /// The cluster's version, below `2^COUNT_BIT`.
    followed: ResourceVersion,
}

impl RowVersion {
    /// Reads a version from its number, where it may be one of SQL.
    pub const fn unpack(number: ResourceVersion) -> Self {
        if number.0 >> DIRECT_BIT != 1 {
            return Self::Cluster(number);
        }
        Self::Direct(DirectVersion {
            count: (number.0 >> COUNT_BIT) % COUNTS,
            followed: ResourceVersion(number.0 % (1 << COUNT_BIT)),
        })
    }

    /// Its number, as columns, texts and clients have it.
    pub const fn pack(self) -> ResourceVersion {
        match self {
            Self::Cluster(version) => version,
            Self::Direct(DirectVersion { count, followed }) => {
                ResourceVersion((1 << DIRECT_BIT) + (count << COUNT_BIT) + followed.0)
            }
        }
    }

    /// Whether SQL gave it.
    pub const fn is_direct(self) -> bool {
        matches!(self, Self::Direct(_))
    }

    /// The version of the cluster that it is, or followed: what the cluster's later versions are compared with.
    #[must_use]
    pub const fn of_cluster(self) -> ResourceVersion {
        match self {
            Self::Cluster(version) => version,
            Self::Direct(direct) => direct.followed,
        }
    }

    /// The next version that SQL gives. `None` after 262,143 of them, and for a cluster that has come to 2^44, which
    /// takes centuries at a thousand writes a second.
    pub const fn next_direct(self) -> Option<Self> {
        let (count, followed) = match self {
            Self::Cluster(version) => (1, version),
            Self::Direct(direct) => (direct.count + 1, direct.followed),
        };
        if count >= COUNTS || followed.0 >> COUNT_BIT != 0 {
            return None;
        }
        Some(Self::Direct(DirectVersion { count, followed }))
    }
}

impl Ord for RowVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        self.pack().cmp(&other.pack())
    }
}

impl PartialOrd for RowVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for RowVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pack().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cluster(number: u64) -> RowVersion {
        RowVersion::Cluster(ResourceVersion(number))
    }

    /// Numbers near everything that a bit decides, and all others.
    fn numbers() -> impl Strategy<Value = ResourceVersion> {
        let near = (prop::sample::select(vec![0, COUNT_BIT, 61, DIRECT_BIT, 63]), -2_i64..3);
        let near = near.prop_map(|(bit, more)| (1_u64 << bit).wrapping_add_signed(more));
        let direct = (0..1_u64 << DIRECT_BIT).prop_map(|below| (1 << DIRECT_BIT) + below);
        prop_oneof![near, direct, any::<u64>()].prop_map(ResourceVersion)
    }

    proptest! {
        #[test]
        fn a_number_comes_back_whoever_gave_it(number in numbers()) {
            prop_assert_eq!(RowVersion::unpack(number).pack(), number);
        }

        #[test]
        fn versions_are_ordered_as_their_numbers(one in numbers(), other in numbers()) {
            let versions = (RowVersion::unpack(one), RowVersion::unpack(other));
            prop_assert_eq!(versions.0.cmp(&versions.1), one.cmp(&other));
            prop_assert_eq!(versions.0 == versions.1, one == other);
        }

        /// What databases hold that exist.
        #[test]
        fn a_version_of_sql_has_the_number_that_it_always_had(followed in 0..1_u64 << 44, count in 1..1_u64 << 18) {
            let number = ResourceVersion((1 << 62) + count * (1 << 44) + followed);
            let version = RowVersion::unpack(number);
            prop_assert!(version.is_direct() && version.of_cluster() == ResourceVersion(followed));
            let next = (count + 1 < 1 << 18).then_some(ResourceVersion(number.0 + (1 << 44)));
            prop_assert_eq!(version.next_direct().map(RowVersion::pack), next);
            let first = ResourceVersion((1 << 62) + (1 << 44) + followed);
            prop_assert_eq!(cluster(followed).next_direct().map(RowVersion::pack), Some(first));
        }

        #[test]
        fn a_version_of_sql_is_larger_than_all_of_the_cluster_and_than_those_before(
            followed in 0..1_u64 << 44,
            other in 0..1_u64 << 62,
        ) {
            let mut last = cluster(followed);
            for _ in 0..100 {
                let next = last.next_direct().expect("there are more");
                prop_assert!(next > last && next > cluster(other) && next.is_direct());
                prop_assert_eq!(next.of_cluster(), ResourceVersion(followed));
                last = next;
            }
        }
    }

    #[test]
    fn versions_of_sql_come_to_an_end_and_never_turn_into_others() {
        let mut last = cluster((1 << 44) - 1);
        let mut count = 0;
        while let Some(next) = last.next_direct() {
            (last, count) = (next, count + 1);
        }
        assert_eq!(
            (count, last.pack()),
            (262_143, ResourceVersion(i64::MAX.unsigned_abs()))
        );
        assert_eq!(cluster(1 << 44).next_direct(), None);
    }

    #[test]
    fn a_version_of_another_program_is_none_of_sql() {
        let found = RowVersion::unpack(ResourceVersion(u64::MAX));
        assert_eq!((found, found.next_direct()), (cluster(u64::MAX), None));
    }
}
