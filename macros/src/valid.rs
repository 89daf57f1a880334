//! The attributes once validated: what the expansion may rely on. An expansion cannot see anything that was not
//! checked here. Knows the limits of the databases and the columns that every kind has; whether a field exists is
//! left to the compiler.

use std::collections::BTreeMap;
use std::iter;

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Ident, LitStr};

use crate::attr::{self, FieldPath, Written};
use crate::message;
use crate::sql_type::{KEY_CHARS_MAX, SqlType, SqlTypeError, VARCHAR_CHARS_MAX};

/// Longest identifier of MySQL and MariaDB.
const NAME_CHARS_MAX: usize = 64;

/// What follows the table's name in that of its longer side table.
const LONGEST_SUFFIX: &str = "_annotations";

/// The columns that every main table has.
const BASE_COLUMNS: [&str; 13] = [
    "uid",
    "group_ver",
    "namespace",
    "name",
    "res_version",
    "create_time",
    "update_time",
    "delete_time",
    "proto",
    "json",
    "evicted_time",
    "content_hash",
    "seq",
];

/// Whom the trait is implemented for, and its table.
pub(crate) struct Target {
    /// The root type.
    pub(crate) object: Ident,
    pub(crate) table: String,
}

/// One column, checked.
pub(crate) struct Column {
    pub(crate) name: LitStr,
    pub(crate) path: FieldPath,
    pub(crate) json: Vec<String>,
    /// `None`: the type that the field's own type asks for.
    pub(crate) ty: Option<DeclaredType>,
    pub(crate) key: Option<String>,
}

/// `sql = "…"`
pub(crate) struct DeclaredType {
    pub(crate) sql: SqlType,
    pub(crate) span: Span,
}

/// The root type and its table, or an error.
pub(crate) fn target(input: &DeriveInput, written: &Written) -> syn::Result<Target> {
    check_shape(input)?;
    let declared = match written.tables.as_slice() {
        [] => None,
        [table] => Some(table),
        [_, again, ..] => return Err(message::table_given_twice(again.span())),
    };
    let (object, default) = match &written.kube {
        Some(kube) => {
            let kind = kube.kind.as_ref().ok_or_else(|| message::missing_kind(kube.span))?;
            let object = kube.root.as_ref().unwrap_or(kind).parse()?;
            (object, Some((kind.value().to_ascii_lowercase(), kind.span())))
        }
        None => (input.ident.clone(), None),
    };
    let (table, span) = declared
        .map(|table| (table.value(), table.span()))
        .or(default)
        .ok_or_else(|| message::missing_table(input.ident.span()))?;
    check_name("table", &table, span, NAME_CHARS_MAX - LONGEST_SUFFIX.len())?;
    Ok(Target { object, table })
}

fn check_shape(input: &DeriveInput) -> syn::Result<()> {
    match &input.data {
        Data::Enum(data) => return Err(message::not_a_struct(data.enum_token.span, "an enum")),
        Data::Union(data) => return Err(message::not_a_struct(data.union_token.span, "a union")),
        Data::Struct(data) => match &data.fields {
            Fields::Named(_) => {}
            Fields::Unnamed(_) => {
                return Err(message::not_a_struct(input.ident.span(), "a tuple struct"));
            }
            Fields::Unit => return Err(message::not_a_struct(input.ident.span(), "a unit struct")),
        },
    }
    if input.generics.params.is_empty() {
        Ok(())
    } else {
        Err(message::generic(input.generics.params.span()))
    }
}

/// Checks every column; a column with an error is reported and left out.
pub(crate) fn columns(written: Vec<attr::Column>, table: &str, errors: &mut Vec<Error>) -> Vec<Column> {
    let mut first: BTreeMap<String, Span> = BTreeMap::new();
    let mut columns = Vec::new();
    for column in written {
        match check_column(column, table) {
            Ok(column) => {
                let name = column.name.value();
                match first.get(&name) {
                    Some(span) => {
                        errors.push(message::column_declared_twice(column.name.span(), &name));
                        errors.push(message::column_first_declared(*span, &name));
                    }
                    None => {
                        first.insert(name, column.name.span());
                        columns.push(column);
                    }
                }
            }
            Err(error) => errors.push(error),
        }
    }
    columns
}

fn check_column(column: attr::Column, table: &str) -> syn::Result<Column> {
    let name = column.name.ok_or_else(|| message::missing_column_name(column.span))?;
    let text = name.value();
    check_name("column", &text, name.span(), NAME_CHARS_MAX)?;
    if BASE_COLUMNS.contains(&text.as_str()) {
        return Err(message::base_column(name.span(), &text));
    }
    let path = column.path.ok_or_else(|| message::missing_path(name.span(), &text))?;
    let ty = column.sql.as_ref().map(check_type).transpose()?;
    let key = column
        .key
        .map(|span| check_key(table, &text, ty.as_ref(), span))
        .transpose()?;
    Ok(Column {
        json: column.json.unwrap_or_else(|| json_names(&path)),
        name,
        path,
        ty,
        key,
    })
}

fn check_name(what: &str, name: &str, span: Span, chars_max: usize) -> syn::Result<()> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(allowed) {
        return Err(message::malformed_name(span, what, name));
    }
    if name.len() > chars_max {
        return Err(message::name_too_long(span, what, name, chars_max));
    }
    Ok(())
}

fn check_type(sql: &LitStr) -> syn::Result<DeclaredType> {
    let span = sql.span();
    match SqlType::parse(&sql.value()) {
        Ok(sql) => Ok(DeclaredType { sql, span }),
        Err(SqlTypeError::Unknown) => Err(message::unknown_sql_type(span, &sql.value())),
        Err(SqlTypeError::VarCharLength) => Err(message::varchar_length(span, VARCHAR_CHARS_MAX)),
    }
}

fn check_key(table: &str, column: &str, ty: Option<&DeclaredType>, span: Span) -> syn::Result<String> {
    if ty.is_some_and(|ty| !ty.sql.fits_key()) {
        return Err(message::key_too_wide(span, column, KEY_CHARS_MAX));
    }
    let name = format!("{table}_{column}");
    if name.len() > NAME_CHARS_MAX {
        return Err(message::name_too_long(span, "key", &name, NAME_CHARS_MAX));
    }
    Ok(name)
}

fn json_names(path: &FieldPath) -> Vec<String> {
    iter::once(&path.first)
        .chain(&path.rest)
        .map(|segment| camel_case(&segment.field.unraw().to_string()))
        .collect()
}

/// serde's `rename_all = "camelCase"`.
fn camel_case(snake: &str) -> String {
    let mut camel = String::with_capacity(snake.len());
    let mut upper = false;
    for c in snake.chars() {
        if c == '_' {
            upper = !camel.is_empty();
        } else if upper {
            camel.push(c.to_ascii_uppercase());
            upper = false;
        } else {
            camel.push(c);
        }
    }
    camel
}

#[cfg(test)]
mod tests {
    use super::camel_case;

    #[test]
    fn camel_case_is_that_of_serde() {
        for (snake, camel) in [
            ("owner", "owner"),
            ("training_framework", "trainingFramework"),
            ("model_2d_size", "model2dSize"),
            ("_hidden", "hidden"),
            ("end_", "end"),
        ] {
            assert_eq!(camel_case(snake), camel);
        }
    }
}
