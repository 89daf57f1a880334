//! Extracted columns: path, type, SQL type, key and heading of every entry under `columns`. A composite message
//! becomes more than one column.

use std::collections::BTreeMap;

use super::messages::Messages;
use super::path::{self, Resolved};
use super::types::{self, Composite};
use super::{keys, renames, reserved};
use crate::diag::{Collector, messages as errors};
use crate::dialect;
use crate::model::{
    BaseColumn, Cardinality, Column, ColumnName, ColumnType, FieldType, Group, Key, Message, Part, Path, PrinterColumn,
    PrinterType, Segment, SqlType, TableName,
};
use crate::source::{Span, Text};
use crate::spec::{ColumnSpec, KindSpec};

/// What the entries under `columns` lead to.
#[derive(Default)]
pub(super) struct Columns {
    /// In table order.
    pub(super) columns: Vec<Column>,
    /// In the order of their columns.
    pub(super) keys: Vec<Key>,
    /// In the order of their columns.
    pub(super) printers: Vec<Printer>,
    /// Where each column is declared.
    taken: BTreeMap<ColumnName, Span>,
}

/// A column of `kubectl get`.
pub(super) struct Printer {
    /// Where the kind's own version has its value.
    pub(super) path: Path,
    /// As the kind's own version shows it.
    pub(super) column: PrinterColumn,
}

impl Printer {
    /// As a version shows it that has the value at `path`.
    pub(super) fn at(&self, path: &Path) -> PrinterColumn {
        PrinterColumn {
            json_path: json_path(path),
            ..self.column.clone()
        }
    }
}

fn json_path(path: &Path) -> String {
    format!(".{}", path.json_dotted())
}

/// Checks every column of `kind`. Without `root` (its absence was reported) only names are checked.
pub(super) fn lower(
    kind: &KindSpec,
    table: &TableName,
    root: Option<&Message>,
    messages: &Messages,
    found: &mut Collector,
) -> Columns {
    let mut into = Columns::default();
    for spec in &kind.columns {
        if let (Some(wide), None) = (spec.wide, &spec.printer) {
            found.push(errors::wide_without_printer(wide.span));
        }
        let base = ColumnName::parse(&spec.name.value).and_then(dialect::fitting);
        let base = base.map_err(|error| found.push(errors::bad_name(&spec.name, error)));
        let (Some(root), Some(path)) = (root, &spec.path) else {
            if let Ok(base) = base {
                into.take(&base, &spec.name, found);
            }
            continue;
        };
        let resolved = path::resolve(path, root, messages, found);
        if let (Ok(base), Some(resolved)) = (base, resolved) {
            let entry = Entry {
                spec,
                path,
                base,
                table,
            };
            into.add(&entry, resolved, messages, found);
        }
    }
    renames::check(kind, &into.columns, found);
    let bytes: usize = into.columns.iter().map(|column| column.sql.row_bytes()).sum();
    let limit = dialect::row_bytes_max();
    if bytes > limit.most {
        found.push(errors::row_too_long(&kind.name, bytes, limit));
    }
    into
}

/// An entry under `columns` and the table that it belongs to.
struct Entry<'a> {
    spec: &'a ColumnSpec,
    path: &'a Text,
    base: ColumnName,
    table: &'a TableName,
}

impl Columns {
    fn add(&mut self, entry: &Entry<'_>, resolved: Resolved<'_>, messages: &Messages, found: &mut Collector) {
        let Entry { spec, path, base, .. } = entry;
        let leaf = resolved.field;
        let many = match leaf.cardinality {
            Cardinality::Repeated => Some("a list"),
            Cardinality::Map(_) => Some("a map"),
            Cardinality::Single | Cardinality::Optional => None,
        };
        if let Some(what) = many {
            self.take(base, &spec.name, found);
            found.push(errors::not_a_column(path, what, &[]));
            return;
        }
        if let Some(ty) = types::column_type(&leaf.ty) {
            self.add_single(entry, resolved, ty, found);
            return;
        }
        let message = match &leaf.ty {
            FieldType::Message(name) => messages.get(name),
            FieldType::Scalar(_) | FieldType::Enum(_) | FieldType::WellKnown(_) | FieldType::Kubernetes(_) => None,
        };
        match message.and_then(|message| Some((message, types::composite(message)?))) {
            Some((message, composite)) => {
                self.add_composite(entry, &resolved, message, composite, found);
            }
            None => {
                self.take(base, &spec.name, found);
                let fields: Vec<&str> = message
                    .iter()
                    .flat_map(|message| &message.fields)
                    .map(|field| field.json_name.as_str())
                    .collect();
                found.push(errors::not_a_column(path, &types::word(&leaf.ty), &fields));
            }
        }
    }

    fn add_single(&mut self, entry: &Entry<'_>, resolved: Resolved<'_>, ty: ColumnType, found: &mut Collector) {
        let Entry { spec, base, table, .. } = entry;
        let is_free = self.take(base, &spec.name, found);
        let was = renames::old_name(spec, None, found);
        let Some(sql) = sql_type(spec, &ty, found).filter(|_| is_free) else {
            return;
        };
        let doc = doc(spec, &resolved.field.doc, &resolved.path);
        let column = Column {
            name: base.clone(),
            path: resolved.path,
            ty,
            sql,
            was,
            group: None,
            doc,
        };
        if wants_key(spec) {
            let key = keys::extracted(table, base.as_str(), &[&column], spec, found);
            self.keys.extend(key);
        }
        self.printers.extend(printer(spec, &column));
        self.columns.push(column);
    }

    fn add_composite(
        &mut self,
        entry: &Entry<'_>,
        resolved: &Resolved<'_>,
        message: &Message,
        composite: &Composite,
        found: &mut Collector,
    ) {
        let spec = entry.spec;
        if let Some(sql) = &spec.sql {
            found.push(errors::sql_on_composite(sql, &spec.name));
        }
        let mut parts = Vec::new();
        for (field, suffix, part) in composite.parts {
            let name = entry
                .base
                .with_suffix(suffix)
                .and_then(dialect::fitting)
                .map_err(|error| found.push(errors::bad_name(&spec.name, error)));
            let Ok(name) = name else {
                return;
            };
            if !self.take(&name, &spec.name, found) {
                return;
            }
            let field = message.fields.iter().find(|candidate| candidate.name == field);
            let field = field.expect("a composite has the fields it was found by");
            let mut path = resolved.path.clone();
            path.segments.push(Segment {
                json: field.json_name.clone(),
                proto: field.name.clone(),
            });
            parts.push(Column {
                name,
                doc: doc(spec, &resolved.field.doc, &path),
                path,
                ty: ColumnType::Text,
                sql: ColumnType::Text.default_sql(),
                was: renames::old_name(spec, Some(suffix), found),
                group: Some(Group {
                    name: entry.base.clone(),
                    part,
                }),
            });
        }
        if wants_key(spec) {
            self.add_composite_keys(entry, &parts, composite.one_key, found);
        }
        let is_shown = |column: &&Column| {
            let part = column.group.as_ref().map(|group| group.part);
            matches!(part, Some(Part::ResourceName | Part::UserName))
        };
        let shown = parts.iter().find(is_shown);
        self.printers.extend(shown.and_then(|column| printer(spec, column)));
        self.columns.extend(parts);
    }

    fn add_composite_keys(&mut self, entry: &Entry<'_>, parts: &[Column], one_key: bool, found: &mut Collector) {
        let Entry { spec, base, table, .. } = entry;
        if one_key {
            let columns: Vec<&Column> = parts.iter().collect();
            let key = keys::extracted(table, base.as_str(), &columns, spec, found);
            self.keys.extend(key);
            return;
        }
        for column in parts {
            let key = keys::extracted(table, column.name.as_str(), &[column], spec, found);
            self.keys.extend(key);
        }
    }

    /// Takes a column's name, unless it is taken or reserved, which is reported.
    fn take(&mut self, name: &ColumnName, text: &Text, found: &mut Collector) -> bool {
        if BaseColumn::of_name(name.as_str()).is_some() {
            found.push(errors::base_column(text, name.as_str()));
            return false;
        }
        if let Some(what) = reserved::column(name.as_str()) {
            found.push(errors::reserved_word(text, what));
            return false;
        }
        match self.taken.get(name) {
            Some(first) => {
                found.push(errors::duplicate_column(text, name.as_str(), *first));
                false
            }
            None => {
                self.taken.insert(name.clone(), text.span);
                true
            }
        }
    }
}

fn wants_key(spec: &ColumnSpec) -> bool {
    spec.key.is_some_and(|key| key.value)
}

fn sql_type(spec: &ColumnSpec, ty: &ColumnType, found: &mut Collector) -> Option<SqlType> {
    let Some(text) = &spec.sql else {
        return Some(ty.default_sql());
    };
    let Some(sql) = SqlType::parse(&text.value) else {
        found.push(errors::unknown_sql_type(text));
        return None;
    };
    if !ty.fits(sql) {
        found.push(errors::sql_type_does_not_fit(text, sql, ty.word()));
        return None;
    }
    Some(sql)
}

fn doc(spec: &ColumnSpec, comment: &str, path: &Path) -> String {
    match &spec.doc {
        Some(text) => text.value.trim().to_owned(),
        None if !comment.is_empty() => comment.to_owned(),
        None => format!("The value of `{}`.", path.json_dotted()),
    }
}

fn printer(spec: &ColumnSpec, column: &Column) -> Option<Printer> {
    let heading = spec.printer.as_ref()?;
    let ty = match column.ty {
        ColumnType::Text | ColumnType::Enum(_) => PrinterType::String,
        ColumnType::Int32 | ColumnType::Int64 | ColumnType::UInt64 => PrinterType::Integer,
        ColumnType::Bool => PrinterType::Boolean,
        ColumnType::Double => PrinterType::Number,
        ColumnType::Timestamp => PrinterType::Date,
    };
    let shown = PrinterColumn {
        name: heading.value.clone(),
        ty,
        format: String::new(),
        doc: column.doc.clone(),
        priority: i32::from(spec.wide.is_some_and(|wide| wide.value)),
        json_path: json_path(&column.path),
    };
    Some(Printer {
        path: column.path.clone(),
        column: shown,
    })
}
