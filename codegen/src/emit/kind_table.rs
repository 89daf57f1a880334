//! The static table of a kind that the runtime reads: names, columns, keys, manifest and the functions that encode and
//! decode its objects. The template says how it looks; only lists are laid out here, by their length.

use askama::Template;

use super::rust::{laid_out, texts};
use super::rust_types::placement::Placement;
use super::{crd, references, rust};
use crate::artifact::HEADER;
use crate::model::{
    Column, ColumnName, ColumnType, Key, Kind, Model, Part, PrinterColumn, QualifiedName, Retention, Scope, SqlType,
    SubresourceStatus,
};

/// The text of the file. `root` is the way from its directory to the root of the tree.
pub(super) fn file(model: &Model, kind: &Kind, placement: &Placement, root: &str) -> String {
    let table = KindTable {
        header: HEADER,
        kind,
        scope: match kind.scope {
            Scope::Namespaced => "Namespaced",
            Scope::Cluster => "Cluster",
        },
        manifest: crd::path(kind).map_or_else(
            || "\"\"".to_owned(),
            |path| format!("include_str!({:?})", format!("{root}/{path}")),
        ),
        encode: function("encode", kind, placement),
        decode: function("decode", kind, placement),
        columns: kind.columns.iter().map(table_column).collect(),
        keys: kind.keys.iter().map(table_key).collect(),
        short_names: texts("    short_names: ", kind.short_names.iter().map(String::as_str)),
        printer_columns: &kind.printer_columns,
        retention: kind.retention.as_ref().map(table_retention),
        reference_types: references::types(kind),
    };
    let mut text = table.render().expect("the template writes into a string");
    text.push_str("\n\n");
    text.push_str(&rust::items(references::constant(model, kind)));
    text
}

#[derive(Template)]
#[template(path = "kind.rs.txt", escape = "none")]
struct KindTable<'a> {
    header: &'static str,
    kind: &'a Kind,
    scope: &'static str,
    manifest: String,
    encode: String,
    decode: String,
    columns: Vec<TableColumn<'a>>,
    keys: Vec<TableKey>,
    short_names: String,
    printer_columns: &'a [PrinterColumn],
    retention: Option<TableRetention>,
    /// What the references are made of.
    reference_types: &'static str,
}

/// One entry of `COLUMNS`.
struct TableColumn<'a> {
    name: &'a ColumnName,
    path: String,
    ty: String,
    own_namespace: bool,
}

/// One entry of `KEYS`.
struct TableKey {
    name: String,
    columns: String,
}

/// The rule of `retention`.
struct TableRetention {
    keep_days: String,
    keep_last_per_namespace: String,
    state_column: String,
    states: String,
    evicted: bool,
}

/// The runtime's function of that name for the kind's messages.
fn function(name: &str, kind: &Kind, placement: &Placement) -> String {
    let spec = placement.rust_path(kind.spec.full());
    let status = match &kind.status {
        SubresourceStatus::Present(status) => placement.rust_path(status.full()),
        SubresourceStatus::Absent => "kindex_model::wire::NoStatus".to_owned(),
    };
    laid_out(
        &format!("    {name}: "),
        &format!("kindex_model::wire::{name}_root::<"),
        &[spec, status],
        ">",
    )
}

fn table_column(column: &Column) -> TableColumn<'_> {
    let part = column.group.as_ref().map(|group| group.part);
    TableColumn {
        name: &column.name,
        path: texts("        path: ", column.path.json()),
        ty: column_type(column),
        own_namespace: part == Some(Part::ResourceNamespace),
    }
}

/// A variant of the runtime's type of columns.
pub(super) fn column_type(column: &Column) -> String {
    match column.ty {
        ColumnType::Text | ColumnType::Enum(_) => format!("Text {{ chars: {} }}", chars_max(column.sql)),
        ColumnType::Int32 => "Int32".to_owned(),
        ColumnType::Int64 => "Int64".to_owned(),
        ColumnType::UInt64 => "UInt64".to_owned(),
        ColumnType::Bool => "Bool".to_owned(),
        ColumnType::Double => "Double".to_owned(),
        ColumnType::Timestamp => "Time".to_owned(),
    }
}

/// Characters that always fit the text type. The TEXT types count bytes, of which a character takes at most four.
fn chars_max(sql: SqlType) -> u32 {
    match sql {
        SqlType::VarChar(chars) => chars.into(),
        SqlType::Text => 0xFFFF / 4,
        SqlType::MediumText => 0xFF_FFFF / 4,
        SqlType::LongText => 0xFFFF_FFFF / 4,
        SqlType::TinyInt
        | SqlType::SmallInt
        | SqlType::Int
        | SqlType::BigInt
        | SqlType::BigIntUnsigned
        | SqlType::Boolean
        | SqlType::Double
        | SqlType::Decimal(_, _)
        | SqlType::DateTime(_)
        | SqlType::Date => unreachable!("lower holds text columns to text types"),
    }
}

fn table_key(key: &Key) -> TableKey {
    TableKey {
        name: key.name.to_string(),
        columns: texts("        columns: ", key.columns.iter().map(ColumnName::as_str)),
    }
}

fn table_retention(rule: &Retention) -> TableRetention {
    let states = rule.states.as_ref();
    let values = states.into_iter().flat_map(|states| &states.values);
    TableRetention {
        keep_days: format!("{:?}", rule.keep_days),
        keep_last_per_namespace: format!("{:?}", rule.keep_last_per_namespace),
        state_column: format!("{:?}", states.map(|states| states.column.as_str())),
        states: texts("        states: ", values.map(String::as_str)),
        evicted: rule.evicted,
    }
}
