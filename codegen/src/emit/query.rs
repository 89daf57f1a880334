//! Typed queries: one file for each kind, with a method for every column and a function for every named query. What
//! the methods do is `kindex_query`'s business.

mod columns;

mod example;
mod named;
mod reference;

use askama::Template;

use super::rust;
use super::rust_types::placement::Placement;
use crate::artifact::HEADER;
use crate::model::{Column, ColumnName, ColumnType, Key, Kind, Model, Part, QualifiedName, TableName};

use columns::{constant, method, operand, pair};

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
