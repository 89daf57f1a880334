//! The reference page of the SQL schema, for the people who query it. Every table on it comes from the same model as
//! the schema itself.

use askama::Template;

use crate::artifact::{Artifacts, HEADER, RelativePath};
use crate::dialect::{self, StorageType, TableColumn};
use crate::model::{
    BaseColumn, Column, ColumnName, ColumnType, HistoryColumn, Holder, Kind, Model, Reference, ReferenceTarget,
    SideTable, TargetKind,
};

/// The page.
pub(super) fn emit(model: &Model) -> Artifacts {
    let kept = model.kinds.iter().filter(|kind| kind.history);
    let page = Page {
        header: HEADER,
        database: model.platform.database.as_str(),
        kinds: model.kinds.len(),
        tables: model.kinds.len() * dialect::TABLES_OF_A_KIND,
        extracted: model.kinds.iter().map(|kind| kind.columns.len()).sum(),
        base: BaseColumn::all().map(base_row).collect(),
        sides: SideTable::ALL.map(side_rows),
        dialects: dialect::ALL.map(|dialect| dialect.products()),
        histories: kept.clone().collect(),
        history_queries: kept.take(1).flat_map(history_queries).collect(),
        history: history_rows(),
        sections: model.kinds.iter().map(section).collect(),
        has_unsigned: model.kinds.iter().any(has_unsigned),
        relationships: model.kinds.iter().flat_map(relationships).collect(),
        examples: examples(model),
    };
    let mut text = page.render().expect("the template writes into a string");
    text.push('\n');
    Artifacts::from([(RelativePath::new("docs/reference/sql.md"), text)])
}

#[derive(Template)]
#[template(path = "sql_reference.md", escape = "none")]
struct Page<'a> {
    header: &'static str,
    database: &'a str,
    kinds: usize,
    tables: usize,
    extracted: usize,
    base: Vec<Row>,
    sides: [Side; 2],
    /// The products of each dialect.
    dialects: [&'static str; dialect::ALL.len()],
    /// The kinds that keep their versions.
    histories: Vec<&'a Kind>,
    /// How their versions are read as text, for the first of them.
    history_queries: Vec<String>,
    history: Vec<Row>,
    sections: Vec<KindSection<'a>>,
    /// Whether a kind has a column of unsigned 64-bit numbers.
    has_unsigned: bool,
    relationships: Vec<Relationship>,
    examples: Option<Examples<'a>>,
}

/// A column in every dialect.
struct Row {
    name: String,
    /// In the order of the dialects.
    types: Vec<String>,
    doc: String,
}

/// A side table.
struct Side {
    suffix: &'static str,
    rows: Vec<Row>,
}

/// What the page says about one kind.
struct KindSection<'a> {
    kind: &'a Kind,
    doc: String,
    columns: Vec<(Row, String, &'static str)>,
    keys: Vec<(String, String)>,
}

/// One object naming another through columns.
struct Relationship {
    from: String,
    to: String,
    columns: String,
    on_delete: &'static str,
}

fn has_unsigned(kind: &Kind) -> bool {
    let mut columns = kind.columns.iter();
    columns.any(|column| column.ty == ColumnType::UInt64)
}

fn base_row(column: BaseColumn) -> Row {
    let ty = dialect::base_type(column);
    Row {
        name: column.name().to_owned(),
        types: types(ty, column.required()),
        doc: column.doc().to_owned(),
    }
}

fn side_rows(side: SideTable) -> Side {
    let rows = dialect::side_columns(side).into_iter().map(|column| {
        let TableColumn { name, ty, required } = column;
        Row {
            name: name.to_string(),
            types: types(ty, required),
            doc: String::new(),
        }
    });
    Side {
        suffix: side.suffix(),
        rows: rows.collect(),
    }
}

fn history_rows() -> Vec<Row> {
    let columns = dialect::history_columns().into_iter().zip(HistoryColumn::ALL);
    let rows = columns.map(|(TableColumn { name, ty, required }, column)| Row {
        name: name.to_string(),
        types: types(ty, required),
        doc: column.doc().to_owned(),
    });
    rows.collect()
}

/// How the versions of a kind are read as text, by the engines that can.
fn history_queries(kind: &Kind) -> impl Iterator<Item = String> {
    let dialects = dialect::ALL.into_iter();
    dialects.filter_map(|dialect| dialect.history_query(kind.table.as_str()))
}

fn types(ty: StorageType, required: bool) -> Vec<String> {
    let spelled = dialect::ALL
        .into_iter()
        .map(|dialect| dialect.column_type(ty, required));
    spelled.collect()
}

fn section(kind: &Kind) -> KindSection<'_> {
    let keys = kind.keys.iter().map(|key| {
        let columns: Vec<&str> = key.columns.iter().map(ColumnName::as_str).collect();
        (key.name.to_string(), columns.join(", "))
    });
    KindSection {
        kind,
        doc: one_line(&kind.doc),
        columns: kind.columns.iter().map(|column| column_row(kind, column)).collect(),
        keys: keys.collect(),
    }
}

fn column_row(kind: &Kind, column: &Column) -> (Row, String, &'static str) {
    let row = Row {
        name: column.name.to_string(),
        types: types(StorageType::Sql(column.sql), false),
        doc: one_line(&column.doc).replace('|', "\\|"),
    };
    let key = match kind.leads_a_key(&column.name) {
        true => "first of a key",
        false if kind.keys.iter().any(|key| key.columns.contains(&column.name)) => "in a key",
        false => "",
    };
    (row, column.path.json_dotted(), key)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn relationships(kind: &Kind) -> Vec<Relationship> {
    let relationship = |reference: &Reference| Relationship {
        from: kind.name.to_string(),
        to: match &reference.target {
            ReferenceTarget::Kind(target) => target.to_string(),
            ReferenceTarget::KindIn {
                column, listed: false, ..
            } => format!("the kind in `{}.{column}`", kind.table),
            ReferenceTarget::KindIn { column, kinds, .. } => {
                let kinds: Vec<String> = kinds.iter().map(TargetKind::to_string).collect();
                format!("the kind in `{}.{column}`: {}", kind.table, kinds.join(", "))
            }
        },
        columns: columns(kind, reference),
        on_delete: if reference.owned {
            "owned"
        } else {
            reference.on_delete.as_str()
        },
    };
    kind.references.iter().map(relationship).collect()
}

/// The columns that hold the name; without any, where in `json` it is.
fn columns(kind: &Kind, reference: &Reference) -> String {
    let columns: Vec<&Column> = match &reference.holder {
        Holder::Column(group) => kind.group_columns(group).collect(),
        Holder::Path { path, .. } => kind.columns.iter().filter(|column| column.path == *path).collect(),
    };
    if columns.is_empty() {
        return format!(
            "none: `{}` in `{}.json`",
            kind.holder_path(reference).join("."),
            kind.table
        );
    }
    let names = columns.iter().map(|column| format!("`{}.{}`", kind.table, column.name));
    names.collect::<Vec<_>>().join(", ")
}

/// What the examples are about: the first column of enum names that has a key.
struct Examples<'a> {
    kind: &'a Kind,
    column: &'a Column,
    value: &'a str,
}

fn examples(model: &Model) -> Option<Examples<'_>> {
    let columns = model.kinds.iter().flat_map(|kind| {
        let keyed = |column: &&Column| kind.leads_a_key(&column.name);
        let columns = kind.columns.iter().filter(keyed);
        columns.map(move |column| (kind, column))
    });
    let mut examples = columns.filter_map(|(kind, column)| {
        let ColumnType::Enum(name) = &column.ty else {
            return None;
        };
        let value = model.enumeration(name).values.last()?;
        Some(Examples {
            kind,
            column,
            value: &value.name,
        })
    });
    examples.next()
}
