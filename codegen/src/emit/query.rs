//! Typed queries: one file for each kind, with a method for every column and a function for every named query. What
//! the methods do is `kindex_runtime::query`'s business.

mod named;

use askama::Template;

use super::rust;
use super::rust_types::{ident, placement::Placement};
use crate::artifact::HEADER;
use crate::model::{Column, ColumnName, ColumnType, Key, Kind, Model, Part, QualifiedName, TableName};

/// Methods that every query has. A column of such a name, or of a name that Rust keeps for itself, gets the method
/// `<column>_column`.
const TAKEN: [&str; 28] = [
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
    "order_by_create_time",
    "order_by_update_time",
    "res_version",
    "to_sql",
    "uid",
    "update_time",
];

/// The text of the file.
pub(super) fn file(model: &Model, kind: &Kind, placement: &Placement) -> String {
    let declaration = Declaration {
        header: HEADER,
        kind: kind.name.as_str(),
        table: &kind.table,
        columns: kind
            .columns
            .iter()
            .map(|column| query_column(kind, column, placement))
            .collect(),
        pairs: pairs(kind),
    };
    let mut text = declaration.render().expect("the template writes into a string");
    text.push('\n');
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
    columns: Vec<QueryColumn<'a>>,
    pairs: Vec<QueryPair<'a>>,
}

/// One entry of the macro's columns.
struct QueryColumn<'a> {
    doc: &'a str,
    path: String,
    key: Option<String>,
    method: String,
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
        name: &column.name,
        sort: sort(&column.ty, placement),
    }
}

/// The two halves of a ResourceIdentifier; lower puts the name after its namespace.
fn pairs(kind: &Kind) -> Vec<QueryPair<'_>> {
    let halves = kind.columns.windows(2).filter_map(|halves| {
        let [first, second] = halves else { return None };
        let group = first.group.as_ref()?;
        (group.part == Part::ResourceNamespace).then_some((group, first, second))
    });
    halves
        .map(|(group, first, second)| QueryPair {
            name: &group.name,
            method: method(&group.name),
            first: method(&first.name),
            second: method(&second.name),
        })
        .collect()
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
        ColumnType::Int64 | ColumnType::UInt64 => "i64".to_owned(),
        ColumnType::Bool => "bool".to_owned(),
        ColumnType::Double => "f64".to_owned(),
        ColumnType::Timestamp => "kindex_runtime::query::Timestamp".to_owned(),
    }
}
