//! The codes of the lint. A code never changes its meaning and is never given twice: people write them into files.

use std::fmt;

/// What the lint can find. The hundreds say of what sort it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// A kind's table is dropped.
    K101,
    /// A history is dropped.
    K102,
    /// A column is dropped.
    K103,
    /// A column is made anew with another type.
    K201,
    /// A statement fails where rows do not suit it.
    K202,
    /// A column is renamed.
    K301,
    /// A column is read from another path.
    K302,
    /// The file promises what its steps do not keep.
    K303,
    /// A table is copied and cannot be written meanwhile.
    K401,
    /// A statement was edited so that it may copy or lock a table.
    K402,
    /// MySQL takes no further instant change of a table's columns.
    K403,
    /// A key repeats the beginning of another one.
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
    /// A query is narrowed by a bool alone.
    K602,
    /// An old name has done its work.
    K701,
    /// A finding is let pass without a reason.
    K901,
    /// Nothing is let pass.
    K902,
}

/// How much a finding matters to who reads reports. Either fails the lint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// A migration may lose or stop something.
    Error,
    /// Something is slower or larger than it need be.
    Warning,
}

impl Code {
    /// All codes in order.
    pub const ALL: [Self; 21] = [
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
