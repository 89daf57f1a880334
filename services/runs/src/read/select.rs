//! The statements of lists. Text of this file alone, values always bound.

use std::borrow::Cow;

use super::filter::{Comparison, Filter, ParamFilter, glob};
use super::listing::{Listing, Sort, SortBy};
use super::pages::SortKey;
use crate::domain::ProjectName;

/// A list counts no further: above it, a total is one more.
pub(crate) const COUNT_MAX: i64 = 10_000;

/// A value of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A whole number.
    Number(i64),
    /// A finite number.
    Real(f64),
    /// A text.
    Text(String),
}

/// A statement and its values, in the order of their places.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Statement {
    /// Its text.
    pub(crate) text: String,
    /// A value for each `?`.
    pub(crate) values: Vec<Value>,
}

impl Statement {
    fn of(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            values: Vec::new(),
        }
    }

    /// Appends text with places for these values.
    pub(crate) fn add(&mut self, text: &str, values: impl IntoIterator<Item = Value>) {
        self.text.push_str(text);
        self.values.extend(values);
    }
}

/// Numbers and sort keys of a page of runs, one more than the page has.
pub(super) fn page(listing: &Listing) -> Statement {
    let key = key(listing.sort);
    let mut statement = Statement::of("SELECT run_no, ");
    statement.add(&key, []);
    statement.add(" AS sort_key FROM run", []);
    conditions(listing.project.as_ref(), &listing.filter, &mut statement);
    if let Some(after) = &listing.after {
        let text = match listing.sort.is_descending {
            true => " AND (sort_key, run_no) < (?, ?)",
            false => " AND (sort_key, run_no) > (?, ?)",
        };
        let value = match &after.key {
            SortKey::Number(number) => Value::Number(*number),
            SortKey::Text(text) => Value::Text(text.clone()),
        };
        statement.add(text, [value, Value::Number(after.number)]);
    }
    let order = match listing.sort.is_descending {
        true => " ORDER BY sort_key DESC, run_no DESC LIMIT ?",
        false => " ORDER BY sort_key, run_no LIMIT ?",
    };
    statement.add(order, [Value::Number(listing.limit as i64 + 1)]);
    statement
}

/// How many runs there are, up to one more than `COUNT_MAX`.
pub(super) fn count(project: Option<&ProjectName>, filter: &Filter) -> Statement {
    let mut statement = Statement::of("SELECT count(*) FROM (SELECT 1 FROM run");
    conditions(project, filter, &mut statement);
    statement.add(" LIMIT ?)", [Value::Number(COUNT_MAX + 1)]);
    statement
}

/// Some runs with the texts that words are searched in, the newest first: those before a time and a number.
pub(super) fn texts(project: &ProjectName, filter: &Filter, before: Option<(i64, i64)>, limit: usize) -> Statement {
    let mut statement = Statement::of("SELECT run_no, run_id, name, description, created_at FROM run");
    conditions(Some(project), filter, &mut statement);
    if let Some((created_at, number)) = before {
        let values = [Value::Number(created_at), Value::Number(number)];
        statement.add(" AND (created_at, run_no) < (?, ?)", values);
    }
    let limit = Value::Number(limit as i64);
    statement.add(" ORDER BY created_at DESC, run_no DESC LIMIT ?", [limit]);
    statement
}

/// By what a list is sorted. Runs that have not ended come after all others.
fn key(sort: Sort) -> Cow<'static, str> {
    match (sort.by, sort.is_descending) {
        (SortBy::CreatedAt, _) => "created_at".into(),
        (SortBy::Name, _) => "name".into(),
        (SortBy::Status, _) => "status".into(),
        (SortBy::Duration, true) => "coalesce(finished_at - created_at, -1)".into(),
        (SortBy::Duration, false) => format!("coalesce(finished_at - created_at, {})", i64::MAX).into(),
    }
}

fn conditions(project: Option<&ProjectName>, filter: &Filter, statement: &mut Statement) {
    let text = |text: &str| Value::Text(text.to_owned());
    match project {
        Some(project) => statement.add(" WHERE project = ?", [text(project.as_str())]),
        None => statement.add(" WHERE TRUE", []),
    }
    if !filter.statuses.is_empty() {
        let places = vec!["?"; filter.statuses.len()].join(", ");
        let numbers = filter.statuses.iter().map(|status| Value::Number(status.number()));
        statement.add(&format!(" AND status IN ({places})"), numbers);
    }
    for (key, value) in &filter.tags {
        let condition = " AND EXISTS (SELECT 1 FROM tag WHERE tag.run_no = run.run_no AND key = ? AND value = ?)";
        statement.add(condition, [text(key), text(value)]);
    }
    if let Some(pattern) = &filter.name {
        statement.add(" AND name GLOB ?", [Value::Text(glob(pattern))]);
    }
    if let Some(after) = filter.created_after {
        statement.add(" AND created_at > ?", [Value::Number(after)]);
    }
    if let Some(before) = filter.created_before {
        statement.add(" AND created_at < ?", [Value::Number(before)]);
    }
    if let Some(user) = &filter.user {
        statement.add(" AND user = ?", [text(user)]);
    }
    if let Some(parent) = &filter.parent {
        statement.add(" AND parent_run_id = ?", [text(parent)]);
    }
    for param in &filter.params {
        param_condition(param, statement);
    }
}

/// Numbers are compared as such where both sides are numbers.
fn param_condition(param: &ParamFilter, statement: &mut Statement) {
    let text = |text: &str| Value::Text(text.to_owned());
    statement.add(
        " AND EXISTS (SELECT 1 FROM param WHERE param.run_no = run.run_no AND param.name = ? AND ",
        [text(&param.name)],
    );
    let operator = match param.comparison {
        Comparison::Eq => "=",
        Comparison::Ne => "<>",
        Comparison::Gt => ">",
        Comparison::Ge => ">=",
        Comparison::Lt => "<",
        Comparison::Le => "<=",
        Comparison::Contains => {
            statement.add("instr(value, ?) > 0)", [text(&param.value)]);
            return;
        }
    };
    let Some(number) = param.number else {
        statement.add(&format!("value {operator} ?)"), [text(&param.value)]);
        return;
    };
    // JSON5 has the numbers that programs print, `1e-05`, `+1` and `.5` among them; JSON does not have the last two.
    let condition = format!(
        "CASE WHEN NOT json_valid(value, 2) THEN value {operator} ? \
         WHEN json_type(value) IN ('integer', 'real') THEN CAST(trim(value) AS REAL) {operator} ? \
         ELSE value {operator} ? END)"
    );
    let values = [text(&param.value), Value::Real(number), text(&param.value)];
    statement.add(&condition, values);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_a_value_and_no_value_stands_in_the_text() {
        let hostile = "x' OR 1=1 --".to_owned();
        let param = |comparison, number| ParamFilter {
            name: hostile.clone(),
            comparison,
            value: hostile.clone(),
            number,
        };
        let filter = Filter {
            statuses: vec![crate::domain::Status::Running, crate::domain::Status::Killed],
            tags: vec![(hostile.clone(), hostile.clone())],
            name: Some(hostile.clone()),
            created_after: Some(1),
            created_before: Some(2),
            user: Some(hostile.clone()),
            parent: Some(hostile.clone()),
            params: vec![
                param(Comparison::Eq, Some(1.0)),
                param(Comparison::Ne, None),
                param(Comparison::Contains, Some(2.0)),
            ],
        };
        let project = ProjectName::new(hostile.clone());
        for statement in [
            count(Some(&project), &filter),
            count(None, &filter),
            texts(&project, &filter, None, 10),
            texts(&project, &filter, Some((1, 2)), 10),
        ] {
            assert_eq!(statement.text.matches('?').count(), statement.values.len());
            assert!(!statement.text.contains("OR 1=1"), "{}", statement.text);
        }
    }
}
