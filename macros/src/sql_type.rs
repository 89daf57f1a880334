//! The SQL types that `sql = "…"` accepts, and how each is written in the expansion. Knows no dialect and no Rust
//! type.

use proc_macro2::TokenStream;
use quote::quote;

/// Most characters of a VARCHAR in a utf8mb4 row of 65,535 bytes.
pub(crate) const VARCHAR_CHARS_MAX: u32 = 16_383;

/// Most characters of a column in a key: InnoDB's 3,072 bytes at four a character.
/// <https://dev.mysql.com/doc/refman/8.4/en/innodb-limits.html>
pub(crate) const KEY_CHARS_MAX: u32 = 768;

/// A column type, as the runtime's `ColumnType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SqlType {
    VarChar(u32),
    Int,
    BigInt,
    BigIntUnsigned,
    Boolean,
    Double,
    DateTime,
}

/// Why a text is not a column type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SqlTypeError {
    Unknown,
    VarCharLength,
}

impl SqlType {
    /// Reads a type in any case, with or without spaces around the length.
    pub(crate) fn parse(text: &str) -> Result<Self, SqlTypeError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.join(" ").eq_ignore_ascii_case("BIGINT UNSIGNED") {
            return Ok(Self::BigIntUnsigned);
        }
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        match text.to_ascii_uppercase().as_str() {
            "INT" => Ok(Self::Int),
            "BIGINT" => Ok(Self::BigInt),
            "BOOLEAN" => Ok(Self::Boolean),
            "DOUBLE" => Ok(Self::Double),
            "DATETIME(6)" => Ok(Self::DateTime),
            other => {
                let length = other
                    .strip_prefix("VARCHAR(")
                    .and_then(|rest| rest.strip_suffix(')'))
                    .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
                    .ok_or(SqlTypeError::Unknown)?;
                match length.parse() {
                    Ok(chars @ 1..=VARCHAR_CHARS_MAX) => Ok(Self::VarChar(chars)),
                    Ok(_) | Err(_) => Err(SqlTypeError::VarCharLength),
                }
            }
        }
    }

    /// Whether the engines can index a whole value.
    pub(crate) fn fits_key(self) -> bool {
        match self {
            Self::VarChar(chars) => chars <= KEY_CHARS_MAX,
            Self::Int | Self::BigInt | Self::BigIntUnsigned | Self::Boolean | Self::Double | Self::DateTime => true,
        }
    }

    /// The variant's tokens, after `ColumnType::`.
    pub(crate) fn variant(self) -> TokenStream {
        match self {
            Self::VarChar(chars) => quote!(Text { chars: #chars }),
            Self::Int => quote!(Int32),
            Self::BigInt => quote!(Int64),
            Self::BigIntUnsigned => quote!(UInt64),
            Self::Boolean => quote!(Bool),
            Self::Double => quote!(Double),
            Self::DateTime => quote!(Time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SqlType, SqlTypeError};

    #[test]
    fn case_and_spaces_do_not_matter() {
        assert_eq!(SqlType::parse(" varchar( 64 ) "), Ok(SqlType::VarChar(64)));
        assert_eq!(SqlType::parse("datetime(6)"), Ok(SqlType::DateTime));
        assert_eq!(SqlType::parse("bigint  unsigned "), Ok(SqlType::BigIntUnsigned));
    }

    #[test]
    fn a_length_that_no_row_can_hold_is_not_an_unknown_type() {
        for wrong in ["VARCHAR(0)", "VARCHAR(16384)", "VARCHAR(99999999999)", "VARCHAR()"] {
            assert_eq!(SqlType::parse(wrong), Err(SqlTypeError::VarCharLength), "{wrong}");
        }
        for wrong in [
            "",
            "BIGINTUNSIGNED",
            "TEXT",
            "VARCHAR",
            "VARCHAR(6",
            "VARCHAR(-1)",
            "INT; DROP TABLE model",
        ] {
            assert_eq!(SqlType::parse(wrong), Err(SqlTypeError::Unknown), "{wrong}");
        }
    }

    #[test]
    fn a_key_holds_768_characters() {
        assert!(SqlType::VarChar(768).fits_key());
        assert!(!SqlType::VarChar(769).fits_key());
    }
}
