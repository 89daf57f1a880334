//! How far an object is, in the words that services tell each other and that users see.

use serde::{Deserialize, Serialize};

/// How far an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// In the cluster, and nobody has deleted it.
    Live,
    /// Archived, and nobody has deleted it.
    Archived,
    /// Deleted, and not yet gone.
    Deleting,
    /// Gone.
    Deleted,
    /// Not known: of another service, or never stored.
    Unknown,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Live, Self::Archived, Self::Deleting, Self::Deleted, Self::Unknown];

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "Live",
            Self::Archived => "Archived",
            Self::Deleting => "Deleting",
            Self::Deleted => "Deleted",
            Self::Unknown => "Unknown",
        }
    }

    /// That of a word; `None` for any other one, such as a newer service may have.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_one_word_in_text_and_in_json() {
        let words = ["Live", "Archived", "Deleting", "Deleted", "Unknown"];
        assert_eq!(State::ALL.map(State::as_str), words);
        for state in State::ALL {
            let word = state.as_str();
            assert_eq!(State::parse(word), Some(state));
            assert_eq!(serde_json::to_value(state).expect("a text"), word);
        }
        for other in ["", "live", "Live ", "Leaving"] {
            assert_eq!(State::parse(other), None, "{other:?}");
        }
    }
}
