//! Whether a migration may go on: asked before the first write and after every page.

use crate::discovery::Discovered;
use crate::hash::Hash;
use crate::migration::Target;
use crate::state::Definition;

/// Why a migration ends before it is through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outdated {
    /// The definition is another one, created since.
    Recreated,
    /// The definition changed.
    Redefined,
    /// The API servers write in another version.
    Flipped {
        /// Which.
        to: Hash,
    },
    /// The API servers write in different versions.
    Divided,
}

/// Compares the target with what is there now. An answer of discovery that is not complete leaves a migration alone:
/// it says nothing, and the verification would find what it missed.
pub fn outdated(target: &Target, discovered: &Discovered, definition: Option<&Definition>) -> Option<Outdated> {
    if let (Some(then), Some(now)) = (&target.definition, definition) {
        if then.uid != now.uid {
            return Some(Outdated::Recreated);
        }
        if then.generation != now.generation {
            return Some(Outdated::Redefined);
        }
    }
    match discovered {
        Discovered::Agreed(hash) if target.hash.as_ref() != Some(hash) => Some(Outdated::Flipped { to: hash.clone() }),
        Discovered::Divided(_) => Some(Outdated::Divided),
        Discovered::Agreed(_) | Discovered::NoHash | Discovered::Absent | Discovered::Partial => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> Hash {
        Hash::shown(text).expect("not empty")
    }

    fn definition(uid: &str, generation: i64) -> Definition {
        Definition {
            uid: uid.to_owned(),
            generation,
        }
    }

    fn target() -> Target {
        Target {
            hash: Some(hash("b")),
            definition: Some(definition("u", 2)),
        }
    }

    #[test]
    fn a_change_of_the_definition_ends_a_migration() {
        let agreed = Discovered::Agreed(hash("b"));
        let now = |uid, generation| outdated(&target(), &agreed, Some(&definition(uid, generation)));
        assert_eq!(now("u", 2), None);
        assert_eq!(now("u", 3), Some(Outdated::Redefined));
        assert_eq!(now("v", 2), Some(Outdated::Recreated));
    }

    #[test]
    fn a_flip_ends_a_migration_and_silence_does_not() {
        let by = |discovered: &Discovered| outdated(&target(), discovered, None);
        assert_eq!(by(&Discovered::Agreed(hash("b"))), None);
        assert_eq!(
            by(&Discovered::Agreed(hash("a"))),
            Some(Outdated::Flipped { to: hash("a") })
        );
        assert_eq!(
            by(&Discovered::Divided([hash("a"), hash("b")].into())),
            Some(Outdated::Divided)
        );
        for silent in [Discovered::Partial, Discovered::NoHash, Discovered::Absent] {
            assert_eq!(by(&silent), None, "{silent:?}");
        }
    }
}
