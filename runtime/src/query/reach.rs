//! How much of a table a query reads, as far as its conditions tell: the same rule for queries that
//! are typed at run time as `state` has for those that are compiled. Knows no engine.

use crate::kind::Kind;
use crate::store::Select;
use crate::store::select::{Condition, Order};

/// What bounds the rows that a query reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This key of the main table, on which a condition stands.
    Key(&'static str),
    /// The key on labels.
    Label,
    /// The limit: nothing but life is asked for, and a key has the rows in order.
    InOrder,
    /// Nothing: every row is compared, because no key starts with this column.
    Scan(&'static str),
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
        if let Some(column) = self.conditions.iter().find_map(filtered) {
            return Reach::Scan(column);
        }
        match self.order.first() {
            Some(first) if !has_order(kind, &self.order) => Reach::Sort(first.column),
            Some(_) | None => Reach::InOrder,
        }
    }
}

/// The key that a condition makes use of.
fn narrows(kind: &Kind, condition: &Condition) -> Option<&'static str> {
    match condition {
        Condition::Compare { operator: "<>", .. } => None,
        Condition::Compare { column, .. } | Condition::OneOf { column, .. } | Condition::StartsWith { column, .. } => {
            key_that_starts_with(kind, column)
        }
        Condition::Null { .. }
        | Condition::NotNull { .. }
        | Condition::Empty { .. }
        | Condition::NotEmpty { .. }
        | Condition::Differs { .. }
        | Condition::Side { .. } => None,
    }
}

fn key_that_starts_with(kind: &Kind, column: &str) -> Option<&'static str> {
    if column == "uid" {
        return Some("PRIMARY");
    }
    let key = kind.keys.iter().find(|key| key.columns.first() == Some(&column));
    key.map(|key| key.name)
}

/// The column, or the side table, that a condition filters by; life is no filter.
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
        | Condition::Differs { column, .. } => Some(column),
        Condition::Side { suffix, .. } => Some(suffix),
    }
}

fn has_order(kind: &Kind, order: &[Order]) -> bool {
    let one_way = order.windows(2).all(|pair| pair[0].direction == pair[1].direction);
    let columns = || order.iter().map(|order| order.column);
    let primary = columns().next() == Some("uid");
    let key = kind.keys.iter().any(|key| {
        let mut sorted = columns();
        let walked = key
            .columns
            .iter()
            .all(|column| sorted.next().is_none_or(|sorted| sorted == *column));
        walked && sorted.next().is_none_or(|last| last == "uid")
    });
    primary || one_way && key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{Column, ColumnType, Encoded, Key, Scope};
    use crate::query::LabelSelector;

    static KIND: Kind = Kind {
        name: "Run",
        group: "test.kindex",
        version: "v1",
        plural: "runs",
        singular: "run",
        scope: Scope::Namespaced,
        table: "run",
        immutable: false,
        history: false,
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
        retention: None,
        manifest: "",
        encode: |_| Encoded::default(),
    };

    fn reach(labels: &str, conditions: &[&str], order: &[&str]) -> Reach {
        let mut select = Select::all(&KIND);
        select.filter_by_labels(&LabelSelector::parse(labels).expect("a selector"));
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
        assert_eq!(reach("", &["uid in (a, b)"], &[]), Reach::Key("PRIMARY"));
        assert_eq!(reach("team in (a,b)", &["phase=a"], &[]), Reach::Label);
        for labels in ["team", "!team", "team!=a", "team notin (a)"] {
            assert_eq!(reach(labels, &[], &[]), Reach::Scan("labels"), "{labels}");
        }
        for condition in ["phase=a", "phase!=a", "phase is null"] {
            assert_eq!(reach("", &[condition], &[]), Reach::Scan("phase"), "{condition}");
        }
        assert_eq!(reach("", &["namespace!=a"], &[]), Reach::Scan("namespace"));
        assert_eq!(reach("", &["name=a"], &[]), Reach::Scan("name"));
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
