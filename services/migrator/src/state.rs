//! The status of a `StorageState`: what the stored objects of a resource may be encoded in.

use jiff::Timestamp;

use crate::hash::{Encoding, Hash};

/// `status` of a `StorageState`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// `persistedStorageVersionHashes`: every version that a stored object may be encoded in, each once, the oldest
    /// first.
    pub persisted: Vec<Encoding>,
    /// `currentStorageVersionHash`: the version in which the API servers write.
    pub current: Encoding,
    /// `lastHeartbeatTime`: when the hash in discovery was last compared.
    pub heartbeat: Option<Timestamp>,
    /// The CustomResourceDefinition that was last compared, where the resource has one.
    pub definition: Option<Definition>,
}

/// One state of a CustomResourceDefinition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// `metadata.uid`: another one for a definition that was deleted and created again.
    pub uid: String,
    /// `metadata.generation`: grows with every change of the specification.
    pub generation: i64,
}

impl State {
    /// The state of a resource that was never looked at, or not for too long: its objects may have any encoding.
    pub fn unknown(current: Encoding, definition: Option<Definition>, now: Timestamp) -> Self {
        Self {
            persisted: vec![Encoding::Unknown],
            current,
            heartbeat: Some(now),
            definition,
        }
    }

    /// Adds an encoding that objects may have from now on.
    pub fn append(&mut self, encoding: Encoding) {
        if !self.persisted.contains(&encoding) {
            self.persisted.push(encoding);
        }
    }

    /// Whether all stored objects are in the current version.
    pub fn migrated(&self) -> bool {
        self.current != Encoding::Unknown && self.persisted == [self.current.clone()]
    }

    /// Whether a stored object may be in this version.
    pub fn may_hold(&self, hash: &Hash) -> bool {
        let holds = |encoding: &Encoding| match encoding {
            Encoding::Unknown => true,
            Encoding::Known(known) => known == hash,
        };
        self.persisted.iter().any(holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(text: &str) -> Encoding {
        Encoding::parse(text)
    }

    #[test]
    fn a_version_that_comes_back_is_listed_once() {
        let mut state = State::unknown(known("a"), None, Timestamp::UNIX_EPOCH);
        for version in ["a", "b", "a"] {
            state.append(known(version));
        }
        assert_eq!(state.persisted, [known("Unknown"), known("a"), known("b")]);
    }

    #[test]
    fn unknown_may_be_any_version() {
        let mut state = State::unknown(known("b"), None, Timestamp::UNIX_EPOCH);
        let a = Hash::shown("a").expect("not empty");
        assert!(state.may_hold(&a));
        assert!(!state.migrated());
        state.persisted = vec![known("b")];
        assert!(!state.may_hold(&a));
        assert!(state.migrated());
    }

    #[test]
    fn nothing_is_migrated_while_the_servers_disagree() {
        let state = State {
            persisted: vec![Encoding::Unknown],
            current: Encoding::Unknown,
            heartbeat: None,
            definition: None,
        };
        assert!(!state.migrated());
    }
}
