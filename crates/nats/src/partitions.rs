//! Which part of a topic a subscriber reads. The server assigns each object to a partition by its uid. Pure.

use std::collections::BTreeSet;
use std::str::FromStr;

/// How many partitions a stream gets where nobody wants another number. It is fixed once the stream is there.
pub const PARTITIONS: u32 = 16;
/// The most.
pub const PARTITIONS_MAX: u32 = 1_024;

/// A set of partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Partitions {
    /// All of them, however many there are.
    #[default]
    All,
    /// These.
    Only(BTreeSet<u32>),
}

/// Why a text is no set of partitions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a list of partitions such as 0-3,7, each below {PARTITIONS_MAX}")]
pub struct PartitionsError(String);

impl FromStr for Partitions {
    type Err = PartitionsError;

    /// Numbers and ranges with commas: `0-3,7`.
    fn from_str(text: &str) -> Result<Self, PartitionsError> {
        let wrong = || PartitionsError(text.to_owned());
        let number = |text: &str| {
            text.trim()
                .parse::<u32>()
                .ok()
                .filter(|number| *number < PARTITIONS_MAX)
        };
        let mut numbers = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first = number(first).ok_or_else(wrong)?;
            let last = number(last).filter(|last| *last >= first).ok_or_else(wrong)?;
            numbers.extend(first..=last);
        }
        Ok(Self::Only(numbers))
    }
}

impl Partitions {
    /// The same in as few numbers as say it, for positions.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::Only(numbers) => numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_read_and_nothing_else() {
        let only = |numbers: &[u32]| Ok(Partitions::Only(numbers.iter().copied().collect()));
        assert_eq!("0-3,7".parse(), only(&[0, 1, 2, 3, 7]));
        assert_eq!(" 5 ".parse(), only(&[5]));
        for wrong in ["", "a", "3-1", "1,,2", "-1", "1024", "0-1024"] {
            let refused = wrong.parse::<Partitions>();
            assert_eq!(refused, Err(PartitionsError(wrong.to_owned())), "{wrong}");
        }
    }
}
