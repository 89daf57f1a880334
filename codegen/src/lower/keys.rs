//! Secondary keys: those that every table has and those that columns ask for. Names and lengths are held against the
//! limits of the engines.

use crate::diag::{Collector, messages};
use crate::dialect;
use crate::model::{BaseColumn, Column, Key, TableName};
use crate::spec::ColumnSpec;

/// The keys of every main table, in table order.
pub(super) fn base(table: &TableName) -> Vec<Key> {
    let key = |suffix: &str, columns: &[BaseColumn]| Key {
        name: table.key(suffix).expect("a table's name leaves room for the base keys"),
        columns: columns.iter().map(|column| (*column).into()).collect(),
    };
    vec![
        key("namespace_name", &[BaseColumn::Namespace, BaseColumn::Name]),
        key("create_time", &[BaseColumn::CreateTime]),
        key("delete_time", &[BaseColumn::DeleteTime]),
    ]
}

/// The key `<table>_<suffix>` over `columns`, unless it breaks a limit, which is reported.
pub(super) fn extracted(
    table: &TableName,
    suffix: &str,
    columns: &[&Column],
    spec: &ColumnSpec,
    found: &mut Collector,
) -> Option<Key> {
    let span = spec.key.map_or(spec.name.span, |key| key.span);
    let limit = dialect::key_bytes_max();
    let mut bytes = 0;
    for column in columns {
        let Some(more) = column.sql.key_bytes() else {
            found.push(messages::key_on_text(column.name.as_str(), column.sql, limit, span));
            return None;
        };
        bytes += more;
    }
    if bytes > limit.most {
        let name = &spec.name.value;
        found.push(messages::key_too_long(name, bytes, limit, span));
        return None;
    }
    match table.key(suffix).and_then(dialect::fitting) {
        Ok(name) => {
            let columns = columns.iter().map(|column| column.name.clone()).collect();
            Some(Key { name, columns })
        }
        Err(_) => {
            let name = format!("{table}_{suffix}");
            found.push(messages::key_name_too_long(&name, dialect::name_chars_max(), span));
            None
        }
    }
}
