//! Typed queries: one file for each kind, with a method for every column and a function for every named query. What
//! the methods do is `kindex_query`'s business.

mod example;
mod named;
mod reference;

use askama::Template;
use syn::Ident;

use super::rust;
use super::rust_types::{ident, placement::Placement};
use crate::artifact::HEADER;
use crate::model::{Column, ColumnName, ColumnType, Key, Kind, Model, Part, QualifiedName, TableName};

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

pub(super) use reference::is_emitted as has_references;

/// The text of the file.
pub(super) fn file(model: &Model, kind: &Kind, placement: &Placement) -> String {
    let declaration = Declaration {
        header: HEADER,
        kind: kind.name.as_str(),
        table: &kind.table,
        example: example::lines(kind),
        columns: kind
            .columns
            .iter()
            .map(|column| query_column(kind, column, placement))
            .collect(),
        pairs: pairs(kind),
    };
    let mut text = declaration.render().expect("the template writes into a string");
    text.push('\n');
    if let Some(references) = reference::module(kind, model) {
        text.push('\n');
        text.push_str(&rust::items(references));
    }
    let queries = model.queries.iter().filter(|query| query.kind == kind.name);
    for query in queries {
        text.push('\n');
        text.push_str(&rust::items(named::function(query, kind, placement)));
    }
    text
}

#[derive(Template)]
#[template(path = "query.rs.txt", escape = "none")]
struct Declaration<'a> {
    header: &'static str,
    kind: &'a str,
    table: &'a TableName,
    example: Vec<String>,
    columns: Vec<QueryColumn<'a>>,
    pairs: Vec<QueryPair<'a>>,
}

/// One entry of the macro's columns.
struct QueryColumn<'a> {
    doc: &'a str,
    path: String,
    key: Option<String>,
    method: String,
    constant: String,
    name: &'a ColumnName,
    sort: String,
}

/// One entry of the macro's pairs.
struct QueryPair<'a> {
    name: &'a ColumnName,
    method: String,
    first: String,
    second: String,
}

fn query_column<'a>(kind: &'a Kind, column: &'a Column, placement: &Placement) -> QueryColumn<'a> {
    let leads = |key: &&Key| key.columns.first() == Some(&column.name);
    QueryColumn {
        doc: &column.doc,
        path: column.path.json_dotted(),
        key: kind.keys.iter().find(leads).map(|key| key.name.to_string()),
        method: method(&column.name),
        constant: constant(&column.name),
        name: &column.name,
        sort: sort(&column.ty, placement),
    }
}

/// The two halves of each ResourceIdentifier.
fn pairs(kind: &Kind) -> Vec<QueryPair<'_>> {
    let groups = kind.columns.iter().filter_map(|column| column.group.as_ref());
    let of_resources = groups.filter(|group| group.part == Part::ResourceNamespace);
    of_resources
        .filter_map(|group| {
            let (first, second) = pair(kind, &group.name)?;
            Some(QueryPair {
                name: &group.name,
                method: method(&group.name),
                first: method(first),
                second: method(second),
            })
        })
        .collect()
}

/// The columns of namespace and name of the ResourceIdentifier `group`.
fn pair<'a>(kind: &'a Kind, group: &'a ColumnName) -> Option<(&'a ColumnName, &'a ColumnName)> {
    let of_part = |part| {
        let is_part = |column: &&Column| column.group.as_ref().is_some_and(|member| member.part == part);
        Some(&kind.group_columns(group).find(is_part)?.name)
    };
    Some((of_part(Part::ResourceNamespace)?, of_part(Part::ResourceName)?))
}

/// The method of a column, and the name of its type. A column that is called like another one's method gets out of its
/// way by the same rule, so that no two columns ever have one method.
fn method(column: &ColumnName) -> String {
    let name = column.as_str();
    let root = name.trim_end_matches("_column");
    if TAKEN.contains(&root) || ident::field(root) != root {
        format!("{name}_column")
    } else {
        name.to_owned()
    }
}

/// The constant of a column, by the rule of its method.
fn constant(column: &ColumnName) -> String {
    let name = column.as_str();
    let is_taken = TAKEN_CONSTANTS.contains(&name.trim_end_matches("_column"));
    let suffix = if is_taken { "_column" } else { "" };
    format!("{name}{suffix}").to_ascii_uppercase()
}

/// What the column holds, in the macro's words.
fn sort(ty: &ColumnType, placement: &Placement) -> String {
    match ty {
        ColumnType::Text => "text".to_owned(),
        ColumnType::Enum(name) => format!("names({})", placement.rust_path(name.full())),
        ColumnType::Int32
        | ColumnType::Int64
        | ColumnType::UInt64
        | ColumnType::Bool
        | ColumnType::Double
        | ColumnType::Timestamp => format!("value({})", operand(ty, placement)),
    }
}

/// The Rust type that a column is compared with.
fn operand(ty: &ColumnType, placement: &Placement) -> String {
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
fn identifier(name: &str) -> Ident {
    let name = if name.chars().any(char::is_lowercase) {
        ident::field(name)
    } else {
        name.to_owned()
    };
    syn::parse_str(&name).expect("SQL names are Rust identifiers")
}
