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
    /// The numbers of a stream with so many of them.
    pub(crate) fn numbers(&self, count: u32) -> BTreeSet<u32> {
        match self {
            Self::All => (0..count).collect(),
            Self::Only(numbers) => numbers.clone(),
        }
    }
}

/// Numbers in as few ranges as say them, for positions. What cannot be read names none: all is read anew then.
pub(crate) mod ranges {
    use std::collections::BTreeSet;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::Partitions;

    pub(crate) fn serialize<S: Serializer>(numbers: &BTreeSet<u32>, serializer: S) -> Result<S::Ok, S::Error> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == *number => *last = *number,
                _ => ranges.push((*number, *number)),
            }
        }
        let text = |(first, last): &(u32, u32)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        serializer.serialize_str(&ranges.iter().map(text).collect::<Vec<_>>().join(","))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<u32>, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(match text.parse::<Partitions>() {
            Ok(Partitions::Only(numbers)) => numbers,
            Ok(Partitions::All) | Err(_) => BTreeSet::new(),
        })
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

    #[test]
    fn numbers_are_written_in_ranges_and_read_again() {
        let cases: [(&[u32], &str); 4] = [
            (&[], ""),
            (&[7], "7"),
            (&[0, 1, 2, 3, 7], "0-3,7"),
            (&[1, 3, 4], "1,3-4"),
        ];
        for (numbers, text) in cases {
            let numbers: BTreeSet<u32> = numbers.iter().copied().collect();
            let written = ranges::serialize(&numbers, serde_json::value::Serializer);
            let written = written.expect("a text");
            assert_eq!(written, text);
            assert_eq!(ranges::deserialize(written).ok(), Some(numbers));
        }
    }
}
