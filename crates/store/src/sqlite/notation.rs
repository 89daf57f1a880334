//! What SQLite's texts are called among those of the program.

use crate::dialect::{Dialect, Notation};

/// The SQL of SQLite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SqliteSpelling;

impl Notation for SqliteSpelling {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn word(&self) -> &'static str {
        "sqlite"
    }

    fn products(&self) -> &'static str {
        "SQLite"
    }

    /// Names in backquotes; parameters are `?` here, too.
    fn spell(&self, text: &str) -> String {
        text.replace(['[', ']'], "`")
    }

    /// Its whole numbers have 64 bits.
    fn power_of_two(&self, bit: u32) -> String {
        format!("(1 << {bit})")
    }
}
