//! What a database of MySQL has, as it tells it itself.

use crate::dialect::CatalogSql;
use crate::mysql::notation::MySqlSpelling;

impl CatalogSql for MySqlSpelling {
    fn has_table(&self) -> &'static str {
        "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?"
    }

    fn has_column(&self) -> &'static str {
        "SELECT 1 FROM information_schema.columns \
         WHERE table_schema = DATABASE() AND table_name = ? AND column_name = ?"
    }

    fn has_key(&self) -> &'static str {
        "SELECT 1 FROM information_schema.statistics \
         WHERE table_schema = DATABASE() AND table_name = ? AND index_name = ? LIMIT 1"
    }

    fn all_columns(&self) -> &'static str {
        "SELECT t.table_name, t.table_collation, c.column_name, CAST(c.column_type AS CHAR), \
         c.is_nullable = 'NO', c.column_default IS NOT NULL OR c.extra <> '', c.collation_name \
         FROM information_schema.tables AS t JOIN information_schema.columns AS c \
         ON c.table_schema = t.table_schema AND c.table_name = t.table_name \
         WHERE t.table_schema = DATABASE() AND t.table_type = 'BASE TABLE' \
         ORDER BY t.table_name, c.ordinal_position"
    }

    /// `bigint(20) unsigned` of MariaDB is MySQL's `bigint unsigned`; only of a flag the width means something.
    fn plain_type(&self, ty: &str) -> String {
        let ty = ty.to_lowercase();
        let is_whole = |word: &str| matches!(word, "tinyint" | "smallint" | "mediumint" | "int" | "bigint");
        match ty.split_once('(').zip(ty.split_once(')')) {
            Some(((word, _), (_, rest))) if is_whole(word) && ty != "tinyint(1)" => format!("{word}{rest}"),
            _ => ty,
        }
    }

    fn all_keys(&self) -> &'static str {
        "SELECT table_name, NULLIF(index_name, 'PRIMARY'), column_name, non_unique = 0 \
         FROM information_schema.statistics \
         WHERE table_schema = DATABASE() AND column_name IS NOT NULL \
         ORDER BY table_name, index_name, seq_in_index"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_widths_matter_only_for_a_flag() {
        for (ty, plain) in [
            ("bigint(20) unsigned", "bigint unsigned"),
            ("int(11)", "int"),
            ("int", "int"),
            ("tinyint(4)", "tinyint"),
            ("tinyint(1)", "tinyint(1)"),
            ("varchar(255)", "varchar(255)"),
            ("datetime(6)", "datetime(6)"),
            ("decimal(20,2)", "decimal(20,2)"),
            ("TEXT", "text"),
        ] {
            assert_eq!(MySqlSpelling.plain_type(ty), plain);
        }
    }
}
