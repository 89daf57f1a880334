//! Errors in columns: unknown paths, types that SQL cannot hold, keys that engines cannot build.

use std::ops::Range;

use super::{list, suggestion};
use crate::diag::Diagnostic;
use crate::dialect::Limit;
use crate::model::SqlType;
use crate::source::{Span, Text};

pub(crate) fn bad_path(text: &Text, range: Range<usize>) -> Diagnostic {
    Diagnostic::at(text.part(range), format!("bad path \"{}\"", text.value))
        .help("a path is JSON names joined by dots, as a manifest shows them: spec.trainingFramework")
}

pub(crate) fn unknown_part_of_object(text: &Text, range: Range<usize>, parts: &[&str]) -> Diagnostic {
    let name = &text.value[range.clone()];
    let mut diagnostic =
        Diagnostic::at(text.part(range.clone()), format!("an object has no `{name}`")).label("a path starts here");
    let parts = parts.iter().copied();
    diagnostic
        .help
        .extend(suggestion(name, parts, "a path starts with one of"));
    diagnostic
}

/// `meant`: the JSON name of the field whose proto name was written.
pub(crate) fn unknown_field(
    text: &Text,
    range: Range<usize>,
    parent: &str,
    candidates: &[&str],
    meant: Option<&str>,
) -> Diagnostic {
    let name = &text.value[range.clone()];
    let title = format!("`{parent}` has no field `{name}`");
    let mut diagnostic = Diagnostic::at(text.part(range.clone()), title).label("no such field");
    match meant {
        Some(json_name) => {
            let help = format!("paths use JSON names: \"{json_name}\"");
            diagnostic.help.push(help);
        }
        None => {
            let candidates = candidates.iter().copied();
            let help = suggestion(name, candidates, &format!("`{parent}` has"));
            diagnostic.help.extend(help);
        }
    }
    diagnostic
}

pub(crate) fn path_through(text: &Text, range: Range<usize>, what: &str) -> Diagnostic {
    let before = &text.value[..range.end];
    Diagnostic::at(text.part(range), format!("`{before}` is {what} and has no fields"))
        .label("the path cannot continue here")
}

pub(crate) fn not_a_column(path: &Text, what: &str, fields: &[&str]) -> Diagnostic {
    let last = path.value.rfind('.').map_or(0, |dot| dot + 1);
    let title = format!("`{}` is {what}, which no column can hold", path.value);
    let diagnostic = Diagnostic::at(path.part(last..path.value.len()), title);
    if fields.is_empty() {
        return diagnostic.help("the whole object is in the `json` column in any case");
    }
    diagnostic.help(format!("name one of its fields: {}", list(fields)))
}

pub(crate) fn unknown_sql_type(text: &Text) -> Diagnostic {
    const TYPES: [&str; 13] = [
        "VARCHAR(255)",
        "TEXT",
        "MEDIUMTEXT",
        "LONGTEXT",
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "BOOLEAN",
        "DOUBLE",
        "DECIMAL(20, 6)",
        "DATETIME(6)",
        "DATE",
    ];
    let title = format!("unknown column type \"{}\"", text.value);
    let mut diagnostic = Diagnostic::at(text.span, title);
    let nearest = super::nearest(&text.value, TYPES);
    if let Some(nearest) = nearest {
        diagnostic = diagnostic.help(format!("did you mean \"{nearest}\"?"));
    }
    diagnostic.help(format!("the types are {}", TYPES.join(", ")))
}

pub(crate) fn sql_type_does_not_fit(text: &Text, sql: SqlType, ty: &str) -> Diagnostic {
    let title = format!("a column of type {sql} cannot hold every {ty}");
    Diagnostic::at(text.span, title).label(format!("the field is of type {ty}"))
}

pub(crate) fn sql_on_composite(sql: &Text, column: &Text) -> Diagnostic {
    let title = format!("column \"{}\" has parts with types of their own", column.value);
    Diagnostic::at(sql.span, title).help("remove `sql`, or declare a column for one part of the field")
}

pub(crate) fn wide_without_printer(span: Span) -> Diagnostic {
    Diagnostic::at(span, "`wide` without `printer` shows nothing").help("give the heading: printer = \"State\"")
}

pub(crate) fn key_on_text(column: &str, sql: SqlType, limit: Limit, span: Span) -> Diagnostic {
    let title = format!("no key can be built on `{column}`: it is {sql}");
    let chars = limit.most / 4;
    Diagnostic::at(span, title).help(format!(
        "use a type with a length of at most {chars} characters: sql = \"VARCHAR({chars})\""
    ))
}

pub(crate) fn key_too_long(column: &str, bytes: usize, limit: Limit, span: Span) -> Diagnostic {
    let Limit { most, products } = limit;
    let title = format!("the key on `{column}` would be {bytes} bytes long");
    Diagnostic::at(span, title).help(format!(
        "a key has at most {most} bytes ({products}) beside the uid that ends it, four for each character of a VARCHAR"
    ))
}

pub(crate) fn key_name_too_long(name: &str, limit: Limit, span: Span) -> Diagnostic {
    let Limit { most, products } = limit;
    let title = format!("the key's name `{name}` is {} characters long", name.len());
    Diagnostic::at(span, title).help(format!(
        "a name has at most {most} characters ({products}); shorten the column's name"
    ))
}

pub(crate) fn row_too_long(kind: &Text, bytes: usize, limit: Limit) -> Diagnostic {
    let Limit { most, products } = limit;
    let title = format!("the columns of kind {} would take {bytes} bytes of a row", kind.value);
    Diagnostic::at(kind.span, title).help(format!(
        "a row has room for {most} ({products}), four bytes for each character of a VARCHAR; set shorter lengths \
         with `sql`, or `sql = \"TEXT\"` for columns without a key"
    ))
}
