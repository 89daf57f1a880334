//! What a step costs: nothing is copied, and rows have no form that is remembered.
//! <https://sqlite.org/lang_altertable.html>

use crate::dialect::{RowFormat, RowFormatsMax, Verb};
use crate::model::SqlType;

/// There is no limit.
pub(super) const ROW_FORMATS_MAX: Option<RowFormatsMax> = None;

/// A name is in the schema alone.
pub(super) fn renaming_copies() -> Vec<&'static str> {
    Vec::new()
}

/// No statement is needed.
pub(super) fn changing_copies(_types: Option<(SqlType, SqlType)>) -> Vec<&'static str> {
    Vec::new()
}

/// A row that is shorter than its table has NULL in what is missing.
pub(super) fn row_format(_verb: Verb, _statement: &str) -> RowFormat {
    RowFormat::Kept
}
