//! Names that columns had before: `was`. Whether a database still has them is the planner's question.

use std::collections::BTreeMap;

use crate::diag::{Collector, messages};
use crate::dialect;
use crate::model::{BaseColumn, Column, ColumnName};
use crate::source::Span;
use crate::spec::ColumnSpec;
use crate::spec::KindSpec;

/// The old name of the column, or of the part with that suffix. A wrong one is reported once, for the first part.
pub(super) fn old_name(spec: &ColumnSpec, suffix: Option<&str>, found: &mut Collector) -> Option<ColumnName> {
    let text = spec.was.as_ref()?;
    let base = ColumnName::parse(&text.value);
    let parsed = base.and_then(|base| match suffix {
        Some(suffix) => base.with_suffix(suffix),
        None => Ok(base),
    });
    match parsed.and_then(dialect::fitting) {
        Ok(name) if BaseColumn::of_name(name.as_str()).is_some() => {
            found.push(messages::base_column(text, name.as_str()));
            None
        }
        Ok(name) => Some(name),
        Err(error) => {
            found.push(messages::bad_name(text, error));
            None
        }
    }
}

/// Reports old names that cannot be right, whatever the database looks like.
pub(super) fn check(kind: &KindSpec, columns: &[Column], found: &mut Collector) {
    let mut taken: BTreeMap<&str, Span> = BTreeMap::new();
    for spec in &kind.columns {
        let Some(was) = &spec.was else { continue };
        if was.value == spec.name.value {
            found.push(messages::was_is_own_name(was));
            continue;
        }
        if let Some(first) = taken.insert(&was.value, was.span) {
            found.push(messages::was_twice(was, first));
            continue;
        }
        let base = |column: &Column| column.group.as_ref().map_or(&column.name, |group| &group.name).clone();
        let own = columns.iter().filter(|column| base(column) == spec.name.value.as_str());
        let still = own.filter_map(|column| column.was.as_ref()).find_map(|was| {
            let other = columns.iter().find(|other| other.name == *was)?;
            let span = kind
                .columns
                .iter()
                .find(|spec| base(other) == spec.name.value.as_str())?;
            Some((other.name.clone(), span.name.span))
        });
        if let Some((other, span)) = still {
            found.push(messages::was_still_exists(was, other.as_str(), span));
        }
    }
}
