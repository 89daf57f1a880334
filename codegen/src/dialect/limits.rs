//! What engines have room for. A declaration has to fit all of them, so what counts is the least of each.

use super::table::StorageType;
use super::{ALL, base_type};
use crate::model::{BaseColumn, NameError};

/// What an engine has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Characters of the name of a table, a column or a key.
    pub name_chars: usize,
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a row, without long texts, which lie elsewhere.
    pub row_bytes: usize,
}

impl Limits {
    /// Of an engine with more room than any declaration asks for.
    pub const NONE: Self = Self {
        name_chars: usize::MAX,
        key_bytes: usize::MAX,
        row_bytes: usize::MAX,
    };

    const fn least(self, other: Self) -> Self {
        const fn of(a: usize, b: usize) -> usize {
            if a < b { a } else { b }
        }
        Self {
            name_chars: of(self.name_chars, other.name_chars),
            key_bytes: of(self.key_bytes, other.key_bytes),
            row_bytes: of(self.row_bytes, other.row_bytes),
        }
    }
}

/// Bytes of a row that the columns of every table may take.
const BASE_ROW_BYTES: usize = 5_535;

/// What every engine has room for.
fn all() -> Limits {
    let each = ALL.iter().map(|dialect| dialect.limits());
    each.fold(Limits::NONE, Limits::least)
}

/// Most characters of a SQL name.
pub fn name_chars_max() -> usize {
    all().name_chars
}

/// Most bytes of a declared key: the uid ends every key.
pub fn key_bytes_max() -> usize {
    let StorageType::Sql(uid) = base_type(BaseColumn::Uid) else {
        unreachable!("a uid is a text");
    };
    all().key_bytes - uid.key_bytes().expect("a uid has a length")
}

/// Most bytes that the extracted columns of a row may take.
pub fn row_bytes_max() -> usize {
    all().row_bytes - BASE_ROW_BYTES
}

/// A name that every engine has room for.
///
/// # Errors
/// [`NameError::TooLong`].
pub fn fitting<N: AsRef<str>>(name: N) -> Result<N, NameError> {
    let most = name_chars_max();
    if name.as_ref().len() > most {
        return Err(NameError::TooLong { most });
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ColumnName;

    #[test]
    fn a_name_fits_up_to_the_least_of_the_engines() {
        let of = |chars: usize| ColumnName::parse(&"a".repeat(chars)).and_then(fitting);
        assert!(of(64).is_ok());
        assert_eq!(of(65), Err(NameError::TooLong { most: 64 }));
    }

    #[test]
    fn the_least_counts() {
        let small = Limits {
            key_bytes: 100,
            ..Limits::NONE
        };
        let other = Limits {
            key_bytes: 200,
            row_bytes: 1_000,
            ..Limits::NONE
        };
        let both = Limits {
            key_bytes: 100,
            row_bytes: 1_000,
            ..Limits::NONE
        };
        assert_eq!((small.least(other), other.least(small)), (both, both));
    }

    #[test]
    fn uid_and_base_columns_have_their_room() {
        assert_eq!((key_bytes_max(), row_bytes_max()), (2_816, 60_000));
    }
}
