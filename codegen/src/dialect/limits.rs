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
}

/// The most that every engine has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Of the engine with the least room.
    pub most: usize,
    /// The products with that engine.
    pub products: &'static str,
}

impl Limit {
    fn least(each: impl Iterator<Item = Self>) -> Self {
        each.min_by_key(|limit| limit.most).expect("there is a dialect")
    }

    const fn beside(self, taken: usize) -> Self {
        Self {
            most: self.most - taken,
            products: self.products,
        }
    }
}

/// Bytes of a row that the columns of every table may take.
const BASE_ROW_BYTES: usize = 5_535;

fn of_all(room: impl Fn(Limits) -> usize) -> Limit {
    let each = ALL.iter().map(|dialect| Limit {
        most: room(dialect.limits()),
        products: dialect.products(),
    });
    Limit::least(each)
}

/// Most characters of a SQL name.
pub(crate) fn name_chars_max() -> Limit {
    of_all(|limits| limits.name_chars)
}

/// Most bytes of a declared key: the uid ends every key.
pub(crate) fn key_bytes_max() -> Limit {
    let StorageType::Sql(uid) = base_type(BaseColumn::Uid) else {
        unreachable!("a uid is a text");
    };
    of_all(|limits| limits.key_bytes).beside(uid.key_bytes().expect("a uid has a length"))
}

/// Most bytes that the extracted columns of a row may take.
pub(crate) fn row_bytes_max() -> Limit {
    of_all(|limits| limits.row_bytes).beside(BASE_ROW_BYTES)
}

/// A name that every engine has room for.
///
/// # Errors
/// [`NameError::TooLong`].
pub fn fitting<N: AsRef<str>>(name: N) -> Result<N, NameError> {
    let Limit { most, products } = name_chars_max();
    if name.as_ref().len() > most {
        return Err(NameError::TooLong { most, products });
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
        let products = "MySQL, MariaDB";
        assert_eq!(of(65), Err(NameError::TooLong { most: 64, products }));
    }

    #[test]
    fn the_least_counts_and_says_whose_it_is() {
        let of = |most: usize, products: &'static str| Limit { most, products };
        let (roomy, narrow) = (of(64, "roomy"), of(63, "narrow"));
        assert_eq!(Limit::least([roomy, narrow].into_iter()), narrow);
        assert_eq!(Limit::least([narrow, roomy].into_iter()), narrow);
    }

    #[test]
    fn uid_and_base_columns_have_their_room() {
        assert_eq!((key_bytes_max().most, row_bytes_max().most), (2_816, 60_000));
    }
}
