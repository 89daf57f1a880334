//! Pieces of statements, and lists in sizes that come again.

use kindex_model::kind::{Column, ColumnType};

use crate::dialect::{Spelling, marks};
use crate::driver::{Param, Statement};

/// Most names in one list: beyond it MariaDB would rewrite an `IN` list into a join.
pub(crate) const LIST_MAX: usize = 500;

/// `(?,?),(?,?)`
pub(crate) fn row_marks(columns: usize, rows: usize) -> String {
    marks(&format!("({})", marks("?", columns)), rows)
}

/// The parameters of [`exactly`](crate::dialect::ConditionSql::exactly).
pub(crate) fn exact(text: &str) -> [Param<'_>; 2] {
    let bytes = i64::try_from(text.len()).unwrap_or(i64::MAX);
    [Param::Text(text), Param::Int(bytes)]
}

/// The next size of a list that is kept prepared. The rest is filled by repeating the last name,
/// which changes nothing in an `IN` list.
pub(crate) fn padded(names: usize) -> usize {
    const SIZES: [usize; 5] = [1, 4, 16, 64, 200];
    SIZES.into_iter().find(|size| names <= *size).unwrap_or(LIST_MAX)
}

pub(crate) fn quoted(columns: &[&str]) -> String {
    let quoted: Vec<String> = columns.iter().map(|column| format!("[{column}]")).collect();
    quoted.join(", ")
}

/// Extracted columns in what is selected, after others: as `Cells::value` reads them.
pub(crate) fn cells<'a>(spelling: &'static dyn Spelling, columns: impl Iterator<Item = &'a Column>) -> String {
    let cells = columns.map(|column| match column.ty {
        ColumnType::Time => format!(", {}", spelling.time_text(column.name)),
        _ => format!(", [{}]", column.name),
    });
    cells.collect()
}

/// A statement whose like comes again.
pub(crate) fn kept(text: String) -> Statement {
    Statement::new(text, true)
}

/// A statement whose like may never come again.
pub(crate) fn once(text: String) -> Statement {
    Statement::new(text, false)
}

pub(crate) fn fixed(text: &'static str) -> Statement {
    Statement::new(text, true)
}

/// A list of a size that is kept prepared.
pub(crate) fn padded_list<'a>(names: &[&'a str]) -> Vec<Param<'a>> {
    let last = names.last().copied().unwrap_or_default();
    (0..padded(names.len()))
        .map(|index| Param::Text(names.get(index).copied().unwrap_or(last)))
        .collect()
}

/// As [`padded_list`], of pairs of namespace and name.
pub(crate) fn padded_pairs<'a>(names: &[(&'a str, &'a str)]) -> Vec<Param<'a>> {
    let last = names.last().copied().unwrap_or_default();
    (0..padded(names.len()))
        .map(|index| names.get(index).copied().unwrap_or(last))
        .flat_map(|(namespace, name)| [Param::Text(namespace), Param::Text(name)])
        .collect()
}
