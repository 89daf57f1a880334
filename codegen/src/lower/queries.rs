//! Named queries: columns, types and keys behind their texts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::messages::Enums;
use super::query_text::{self, ConditionText, OperandText, Unexpected};
use crate::diag::{Collector, messages};
use crate::dialect;
use crate::model::{
    BaseColumn, ColumnName, ColumnRef, ColumnType, Comparison, Condition, Kind, KindName, Literal, Operand, Order,
    Query, QueryName,
};
use crate::source::Text;
use crate::spec::QuerySpec;

/// Checks every query. A query of a kind that could not be lowered is passed over: its kind was reported.
pub(super) fn lower(
    specs: &[QuerySpec],
    kinds: &[Kind],
    declared: &BTreeSet<KindName>,
    enums: &Enums,
    found: &mut Collector,
) -> Vec<Query> {
    specs
        .iter()
        .filter_map(|spec| {
            let kind = kind(spec.kind.as_ref()?, kinds, declared, found)?;
            query(spec, kind, enums, found)
        })
        .collect()
}

fn kind<'k>(text: &Text, kinds: &'k [Kind], declared: &BTreeSet<KindName>, found: &mut Collector) -> Option<&'k Kind> {
    if !declared.iter().any(|name| name.as_str() == text.value) {
        let candidates = declared.iter().map(KindName::as_str);
        found.push(messages::unknown_kind(text, candidates));
    }
    kinds.iter().find(|kind| kind.name == *text.value)
}

fn query(spec: &QuerySpec, kind: &Kind, enums: &Enums, found: &mut Collector) -> Option<Query> {
    let name = QueryName::parse(&spec.name.value).map_err(|error| found.push(messages::bad_name(&spec.name, error)));
    let conditions = conditions(spec.condition.as_ref()?, kind, enums, found);
    let order_by = match &spec.order_by {
        Some(text) => orders(text, kind, found),
        None => Some(Vec::new()),
    };
    let doc = match &spec.doc {
        Some(doc) => doc.value.trim().to_owned(),
        None => {
            let condition = spec.condition.as_ref()?.value.trim();
            format!("Live rows of {} where {condition}.", kind.name)
        }
    };
    Some(Query {
        name: name.ok()?,
        doc,
        kind: kind.name.clone(),
        conditions: conditions?,
        order_by: order_by?,
        limit: spec.limit.map(|limit| limit.value),
    })
}

fn conditions(text: &Text, kind: &Kind, enums: &Enums, found: &mut Collector) -> Option<Vec<Condition>> {
    let written = read(text, query_text::conditions, found)?;
    let mut parameters = BTreeMap::new();
    let conditions: Vec<Option<Condition>> = written
        .iter()
        .map(|written| {
            let (column, ty) = column(text, written.column.clone(), kind, found)?;
            let operand = operand(text, written, &ty, &mut parameters, enums, found)?;
            Some(Condition {
                column,
                comparison: written.comparison,
                operand,
            })
        })
        .collect();
    let conditions: Vec<Condition> = conditions.into_iter().collect::<Option<_>>()?;
    if !conditions.iter().any(|condition| narrows(condition, kind)) {
        found.push(messages::query_scans(text, &leading_columns(kind)));
        return None;
    }
    Some(conditions)
}

fn read<T>(text: &Text, reader: impl FnOnce(&str) -> Result<T, Unexpected>, found: &mut Collector) -> Option<T> {
    reader(&text.value)
        .map_err(|Unexpected { range, wanted }| {
            found.push(messages::query_syntax(text, range, wanted));
        })
        .ok()
}

/// Parameters seen so far with the types of the columns they are compared with.
type Parameters = BTreeMap<String, ColumnType>;

fn operand(
    text: &Text,
    written: &ConditionText,
    ty: &ColumnType,
    parameters: &mut Parameters,
    enums: &Enums,
    found: &mut Collector,
) -> Option<Operand> {
    let range = written.range.clone();
    match &written.operand {
        OperandText::Parameter(name) => {
            let first = parameters.entry(name.clone()).or_insert_with(|| ty.clone());
            if first != ty {
                let words = (first.word(), ty.word());
                found.push(messages::parameter_of_two_types(text, range, words));
                return None;
            }
            let name = ColumnName::parse(name).and_then(dialect::fitting);
            let name = name.map_err(|error| found.push(messages::bad_name(text, error)));
            name.ok().map(Operand::Parameter)
        }
        OperandText::Literal(literal) if !fits(literal, ty) => {
            found.push(messages::literal_of_wrong_type(text, range, ty.word()));
            None
        }
        OperandText::Literal(literal) => {
            if let (Literal::Text(value), ColumnType::Enum(name)) = (literal, ty) {
                let values = enums.get(name).into_iter().flat_map(|found| &found.values);
                let names: Vec<&str> = values.map(|value| value.name.as_str()).collect();
                if !names.contains(&value.as_str()) {
                    found.push(messages::unknown_enum_value(text, range, value, names));
                    return None;
                }
            }
            Some(Operand::Literal(literal.clone()))
        }
    }
}

fn orders(text: &Text, kind: &Kind, found: &mut Collector) -> Option<Vec<Order>> {
    let written = read(text, query_text::orders, found)?;
    let mut orders = Vec::new();
    for (range, direction) in written {
        let (column, _) = column(text, range, kind, found)?;
        orders.push(Order { column, direction });
    }
    Some(orders)
}

fn column(text: &Text, range: Range<usize>, kind: &Kind, found: &mut Collector) -> Option<(ColumnRef, ColumnType)> {
    let name = &text.value[range.clone()];
    let base = BaseColumn::of_name(name);
    if let Some((base, ty)) = base.and_then(|base| Some((base, base_type(base)?))) {
        return Some((ColumnRef::Base(base), ty));
    }
    let extracted = kind.columns.iter().find(|column| column.name == *name);
    if let Some(column) = extracted {
        return Some((ColumnRef::Extracted(column.name.clone()), column.ty.clone()));
    }
    let comparable = BaseColumn::all().filter(|base| base_type(*base).is_some());
    let mut candidates: Vec<&str> = comparable.map(BaseColumn::name).collect();
    candidates.extend(kind.columns.iter().map(|column| column.name.as_str()));
    found.push(messages::unknown_column(text, range, candidates.into_iter()));
    None
}

/// What a base column holds; `None` for those that no condition can be about.
const fn base_type(column: BaseColumn) -> Option<ColumnType> {
    match column {
        BaseColumn::Uid | BaseColumn::GroupVer | BaseColumn::Namespace | BaseColumn::Name => Some(ColumnType::Text),
        BaseColumn::ResVersion => Some(ColumnType::Int64),
        BaseColumn::CreateTime | BaseColumn::UpdateTime | BaseColumn::DeleteTime | BaseColumn::EvictedTime => {
            Some(ColumnType::Timestamp)
        }
        BaseColumn::Proto | BaseColumn::Json | BaseColumn::ContentHash | BaseColumn::Seq => None,
    }
}

fn fits(literal: &Literal, ty: &ColumnType) -> bool {
    match (literal, ty) {
        (Literal::Text(_), ColumnType::Text | ColumnType::Enum(_)) => true,
        (Literal::Integer(number), ColumnType::Int32) => i32::try_from(*number).is_ok(),
        (Literal::Integer(number), ColumnType::Int64) => i64::try_from(*number).is_ok(),
        (Literal::Integer(number), ColumnType::UInt64) => u64::try_from(*number).is_ok(),
        (Literal::Bool(_), ColumnType::Bool) => true,
        (Literal::Text(_) | Literal::Integer(_) | Literal::Bool(_), _) => false,
    }
}

/// Only an equality on the first column of a key keeps the engine from reading the whole table.
fn narrows(condition: &Condition, kind: &Kind) -> bool {
    let name = ColumnName::parse(condition.column.name()).expect("columns have valid names");
    condition.comparison == Comparison::Equal && kind.leads_a_key(&name)
}

fn leading_columns(kind: &Kind) -> Vec<&str> {
    let leading = kind.keys.iter().filter_map(|key| key.columns.first());
    leading
        .map(ColumnName::as_str)
        // Every live row has the same delete_time, so its key narrows nothing here.
        .filter(|name| *name != BaseColumn::DeleteTime.name())
        .collect()
}
