//! What a database of SQLite has, as it tells it itself.

use crate::dialect::CatalogSql;
use crate::sqlite::notation::SqliteSpelling;

impl CatalogSql for SqliteSpelling {
    fn has_table(&self) -> &'static str {
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    }

    fn has_column(&self) -> &'static str {
        "SELECT 1 FROM pragma_table_info(?) WHERE name = ?"
    }

    fn has_key(&self) -> &'static str {
        "SELECT 1 FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND name = ?"
    }

    fn all_columns(&self) -> &'static str {
        "SELECT m.name, NULL, c.name, c.type, c.\"notnull\", c.dflt_value IS NOT NULL OR c.pk > 0, NULL \
         FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c \
         WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY m.name, c.cid"
    }

    fn plain_type(&self, ty: &str) -> String {
        ty.to_lowercase()
    }

    fn all_keys(&self) -> &'static str {
        "SELECT m.name, NULL, c.name, 1, c.pk AS place FROM sqlite_master AS m \
         JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table' AND c.pk > 0 \
         UNION ALL SELECT m.name, i.name, c.name, i.\"unique\", c.seqno AS place FROM sqlite_master AS m \
         JOIN pragma_index_list(m.name) AS i JOIN pragma_index_info(i.name) AS c \
         WHERE m.type = 'table' AND i.origin = 'c' AND c.name IS NOT NULL ORDER BY 1, 2, place"
    }
}
