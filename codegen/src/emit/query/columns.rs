//! The columns of a kind as its query has them: the names of their methods and constants, and the types that they are
//! compared with.

use syn::Ident;

use crate::emit::rust_types::{ident, placement::Placement};
use crate::model::{Column, ColumnName, ColumnType, Kind, Part, QualifiedName};

/// Methods that every query has. A column of such a name, or of a name that Rust keeps for itself, gets the method
/// `<column>_column`.
const TAKEN: [&str; 30] = [
    "all",
    "allow_scan",
    "annotation",
    "create_time",
    "delete_time",
    "deleted",
    "evicted",
    "evicted_time",
    "fetch",
    "fetch_after",
    "fetch_one",
    "group_ver",
    "has_label",
    "label",
    "label_none_of",
    "label_one_of",
    "lacks_label",
    "limit",
    "live",
    "name",
    "namespace",
    "newest",
    "order_by",
    "res_version",
    "select",
    "stream",
    "to_sql",
    "uid",
    "update_time",
    "with",
];

/// What the kind's module names besides. A column of such a name has the constant `<COLUMN>_COLUMN`.
const TAKEN_CONSTANTS: [&str; 3] = ["columns", "keys", "kind"];

/// The columns of namespace and name of the ResourceIdentifier `group`.
pub(super) fn pair<'a>(kind: &'a Kind, group: &'a ColumnName) -> Option<(&'a ColumnName, &'a ColumnName)> {
    let of_part = |part| {
        let is_part = |column: &&Column| column.group.as_ref().is_some_and(|member| member.part == part);
        Some(&kind.group_columns(group).find(is_part)?.name)
    };
    Some((of_part(Part::ResourceNamespace)?, of_part(Part::ResourceName)?))
}

/// The method of a column, and the name of its type. A column that is called like another one's method gets out of its
/// way by the same rule, so that no two columns ever have one method.
pub(super) fn method(column: &ColumnName) -> String {
    let name = column.as_str();
    let root = name.trim_end_matches("_column");
    if TAKEN.contains(&root) || ident::field(root) != root {
        format!("{name}_column")
    } else {
        name.to_owned()
    }
}

/// The constant of a column, by the rule of its method.
pub(super) fn constant(column: &ColumnName) -> String {
    let name = column.as_str();
    let is_taken = TAKEN_CONSTANTS.contains(&name.trim_end_matches("_column"));
    let suffix = if is_taken { "_column" } else { "" };
    format!("{name}{suffix}").to_ascii_uppercase()
}

/// The Rust type that a column is compared with.
pub(super) fn operand(ty: &ColumnType, placement: &Placement) -> String {
    match ty {
        ColumnType::Text => "&str".to_owned(),
        ColumnType::Enum(name) => placement.rust_path(name.full()),
        ColumnType::Int32 => "i32".to_owned(),
        ColumnType::Int64 => "i64".to_owned(),
        ColumnType::UInt64 => "u64".to_owned(),
        ColumnType::Bool => "bool".to_owned(),
        ColumnType::Double => "f64".to_owned(),
        ColumnType::Timestamp => "kindex_query::Timestamp".to_owned(),
    }
}

/// Keywords become raw identifiers.
pub(super) fn identifier(name: &str) -> Ident {
    let name = if name.chars().any(char::is_lowercase) {
        ident::field(name)
    } else {
        name.to_owned()
    };
    syn::parse_str(&name).expect("SQL names are Rust identifiers")
}
