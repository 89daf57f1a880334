//! The references that an API has released from a target, as it records them there: whoever misses one of them knows
//! that nobody has taken it off by hand. Knows nothing of where the record is.

use std::iter;

use crate::object::ResourceVersion;
use crate::reference_name::ReferenceName;

/// Releases that are recorded, each in about 90 bytes: they are a part of the object, and of each answer about it.
pub const RELEASES_MAX: usize = 32;

/// The latest releases, the last one first: `reference@version` each, separated by commas. The version is the one in
/// which the object was before its release. No text comes twice, since each write makes a new version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Releases(String);

impl Releases {
    /// Those of a record. What is no release is left out.
    pub fn read(record: &str) -> Self {
        Self::of(record.split(','))
    }

    /// These, the last one first. What is no release is left out, and the oldest ones of too many.
    pub fn of<'a>(releases: impl IntoIterator<Item = &'a str>) -> Self {
        let releases = releases.into_iter().filter(|release| parts(release).is_some());
        Self(releases.take(RELEASES_MAX).collect::<Vec<_>>().join(","))
    }

    /// The record after one more. Of each reference, the last release is enough: those before it prove no more.
    #[must_use]
    pub fn with(&self, reference: &str, version: ResourceVersion) -> Self {
        let last = format!("{reference}@{version}");
        let is_other = |release: &&str| parts(release).is_some_and(|(name, _)| name != reference);
        Self::of(iter::once(last.as_str()).chain(self.all().filter(is_other)))
    }

    /// Each of them, the last one first.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.0.split(',').filter(|release| !release.is_empty())
    }

    /// The record.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the reference was released from the object in this version, or in a later one.
    pub fn was_released(&self, name: &ReferenceName, before: ResourceVersion) -> bool {
        self.all().filter_map(parts).any(|(released, version)| {
            let is_since = version
                .parse::<u64>()
                .is_ok_and(|version| ResourceVersion(version) >= before);
            is_since && released == name.as_str()
        })
    }

    /// Whether the reference was released since the record was this one.
    pub fn was_released_since(&self, before: &Self, name: &ReferenceName) -> bool {
        let is_of_name = |release: &&str| parts(release).is_some_and(|(released, _)| released == name.as_str());
        self.all()
            .filter(is_of_name)
            .any(|release| before.all().all(|known| known != release))
    }
}

/// The reference and the version.
fn parts(release: &str) -> Option<(&str, &str)> {
    let parts = release.rsplit_once('@').filter(|_| !release.contains(','));
    parts.filter(|(reference, version)| !reference.is_empty() && !version.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(uid: &str) -> ReferenceName {
        ReferenceName::new("Cluster", "x.example.com", uid).expect("a name")
    }

    /// The record after these were released, each in the version of its number.
    fn record(uids: &[&str]) -> Releases {
        let releases = uids.iter().zip(1..);
        releases.fold(Releases::default(), |record, (uid, version)| {
            record.with(&name(uid).to_string(), ResourceVersion(version))
        })
    }

    /// As if the last release alone were recorded.
    #[test]
    fn of_several_releases_all_are_recorded() {
        let record = record(&["a", "b", "c"]);
        assert_eq!(
            record.as_str(),
            "cluster.x.example.com/c@3,cluster.x.example.com/b@2,cluster.x.example.com/a@1"
        );
        assert_eq!(Releases::read(record.as_str()), record);
        assert_eq!(Releases::of(record.all()), record);
        for (uid, version) in [("a", 1), ("b", 2), ("c", 3)] {
            let says = |before: u64| record.was_released(&name(uid), ResourceVersion(before));
            assert!(says(version - 1) && says(version), "{uid}");
            assert!(!says(version + 1), "{uid}: it was placed again after that");
        }
        assert!(!record.was_released(&name("d"), ResourceVersion(0)));
    }

    /// As if an object grew with each release, or as if one reference that comes and goes drove out the others.
    #[test]
    fn a_record_has_an_end() {
        let many: Vec<String> = (0..=RELEASES_MAX).map(|number| format!("u{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let full = record(&many);
        assert_eq!(full.all().count(), RELEASES_MAX);
        assert!(
            !full.was_released(&name("u0"), ResourceVersion(0)),
            "the first one goes"
        );
        assert!(full.was_released(&name("u1"), ResourceVersion(0)));
        let written_by_hand = format!("{},{}", name("u").as_str().to_owned() + "@99", full.as_str());
        assert_eq!(Releases::read(&written_by_hand).all().count(), RELEASES_MAX);
        let again = record(&["a", "b", "b", "a"]);
        assert_eq!(again.as_str(), "cluster.x.example.com/a@4,cluster.x.example.com/b@3");
    }

    #[test]
    fn what_was_recorded_before_is_no_release_since_then() {
        let (one, two) = (record(&["a"]), record(&["a", "b"]));
        assert!(two.was_released_since(&Releases::default(), &name("a")));
        assert!(!two.was_released_since(&one, &name("a")) && two.was_released_since(&one, &name("b")));
        assert!(!two.was_released_since(&two, &name("b")) && !two.was_released_since(&one, &name("c")));
        let again = record(&["a", "b", "a"]);
        assert!(
            again.was_released_since(&two, &name("a")),
            "it was placed again, and released"
        );
    }

    #[test]
    fn what_is_no_release_is_left_out() {
        for unclear in ["", "x", "x@", "@7", ",", "x,,@7"] {
            assert_eq!(Releases::read(unclear), Releases::default(), "{unclear}");
        }
        assert_eq!(Releases::of(["a@1,b@2", "c@3"]), Releases::read("c@3"));
        assert!(!Releases::read("cluster.x.example.com/a@y").was_released(&name("a"), ResourceVersion(0)));
    }
}
