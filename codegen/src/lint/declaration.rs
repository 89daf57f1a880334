//! Rules about the declaration: keys that are redundant, missing or large, queries that find more than they return, old
//! names that are spent. Whether the declaration is right was decided before.

use super::Found;
use super::code::Code;
use crate::diag::messages;
use crate::dialect::row_bytes_max;
use crate::graph::{Edge, Graph};
use crate::lock::Structure;
use crate::model::{
    BaseColumn, Column, ColumnName, ColumnRef, Comparison, Holder, Key, Kind, Model, OnDelete, Query, SqlType,
};
use crate::source::Span;
use crate::spec::{ColumnSpec, KindSpec, Spec};

/// Keys of more bytes are called long: two names of 255 characters fit, and little else besides.
const KEY_BYTES_MANY: usize = 2048;

/// Everything to be said about the declaration.
pub(super) fn check(spec: &Spec, model: &Model, structure: &Structure, found: &mut Vec<Found>) {
    // Without errors, each entry became one kind and one query.
    for (spec, kind) in spec.kinds.iter().zip(&model.kinds) {
        keys(spec, kind, found);
        references(spec, kind, found);
        row(spec, kind, found);
        old_names(spec, kind, structure, found);
        versions(spec, kind, found);
    }
    implied_references(spec, model, found);
    for (spec, query) in spec.queries.iter().zip(&model.queries) {
        let kind = model.kind(&query.kind).expect("lower resolves the kind of a query");
        self::query(query, kind, spec.name.span, found);
    }
}

/// The entry that made a column.
fn entry<'s>(spec: &'s KindSpec, column: &Column) -> Option<&'s ColumnSpec> {
    let base = column.group.as_ref().map_or(&column.name, |group| &group.name);
    spec.columns.iter().find(|entry| base == entry.name.value.as_str())
}

/// The extracted columns of a key; `None` for a key that every table has.
fn extracted<'k>(kind: &'k Kind, key: &Key) -> Option<Vec<&'k Column>> {
    key.columns.iter().map(|name| kind.column(name)).collect()
}

fn keys(spec: &KindSpec, kind: &Kind, found: &mut Vec<Found>) {
    let of_columns: Vec<(&Key, Vec<&Column>)> = kind
        .keys
        .iter()
        .filter_map(|key| Some((key, extracted(kind, key)?)))
        .collect();
    for (at, (key, columns)) in of_columns.iter().enumerate() {
        let span = columns.first().and_then(|column| entry(spec, column));
        let span = span.map_or(spec.name.span, |entry| {
            entry.key.map_or(entry.name.span, |key| key.span)
        });
        let mut say = |code, diagnostic| found.push(Found { code, diagnostic });
        let others = of_columns.iter().enumerate().filter(|(other, _)| *other != at);
        let longer = others
            .map(|(other, (key, columns))| (other, *key, columns))
            .find(|(other, _, others)| {
                let repeats = starts_with(others, columns);
                repeats && (others.len() > columns.len() || *other < at)
            });
        if let Some((_, longer, _)) = longer {
            say(
                Code::K501,
                messages::key_redundant(key.name.as_str(), longer.name.as_str(), span),
            );
        }
        let bytes: usize = columns.iter().filter_map(|column| column.sql.key_bytes()).sum();
        if bytes > KEY_BYTES_MANY {
            let diagnostic = messages::key_long(key.name.as_str(), bytes, span);
            say(Code::K503, diagnostic);
        }
        if let [column] = columns.as_slice()
            && column.sql == SqlType::Boolean
        {
            say(
                Code::K505,
                messages::key_on_bool(key.name.as_str(), column.name.as_str(), span),
            );
        }
    }
}

/// Whether the values of `columns` are the first ones of `others`: by where they are read, not by name.
fn starts_with(others: &[&Column], columns: &[&Column]) -> bool {
    let mut pairs = others.iter().zip(columns);
    others.len() >= columns.len() && pairs.all(|(other, column)| other.path == column.path && other.sql == column.sql)
}

fn references(spec: &KindSpec, kind: &Kind, found: &mut Vec<Found>) {
    for reference in &kind.references {
        // Without a column, holders are found by what they have put on the named object.
        let Holder::Column(column) = &reference.holder else {
            continue;
        };
        let mut columns = kind.group_columns(column);
        if reference.on_delete == OnDelete::Orphan || columns.any(|column| kind.leads_a_key(&column.name)) {
            continue;
        }
        let span = place(spec, reference.name.as_str());
        let diagnostic = messages::reference_without_key(column.as_str(), reference.on_delete.as_str(), span);
        found.push(Found {
            code: Code::K502,
            diagnostic,
        });
    }
}

/// Where a reference is declared.
fn place(spec: &KindSpec, reference: &str) -> Span {
    let entry = spec.references.iter().find(|entry| entry.name.value == reference);
    entry.map_or(spec.name.span, |entry| entry.name.span)
}

fn implied_references(spec: &Spec, model: &Model, found: &mut Vec<Found>) {
    let graph = Graph::of(&model.kinds, &model.services);
    let place_of = |edge: &Edge| {
        let kind = spec.kinds.iter().find(|kind| kind.name.value == edge.kind);
        place(kind.expect("every kind has an entry"), &edge.reference)
    };
    for implied in graph.implied() {
        let edge = &graph.edges[implied.edge];
        let path = implied.path.iter().map(|edge| &graph.edges[*edge]);
        let path: Vec<(Span, &Edge)> = path.map(|edge| (place_of(edge), edge)).collect();
        found.push(Found {
            code: Code::K703,
            diagnostic: messages::reference_implied(&graph, (place_of(edge), edge), &path),
        });
    }
}

fn row(spec: &KindSpec, kind: &Kind, found: &mut Vec<Found>) {
    let bytes: usize = kind.columns.iter().map(|column| column.sql.row_bytes()).sum();
    let limit = row_bytes_max();
    // Less than a third is left.
    if bytes > limit.most / 3 * 2 {
        found.push(Found {
            code: Code::K504,
            diagnostic: messages::row_nearly_full(&spec.name, bytes, limit),
        });
    }
}

fn versions(spec: &KindSpec, kind: &Kind, found: &mut Vec<Found>) {
    let unserved = kind
        .versions
        .iter()
        .find(|version| version.name == kind.storage && !version.served);
    if let (Some(version), Some(storage)) = (unserved, &spec.storage) {
        let version = version.name.as_str();
        let diagnostic = messages::stored_unserved(&spec.name, version, storage.span);
        let code = Code::K702;
        found.push(Found { code, diagnostic });
    }
}

fn old_names(spec: &KindSpec, kind: &Kind, structure: &Structure, found: &mut Vec<Found>) {
    let Some(known) = structure.columns.get(&kind.table) else {
        return;
    };
    let is_known = |name: &ColumnName| known.contains_key(name);
    for entry in &spec.columns {
        let Some(was) = &entry.was else { continue };
        let own = kind.columns.iter().filter(|column| {
            let base = column.group.as_ref().map_or(&column.name, |group| &group.name);
            base == entry.name.value.as_str()
        });
        let mut spent = own.map(|column| is_known(&column.name) && !column.was.as_ref().is_some_and(is_known));
        if spent.all(|spent| spent) {
            found.push(Found {
                code: Code::K701,
                diagnostic: messages::old_name_spent(was, &entry.name.value),
            });
        }
    }
}

fn query(query: &Query, kind: &Kind, span: Span, found: &mut Vec<Found>) {
    let equal: Vec<&str> = query
        .conditions
        .iter()
        .filter(|condition| condition.comparison == Comparison::Equal)
        .map(|condition| condition.column.name())
        .collect();
    let is_bool = |name: &str| {
        let column = kind.columns.iter().find(|column| column.name == name);
        column.is_some_and(|column| column.sql == SqlType::Boolean)
    };
    let uid = BaseColumn::Uid.name();
    let leads = |name: &&&str| **name == uid || kind.keys.iter().any(|key| key.columns[0] == **name);
    let mut narrowing = equal.iter().filter(leads).peekable();
    if narrowing.peek().is_some() && narrowing.all(|name| is_bool(name)) {
        found.push(Found {
            code: Code::K602,
            diagnostic: messages::query_by_bool(query.name.as_str(), span),
        });
    }
    if query.limit.is_some() && !query.order_by.is_empty() && !is_served(query, kind, &equal) {
        found.push(Found {
            code: Code::K601,
            diagnostic: messages::query_sorts(query.name.as_str(), span),
        });
    }
}

/// Whether some key has the sort order right behind columns that are fixed, so that rows come sorted.
fn is_served(query: &Query, kind: &Kind, equal: &[&str]) -> bool {
    let order: Vec<&str> = query
        .order_by
        .iter()
        .map(|order| ColumnRef::name(&order.column))
        .collect();
    let one_way = query
        .order_by
        .windows(2)
        .all(|pair| pair[0].direction == pair[1].direction);
    let serves = |key: &Key| {
        let columns = key.columns.iter().map(ColumnName::as_str);
        let mut rest = columns.skip_while(|column| equal.contains(column));
        let fixed = key.columns.first().is_some_and(|first| equal.contains(&first.as_str()));
        fixed && order.iter().all(|column| rest.next() == Some(column))
    };
    let all_fixed = order.iter().all(|column| equal.contains(column));
    equal.contains(&BaseColumn::Uid.name()) || all_fixed || (one_way && kind.keys.iter().any(serves))
}
