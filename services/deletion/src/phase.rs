//! The phases of a deletion, as they are recorded on the object. They only go forward, and each may be skipped.

use std::fmt;
use std::str::FromStr;

/// How far the deletion of an object is. Once it is done, the object is gone, and nothing is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It waits until nothing refers to it. What cascades goes meanwhile.
    Deleting,
    /// It waits until what it owns is gone, and what it has outside is cleaned up.
    Draining,
    /// It releases the objects that it refers to.
    Finalizing,
}

/// A text that is no phase.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no phase of a deletion")]
pub struct NotAPhase(String);

impl Phase {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Deleting, Self::Draining, Self::Finalizing];

    /// As it is recorded.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deleting => "DELETING",
            Self::Draining => "DRAINING",
            Self::Finalizing => "FINALIZING",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Phase {
    type Err = NotAPhase;

    fn from_str(text: &str) -> Result<Self, NotAPhase> {
        let mut phases = Self::ALL.into_iter();
        phases
            .find(|phase| phase.as_str() == text)
            .ok_or_else(|| NotAPhase(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_in_order_and_read_as_they_are_written() {
        assert!(Phase::ALL.is_sorted());
        for phase in Phase::ALL {
            assert_eq!(phase.to_string().parse(), Ok(phase));
        }
        assert!("deleting".parse::<Phase>().is_err());
    }
}
