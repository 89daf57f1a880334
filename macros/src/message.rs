//! Every message that the derive shows to a person. Knows spans and words; decides nothing.

use std::fmt::Display;

use proc_macro2::Span;
use syn::Error;

const COLUMN_KEYS: &str = "`column`, `path`, `json`, `sql`, `key`";

pub(crate) fn unknown_key(span: Span, key: impl Display) -> Error {
    let text = format!("unknown key `{key}`: a column has {COLUMN_KEYS}, the struct has `table`");
    Error::new(span, text)
}

pub(crate) fn key_given_twice(span: Span, key: impl Display) -> Error {
    Error::new(span, format!("`{key}` is given twice in one attribute"))
}

pub(crate) fn table_beside_column_keys(span: Span) -> Error {
    let text = "`table` belongs to the struct: write it in an `#[indexed(table = \"…\")]` of its own";
    Error::new(span, text)
}

pub(crate) fn missing_column_name(span: Span) -> Error {
    Error::new(span, "this column has no name: add `column = \"…\"`")
}

pub(crate) fn missing_path(span: Span, column: &str) -> Error {
    let text = format!("column `{column}` has no field: add `path = spec.…` or `path = status?.…`");
    Error::new(span, text)
}

pub(crate) fn quoted_path(span: Span, text: &str) -> Error {
    let text = format!("a path is written without quotes, so that errors can point into it: {text}");
    Error::new(span, text)
}

pub(crate) fn malformed_name(span: Span, what: &str, name: &str) -> Error {
    let text = format!("`{name}` is not a {what} name: lower-case letters, digits and `_`, a letter first");
    Error::new(span, text)
}

pub(crate) fn name_too_long(span: Span, what: &str, name: &str, chars_max: usize) -> Error {
    let text = format!(
        "the {what} name `{name}` has {} characters, the databases take {chars_max}",
        name.len()
    );
    Error::new(span, text)
}

pub(crate) fn base_column(span: Span, column: &str) -> Error {
    let text = format!("every kind has a column `{column}` already: choose another name");
    Error::new(span, text)
}

pub(crate) fn column_declared_twice(span: Span, column: &str) -> Error {
    Error::new(span, format!("column `{column}` is declared twice"))
}

pub(crate) fn column_first_declared(span: Span, column: &str) -> Error {
    Error::new(span, format!("column `{column}` is first declared here"))
}

pub(crate) fn unknown_sql_type(span: Span, text: &str) -> Error {
    let text = format!(
        "unknown SQL type `{text}`: one of VARCHAR(n), INT, BIGINT, BIGINT UNSIGNED, BOOLEAN, DOUBLE, DATETIME(6)"
    );
    Error::new(span, text)
}

pub(crate) fn varchar_length(span: Span, chars_max: u32) -> Error {
    let text = format!("a VARCHAR holds 1 to {chars_max} characters");
    Error::new(span, text)
}

pub(crate) fn key_too_wide(span: Span, column: &str, chars_max: u32) -> Error {
    let text = format!("column `{column}` is too wide for a key: the databases index up to {chars_max} characters");
    Error::new(span, text)
}

pub(crate) fn missing_table(span: Span) -> Error {
    let text = "nothing names the kind: derive `IndexedObject` on the spec that carries `#[kube(kind = \"…\")]`, \
                or name the table of a root struct with `#[indexed(table = \"…\")]`";
    Error::new(span, text)
}

pub(crate) fn missing_kind(span: Span) -> Error {
    Error::new(span, "`#[kube(…)]` names no kind: add `kind = \"…\"`")
}

pub(crate) fn table_given_twice(span: Span) -> Error {
    Error::new(span, "the table's name is given twice")
}

pub(crate) fn not_a_struct(span: Span, what: &str) -> Error {
    let text = format!("`IndexedObject` is derived for a struct with named fields, not for {what}");
    Error::new(span, text)
}

pub(crate) fn on_a_field(span: Span) -> Error {
    let text = "columns are declared on the struct, with `path = …` from the root, not on a field";
    Error::new(span, text)
}

pub(crate) fn generic(span: Span) -> Error {
    let text = "a kind has one shape: `IndexedObject` is not derived for a generic type";
    Error::new(span, text)
}
