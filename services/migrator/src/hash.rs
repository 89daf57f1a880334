//! Storage version hashes, as discovery shows them. Opaque: compared and never taken apart.

use std::fmt;

use kindex_kube_api::storage_version;

/// The `storageVersionHash` of a resource, such as `8aSe+NMegvE=`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hash(String);

impl Hash {
    /// A hash as discovery shows it; `None` where it shows none, as for a storage version that is not served.
    pub fn shown(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The hash of a version, as the API servers of today compute it. Kubernetes may change that; only what is not in
    /// discovery is computed.
    pub fn of(group: &str, version: &str, kind: &str) -> Self {
        Self(storage_version::hash(group, version, kind))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// An entry of `status.persistedStorageVersionHashes`, or `status.currentStorageVersionHash`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Encoding {
    /// `"Unknown"`: any version that the resource ever had; as the current one, that the API servers disagree.
    Unknown,
    /// One version.
    Known(Hash),
}

/// How [`Encoding::Unknown`] is written.
const UNKNOWN: &str = "Unknown";

impl Encoding {
    /// Reads an entry of a status.
    pub fn parse(text: &str) -> Self {
        match Hash::shown(text) {
            Some(hash) if text != UNKNOWN => Self::Known(hash),
            Some(_) | None => Self::Unknown,
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => formatter.write_str(UNKNOWN),
            Self::Known(hash) => hash.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_written_as_it_was_read() {
        for text in ["Unknown", "8aSe+NMegvE="] {
            assert_eq!(Encoding::parse(text).to_string(), text);
        }
    }

    #[test]
    fn an_empty_hash_says_nothing_of_the_version() {
        assert_eq!(Hash::shown(""), None);
        assert_eq!(Encoding::parse(""), Encoding::Unknown);
    }
}
