//! How much of a table a query reads, judged by its conditions. The same rule for queries at run time as `narrowing`
//! has for compiled ones.

use kindex_model::kind::{Comparison, Kind};
use kindex_model::tables::Side;

use crate::Select;
use crate::select::{Condition, Order};

/// What bounds the rows that a query reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This key of the main table, which serves a condition.
    Key(&'static str),
    /// The key on labels.
    Label,
    /// The limit: the only conditions are on the state, and a key has the rows in order.
    InOrder,
    /// Nothing: every row is compared, because no key starts with this column.
    Scan(&'static str),
    /// Nothing: every row is compared, because no one key serves each of some alternatives.
    Alternatives,
    /// Nothing: every row is sorted, because no key has the rows in the order of this column.
    Sort(&'static str),
}

impl Select {
    /// What bounds the rows that this query reads.
    pub fn reach(&self) -> Reach {
        let kind = self.kind();
        if let Some(key) = self.conditions.iter().find_map(|condition| narrows(kind, condition)) {
            return Reach::Key(key);
        }
        if !self.labels.is_empty() {
            return Reach::Label;
        }
        if let Some(scan) = self.conditions.iter().find_map(|condition| scanned(kind, condition)) {
            return scan;
        }
        match self.order.first() {
            Some(first) if !has_order(kind, &self.order) => Reach::Sort(first.column),
            Some(_) | None => Reach::InOrder,
        }
    }
}

/// The key that serves a condition.
fn narrows(kind: &Kind, condition: &Condition) -> Option<&'static str> {
    match condition {
        Condition::Compare {
            comparison: Comparison::NotEqual,
            ..
        } => None,
        Condition::Compare { column, .. }
        | Condition::OneOf { column, .. }
        | Condition::StartsWith { column, .. }
        | Condition::Exactly { column, .. } => key_that_starts_with(kind, column),
        Condition::Like { column, pattern } if pattern.has_prefix() => key_that_starts_with(kind, column),
        Condition::All(conditions) => conditions.iter().find_map(|condition| narrows(kind, condition)),
        Condition::Any(conditions) => {
            let mut keys = conditions.iter().map(|condition| narrows(kind, condition));
            let first = keys.next()??;
            keys.all(|key| key == Some(first)).then_some(first)
        }
        Condition::Like { .. }
        | Condition::Ordered { .. }
        | Condition::Not(_)
        | Condition::Null { .. }
        | Condition::NotNull { .. }
        | Condition::Empty { .. }
        | Condition::NotEmpty { .. }
        | Condition::Differs { .. }
        | Condition::Side { .. }
        | Condition::LabelWithin { .. } => None,
    }
}

fn key_that_starts_with(kind: &Kind, column: &str) -> Option<&'static str> {
    if column == "uid" {
        return Some("uid");
    }
    let key = kind.keys.iter().find(|key| key.columns.first() == Some(&column));
    key.map(|key| key.name)
}

/// Why a condition that no key serves compares every row; `None` for a condition on the state.
fn scanned(kind: &Kind, condition: &Condition) -> Option<Reach> {
    let scanned = |condition| scanned(kind, condition);
    match condition {
        Condition::All(conditions) => conditions.iter().find_map(scanned),
        Condition::Any(conditions) => {
            let unserved = conditions.iter().filter(|condition| narrows(kind, condition).is_none());
            let served = conditions.iter().any(|condition| narrows(kind, condition).is_some());
            unserved
                .clone()
                .find_map(scanned)
                .or(served.then_some(Reach::Alternatives))
        }
        Condition::Not(condition) => scanned(condition),
        condition => filtered(condition).map(Reach::Scan),
    }
}

/// The column, or the side table, that a single condition filters by; `None` for a condition on the state.
fn filtered(condition: &Condition) -> Option<&'static str> {
    match condition {
        Condition::Null { column } | Condition::NotNull { column } if *column == "delete_time" => None,
        Condition::Compare { column, .. }
        | Condition::OneOf { column, .. }
        | Condition::StartsWith { column, .. }
        | Condition::Null { column }
        | Condition::NotNull { column }
        | Condition::Empty { column, .. }
        | Condition::NotEmpty { column, .. }
        | Condition::Differs { column, .. }
        | Condition::Exactly { column, .. }
        | Condition::Ordered { column, .. }
        | Condition::Like { column, .. } => Some(column),
        Condition::Side { side, .. } => Some(side.word()),
        Condition::LabelWithin { .. } => Some(Side::Labels.word()),
        Condition::All(_) | Condition::Any(_) | Condition::Not(_) => None,
    }
}

fn has_order(kind: &Kind, order: &[Order]) -> bool {
    let one_way = order.windows(2).all(|pair| pair[0].direction == pair[1].direction);
    let columns = || order.iter().map(|order| order.column);
    let unique = columns().next() == Some("uid");
    let key = kind.keys.iter().any(|key| {
        let mut sorted = columns();
        let walked = key
            .columns
            .iter()
            .all(|column| sorted.next().is_none_or(|sorted| sorted == *column));
        walked && sorted.next().is_none_or(|last| last == "uid")
    });
    unique || one_way && key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LabelSelector;
    use kindex_model::kind::{Column, ColumnType, Key};

    static KIND: Kind = Kind {
        name: "Run",
        group: "test.kindex",
        version: "v1",
        plural: "runs",
        singular: "run",
        table: "run",
        columns: &[Column {
            name: "phase",
            path: &["status", "phase"],
            ty: ColumnType::Text { chars: 255 },
            own_namespace: false,
        }],
        keys: &[
            Key {
                name: "run_namespace_name",
                columns: &["namespace", "name"],
            },
            Key {
                name: "run_create_time",
                columns: &["create_time"],
            },
        ],
        ..Kind::EMPTY
    };

    fn reach(labels: &str, conditions: &[&str], order: &[&str]) -> Reach {
        let mut select = Select::all(&KIND);
        select
            .filter_by_labels(&LabelSelector::parse(labels).expect("a selector"))
            .expect("small enough");
        for condition in conditions {
            select.filter_by(condition).expect("a condition");
        }
        for column in order {
            select.order_by(column).expect("a column");
        }
        select.reach()
    }

    #[test]
    fn a_key_and_a_labels_value_narrow_and_nothing_else_does() {
        assert_eq!(
            reach("", &["phase=a", "namespace=b"], &[]),
            Reach::Key("run_namespace_name")
        );
        assert_eq!(
            reach("", &["create_time>2026-01-01"], &["phase"]),
            Reach::Key("run_create_time")
        );
        assert_eq!(reach("", &["uid in (a, b)"], &[]), Reach::Key("uid"));
        assert_eq!(reach("team in (a,b)", &["phase=a"], &[]), Reach::Label);
        for labels in ["team", "!team", "team!=a", "team notin (a)", "team>1"] {
            assert_eq!(reach(labels, &[], &[]), Reach::Scan("labels"), "{labels}");
        }
        for condition in ["phase=a", "phase!=a", "phase is null"] {
            assert_eq!(reach("", &[condition], &[]), Reach::Scan("phase"), "{condition}");
        }
        assert_eq!(reach("", &["namespace!=a"], &[]), Reach::Scan("namespace"));
        assert_eq!(
            reach("", &["namespace>a"], &[]),
            Reach::Scan("namespace"),
            "no order of texts"
        );
        assert_eq!(reach("", &["name=a"], &[]), Reach::Scan("name"));
    }

    #[test]
    fn alternatives_narrow_where_one_key_serves_all_of_them() {
        let key = Reach::Key("run_namespace_name");
        for condition in [
            "namespace=a or namespace in (b, c)",
            "(namespace=a and phase=b) or (phase=c and namespace like 'd%')",
            "phase=a and (namespace=b or namespace=c)",
            "namespace like 'a_'",
        ] {
            assert_eq!(reach("", &[condition], &[]), key, "{condition}");
        }
        for (condition, reached) in [
            ("namespace=a or uid=b", Reach::Alternatives),
            ("namespace=a or phase=b", Reach::Scan("phase")),
            ("namespace=a or not namespace=b", Reach::Scan("namespace")),
            ("namespace like '%a'", Reach::Scan("namespace")),
            ("not namespace=a", Reach::Scan("namespace")),
            ("delete_time is null or delete_time is not null", Reach::InOrder),
        ] {
            assert_eq!(reach("", &[condition], &[]), reached, "{condition}");
        }
    }

    #[test]
    fn all_rows_come_in_the_order_of_a_key_or_are_sorted() {
        let alive = ["delete_time is null"];
        for order in [
            &[][..],
            &["uid:desc"],
            &["namespace"],
            &["namespace", "name"],
            &["namespace:desc", "name:desc", "uid:desc"],
            &["create_time:desc"],
        ] {
            assert_eq!(reach("", &alive, order), Reach::InOrder, "{order:?}");
        }
        for (order, column) in [
            (&["name"][..], "name"),
            (&["phase"], "phase"),
            (&["namespace", "name:desc"], "namespace"),
            (&["create_time", "name"], "create_time"),
        ] {
            assert_eq!(reach("", &alive, order), Reach::Sort(column), "{order:?}");
        }
    }
}
