//! Retention rules: that they say something, and that their states are states.

use super::messages::Enums;
use crate::diag::{Collector, messages};
use crate::model::{Column, ColumnName, ColumnType, Retention, RetentionStates};
use crate::source::Text;
use crate::spec::RetentionSpec;

/// The column of the states where none is named.
const STATE_COLUMN: &str = "state";

/// Checks the rule of one kind against its columns.
pub(super) fn lower(
    spec: &RetentionSpec,
    columns: &[Column],
    enums: &Enums,
    found: &mut Collector,
) -> Option<Retention> {
    let (keep_days, keep_last) = (spec.keep_days, spec.keep_last_per_namespace);
    if keep_days.is_none() && keep_last.is_none() {
        found.push(messages::retention_of_everything(spec.span));
    }
    let states = states(spec, columns, enums, found);
    Some(Retention {
        keep_days: keep_days.map(|days| days.value),
        keep_last_per_namespace: keep_last.map(|rows| rows.value),
        states: states?,
        evicted: spec.evicted.is_some_and(|flag| flag.value),
    })
}

/// `None` where something is wrong, which was reported.
fn states(
    spec: &RetentionSpec,
    columns: &[Column],
    enums: &Enums,
    found: &mut Collector,
) -> Option<Option<RetentionStates>> {
    let Some(states) = &spec.states else {
        if let Some(text) = &spec.state_column {
            found.push(messages::state_column_without_states(text.span));
            return None;
        }
        return Some(None);
    };
    if states.value.is_empty() {
        found.push(messages::no_states(states.span));
        return None;
    }
    let name = spec.state_column.as_ref().map_or(STATE_COLUMN, |text| &text.value);
    let Some(column) = columns.iter().find(|column| column.name.as_str() == name) else {
        let candidates = columns.iter().filter(|column| is_text(&column.ty));
        let candidates = candidates.map(|column| column.name.as_str());
        found.push(match &spec.state_column {
            Some(text) => messages::unknown_column(text, 0..text.value.len(), candidates),
            None => messages::no_state_column(name, states.span, candidates),
        });
        return None;
    };
    if !is_text(&column.ty) {
        let span = spec.state_column.as_ref().map_or(states.span, |text| text.span);
        found.push(messages::state_column_not_text(name, column.ty.word(), span));
        return None;
    }
    let known: Vec<bool> = states
        .value
        .iter()
        .map(|state| is_value(state, column, enums, found))
        .collect();
    known.into_iter().all(|known| known).then(|| {
        Some(RetentionStates {
            column: ColumnName::clone(&column.name),
            values: states.value.iter().map(|state| state.value.clone()).collect(),
        })
    })
}

const fn is_text(ty: &ColumnType) -> bool {
    matches!(ty, ColumnType::Text | ColumnType::Enum(_))
}

fn is_value(state: &Text, column: &Column, enums: &Enums, found: &mut Collector) -> bool {
    let ColumnType::Enum(name) = &column.ty else {
        return true;
    };
    let values = enums.get(name).into_iter().flat_map(|found| &found.values);
    let names: Vec<&str> = values.map(|value| value.name.as_str()).collect();
    let known = names.contains(&state.value.as_str());
    if !known {
        found.push(messages::unknown_enum_value(
            state,
            0..state.value.len(),
            &state.value,
            names,
        ));
    }
    known
}
