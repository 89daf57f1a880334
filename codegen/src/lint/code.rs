//! The codes of the lint. A code never changes its meaning and is never given twice: people write them into files.

use std::fmt;

use serde::{Serialize, Serializer};

/// What the lint can find. The hundreds say of what sort it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// A kind's table is dropped.
    K101,
    /// A history is dropped.
    K102,
    /// A column is dropped.
    K103,
    /// A column is dropped and added again with another type.
    K201,
    /// A statement fails if a row violates it.
    K202,
    /// A column is renamed.
    K301,
    /// A column is read from another path.
    K302,
    /// A file is declared compatible, but its steps are not.
    K303,
    /// A table is copied, which blocks writes.
    K401,
    /// A statement was edited so that it may copy or lock a table.
    K402,
    /// MySQL takes no further instant change of a table's columns.
    K403,
    /// A key is a prefix of another one.
    K501,
    /// A reference that deletes or blocks has no key.
    K502,
    /// A key is nearly as long as the engines take.
    K503,
    /// A row is nearly full.
    K504,
    /// A key is over a bool.
    K505,
    /// A query with a limit sorts all that it finds.
    K601,
    /// A query is narrowed only by a bool.
    K602,
    /// `was` is no longer needed.
    K701,
    /// A stored version is not served.
    K702,
    /// A reference follows from others.
    K703,
    /// A finding is allowed without a reason.
    K901,
    /// An allowance without a finding.
    K902,
}

/// How severe a finding is. Either level fails the lint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// A migration may lose data or block programs.
    Error,
    /// Something is slower or larger than necessary.
    Warning,
}

impl Code {
    /// All codes in order.
    pub const ALL: [Self; 23] = [
        Self::K101,
        Self::K102,
        Self::K103,
        Self::K201,
        Self::K202,
        Self::K301,
        Self::K302,
        Self::K303,
        Self::K401,
        Self::K402,
        Self::K403,
        Self::K501,
        Self::K502,
        Self::K503,
        Self::K504,
        Self::K505,
        Self::K601,
        Self::K602,
        Self::K701,
        Self::K702,
        Self::K703,
        Self::K901,
        Self::K902,
    ];

    /// The code as people write it: `K101`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::K101 => "K101",
            Self::K102 => "K102",
            Self::K103 => "K103",
            Self::K201 => "K201",
            Self::K202 => "K202",
            Self::K301 => "K301",
            Self::K302 => "K302",
            Self::K303 => "K303",
            Self::K401 => "K401",
            Self::K402 => "K402",
            Self::K403 => "K403",
            Self::K501 => "K501",
            Self::K502 => "K502",
            Self::K503 => "K503",
            Self::K504 => "K504",
            Self::K505 => "K505",
            Self::K601 => "K601",
            Self::K602 => "K602",
            Self::K701 => "K701",
            Self::K702 => "K702",
            Self::K703 => "K703",
            Self::K901 => "K901",
            Self::K902 => "K902",
        }
    }

    /// The code of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == name)
    }

    /// How much it matters.
    pub const fn level(self) -> Level {
        match self {
            Self::K101
            | Self::K102
            | Self::K103
            | Self::K201
            | Self::K202
            | Self::K301
            | Self::K302
            | Self::K303
            | Self::K401
            | Self::K402
            | Self::K403 => Level::Error,
            Self::K501
            | Self::K502
            | Self::K503
            | Self::K504
            | Self::K505
            | Self::K601
            | Self::K602
            | Self::K701
            | Self::K702
            | Self::K703
            | Self::K901
            | Self::K902 => Level::Warning,
        }
    }

    /// Where it is explained, below the root of the project.
    pub fn page(self) -> String {
        format!("docs/src/reference/lint/{}.md", self.as_str().to_lowercase())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Level {
    /// `error` or `warning`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}
