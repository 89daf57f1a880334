//! SQL column types as a closed set: the defaults of every value type and the allow-list of `sql = "…"`. How a type
//! is spelled in a dialect is the dialect's business; the spelling here is the one a person writes in `crds.toml`.

use std::fmt;

/// The type of an extracted column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SqlType {
    /// `VARCHAR(n)`, n characters.
    VarChar(u16),
    /// `TEXT`, up to 64 KiB.
    Text,
    /// `MEDIUMTEXT`, up to 16 MiB.
    MediumText,
    /// `LONGTEXT`, up to 4 GiB.
    LongText,
    /// `TINYINT`.
    TinyInt,
    /// `SMALLINT`.
    SmallInt,
    /// `INT`.
    Int,
    /// `BIGINT`.
    BigInt,
    /// `BIGINT UNSIGNED`.
    BigIntUnsigned,
    /// `BOOLEAN`.
    Boolean,
    /// `DOUBLE`.
    Double,
    /// `DECIMAL(precision, scale)`.
    Decimal(u8, u8),
    /// `DATETIME(n)`, n digits of a second, UTC.
    DateTime(u8),
    /// `DATE`, UTC.
    Date,
}

impl SqlType {
    /// Reads a type as written in `sql = "…"`, in any case, with or without spaces around numbers.
    pub fn parse(text: &str) -> Option<Self> {
        let upper = text.trim().to_ascii_uppercase();
        let (word, arguments) = match upper.split_once('(') {
            Some((word, rest)) => (word.trim(), Some(rest.strip_suffix(')')?)),
            None => (upper.as_str(), None),
        };
        let word = word.split_whitespace().collect::<Vec<_>>().join(" ");
        let numbers: Vec<u16> = match arguments {
            Some(arguments) => arguments
                .split(',')
                .map(|number| number.trim().parse().ok())
                .collect::<Option<_>>()?,
            None => Vec::new(),
        };
        Self::from_parts(&word, &numbers)
    }

    fn from_parts(word: &str, numbers: &[u16]) -> Option<Self> {
        match (word, numbers) {
            // 16,383 characters of four bytes are the most that a MySQL row can hold.
            ("VARCHAR", [n @ 1..=16_383]) => Some(Self::VarChar(*n)),
            ("TEXT", []) => Some(Self::Text),
            ("MEDIUMTEXT", []) => Some(Self::MediumText),
            ("LONGTEXT", []) => Some(Self::LongText),
            ("TINYINT", []) => Some(Self::TinyInt),
            ("SMALLINT", []) => Some(Self::SmallInt),
            ("INT" | "INTEGER", []) => Some(Self::Int),
            ("BIGINT", []) => Some(Self::BigInt),
            ("BIGINT UNSIGNED", []) => Some(Self::BigIntUnsigned),
            ("BOOLEAN" | "BOOL", []) => Some(Self::Boolean),
            ("DOUBLE", []) => Some(Self::Double),
            ("DECIMAL", [precision @ 1..=65, scale @ 0..=30]) if scale <= precision => Some(Self::Decimal(
                u8::try_from(*precision).ok()?,
                u8::try_from(*scale).ok()?,
            )),
            ("DATETIME", []) => Some(Self::DateTime(0)),
            ("DATETIME", [digits @ 0..=6]) => Some(Self::DateTime(u8::try_from(*digits).ok()?)),
            ("DATE", []) => Some(Self::Date),
            _ => None,
        }
    }

    /// Bytes that a full value takes in a key of a utf8mb4 table, or `None` where the engines need a prefix length
    /// (TEXT and its relatives) and Kindex therefore makes no key.
    pub const fn key_bytes(self) -> Option<usize> {
        match self {
            Self::VarChar(chars) => Some(chars as usize * 4),
            Self::Text | Self::MediumText | Self::LongText => None,
            Self::TinyInt | Self::Boolean => Some(1),
            Self::SmallInt => Some(2),
            Self::Date => Some(3),
            Self::Int => Some(4),
            Self::BigInt | Self::BigIntUnsigned | Self::Double | Self::DateTime(_) => Some(8),
            Self::Decimal(precision, _) => Some(precision as usize / 2 + 2),
        }
    }

    /// Bytes that a value takes in the row itself; long texts lie elsewhere and leave a pointer.
    pub const fn row_bytes(self) -> usize {
        match self.key_bytes() {
            Some(bytes) => bytes + 2,
            None => 12,
        }
    }

    /// Whether a column of this type can become one of type `other` with every value as it is, on every engine.
    /// Whether a change of type is worth more than a new column is decided by this alone.
    pub const fn widens_to(self, other: Self) -> bool {
        match (self, other) {
            (Self::VarChar(from), Self::VarChar(to)) => from < to,
            // Below 64 KiB a TEXT of four-byte characters may be shorter than the VARCHAR was.
            (Self::VarChar(from), Self::Text) => from as usize * 4 <= 0xFFFF,
            (Self::VarChar(_), Self::MediumText | Self::LongText)
            | (Self::Text, Self::MediumText | Self::LongText)
            | (Self::MediumText, Self::LongText)
            | (Self::Boolean, Self::TinyInt | Self::SmallInt | Self::Int | Self::BigInt)
            | (Self::TinyInt, Self::SmallInt | Self::Int | Self::BigInt)
            | (Self::SmallInt, Self::Int | Self::BigInt)
            | (Self::Int, Self::BigInt) => true,
            (Self::DateTime(from), Self::DateTime(to)) => from < to,
            (Self::Decimal(precision, scale), Self::Decimal(wider, finer)) => {
                scale <= finer && precision - scale <= wider - finer && (precision < wider || scale < finer)
            }
            _ => false,
        }
    }
}

impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VarChar(chars) => write!(f, "VARCHAR({chars})"),
            Self::Text => f.write_str("TEXT"),
            Self::MediumText => f.write_str("MEDIUMTEXT"),
            Self::LongText => f.write_str("LONGTEXT"),
            Self::TinyInt => f.write_str("TINYINT"),
            Self::SmallInt => f.write_str("SMALLINT"),
            Self::Int => f.write_str("INT"),
            Self::BigInt => f.write_str("BIGINT"),
            Self::BigIntUnsigned => f.write_str("BIGINT UNSIGNED"),
            Self::Boolean => f.write_str("BOOLEAN"),
            Self::Double => f.write_str("DOUBLE"),
            Self::Decimal(precision, scale) => write!(f, "DECIMAL({precision}, {scale})"),
            Self::DateTime(0) => f.write_str("DATETIME"),
            Self::DateTime(digits) => write!(f, "DATETIME({digits})"),
            Self::Date => f.write_str("DATE"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SqlType;

    #[test]
    fn every_type_reads_back_what_it_prints() {
        for sql in [
            SqlType::VarChar(768),
            SqlType::Text,
            SqlType::MediumText,
            SqlType::LongText,
            SqlType::TinyInt,
            SqlType::SmallInt,
            SqlType::Int,
            SqlType::BigInt,
            SqlType::BigIntUnsigned,
            SqlType::Boolean,
            SqlType::Double,
            SqlType::Decimal(20, 6),
            SqlType::DateTime(0),
            SqlType::DateTime(6),
            SqlType::Date,
        ] {
            assert_eq!(SqlType::parse(&sql.to_string()), Some(sql));
        }
    }

    #[test]
    fn case_and_spaces_do_not_matter() {
        assert_eq!(SqlType::parse(" varchar( 64 ) "), Some(SqlType::VarChar(64)));
        assert_eq!(SqlType::parse("bigint  unsigned"), Some(SqlType::BigIntUnsigned));
        assert_eq!(SqlType::parse("decimal(10,2)"), Some(SqlType::Decimal(10, 2)));
    }

    #[test]
    fn a_type_widens_where_every_value_stays_as_it_is() {
        use SqlType::{BigInt, BigIntUnsigned, Boolean, Date, DateTime, Decimal, Int, LongText, Text, VarChar};
        for (from, to) in [
            (VarChar(255), VarChar(768)),
            (VarChar(255), Text),
            (Text, LongText),
            (Boolean, Int),
            (Int, BigInt),
            (DateTime(0), DateTime(6)),
            (Decimal(10, 2), Decimal(12, 4)),
        ] {
            assert!(from.widens_to(to), "{from} to {to}");
            assert!(!to.widens_to(from), "{to} to {from}");
        }
        for (from, to) in [
            (Int, Int),
            (BigInt, BigIntUnsigned),
            (Int, VarChar(20)),
            (Date, DateTime(6)),
            (Decimal(10, 2), Decimal(10, 4)),
        ] {
            assert!(!from.widens_to(to), "{from} to {to}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for wrong in [
            "",
            "VARCHAR",
            "VARCHAR(0)",
            "VARCHAR(20000)",
            "VARCHAR(64",
            "TEXT(5)",
            "JSON",
            "BLOB",
            "DATETIME(7)",
            "DECIMAL(2,4)",
            "INT; DROP TABLE model",
            "INT UNSIGNED",
        ] {
            assert_eq!(SqlType::parse(wrong), None, "{wrong}");
        }
    }
}
