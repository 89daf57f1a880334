//! Tables whose keys people choose, and lists of tables.

use toml::de::DeValue;

use super::table::{Reader, Table};
use crate::diag::messages;
use crate::grammar::Section;
use crate::source::Text;

/// Opens every entry of the table under `key` as `section`. A plain string is taken for the value of `shorthand`.
pub(super) fn each(
    reader: &mut Reader<'_>,
    parent: &Table<'_, '_>,
    key: &str,
    section: &'static Section,
    shorthand: Option<&'static str>,
    mut read: impl FnMut(&mut Reader<'_>, Text, Table<'_, '_>),
) {
    let Some(entries) = parent.table(key) else {
        return;
    };
    for (name, value) in reader.entries(entries) {
        match (value.get_ref(), shorthand) {
            (DeValue::Table(table), _) => {
                let table = reader.open(section, name.span, table);
                read(reader, name, table);
            }
            (DeValue::String(_), Some(shorthand)) => {
                let table = Table::of_one(shorthand, value);
                read(reader, name, table);
            }
            (other, _) => {
                let wanted = match shorthand {
                    Some(_) => "a string or a table",
                    None => "a table",
                };
                let span = reader.span(value);
                let error = messages::wrong_sort(&name.value, wanted, other.type_str(), span);
                reader.found.push(error);
            }
        }
    }
}

/// Opens every item of the list under `key` as `section`. A plain string is taken for the value of `shorthand`.
pub(super) fn listed<'t, 'i>(
    reader: &mut Reader<'_>,
    parent: &Table<'t, 'i>,
    key: &str,
    section: &'static Section,
    shorthand: &'static str,
) -> Vec<Table<'t, 'i>> {
    let items = parent.value(key).and_then(|value| value.get_ref().as_array());
    let items = items.into_iter().flat_map(|items| items.iter());
    let tables = items.map(|item| match item.get_ref() {
        DeValue::Table(table) => {
            let span = reader.span(item);
            reader.open(section, span, table)
        }
        _ => Table::of_one(shorthand, item),
    });
    tables.collect()
}
