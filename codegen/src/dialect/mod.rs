//! The tables of the storage contract, and the dialects of SQL that spell them. A dialect is a folder; all folders have
//! the same files, and each implements [`Dialect`]. Nothing outside of them spells SQL or asks which dialect it has.

mod table;

mod kind_tables;

mod bookkeeping;

mod step;

mod limits;

mod spelling;

mod words;

pub mod mysql;

pub mod sqlite;

pub(crate) use kind_tables::{TABLES_OF_A_KIND, history_columns, kind_tables, side_columns};
pub use kind_tables::{base_type, tables};
pub use limits::{Limit, Limits, fitting};
pub(crate) use limits::{key_bytes_max, name_chars_max, row_bytes_max};
pub use mysql::MySql;
pub use spelling::{Dialect, InitScript, Lock, RowFormat, RowFormatsMax};
pub use sqlite::Sqlite;
pub use step::{Filled, Form, Step, Verb};
pub use table::{Section, StorageType, Table, TableColumn, TableKey};

use crate::model::Model;

/// Every dialect, in the order of its files.
pub const ALL: [&dyn Dialect; 2] = [&MySql, &Sqlite];

/// The dialect from which crds.toml has its words for types. Its migrations have every step, so that the lint reads
/// there what a migration does.
pub const REFERENCE: &dyn Dialect = &MySql;

/// The products that keep the names of tables and keys in one list.
pub(crate) fn products_naming_keys_among_tables() -> Vec<&'static str> {
    let dialects = ALL.into_iter().filter(|dialect| dialect.names_keys_among_tables());
    dialects.map(|dialect| dialect.products()).collect()
}

/// The dialect with this word in the names of its files.
pub fn named(word: &str) -> Option<&'static dyn Dialect> {
    ALL.into_iter().find(|dialect| dialect.word() == word)
}

/// Everything a database of this model holds: the tables of each kind in the model's order, then Kindex's own.
pub fn sections(model: &Model) -> Vec<Section> {
    let kinds = model.kinds.iter().map(kind_tables::section);
    kinds.chain([bookkeeping::section()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of the migrations has their files by name, and the chain is checked against this order.
    #[test]
    fn dialects_are_in_the_order_of_their_words() {
        assert!(ALL.iter().map(|dialect| dialect.word()).is_sorted());
    }
}
