//! Nested conditions, as people type them and as `ListOptionsExt` has them: random ones over random rows
//! find on every engine what a plain reading of the rules finds.

use kindex_model::value::Value;
use kindex_query::{Criterion, CriterionOperation, CriterionOperator, LogicalOperator, Select};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use super::backend::Backend;
use super::widget::{WIDGET, at, widget};

scenarios!(random_conditions_find_what_the_rules_say);

const SEED: u64 = 20_261_122;
/// Texts that collations, wildcards and quotes get wrong.
const TEXTS: [&str; 12] = [
    "",
    "a",
    "A",
    "a ",
    "ab",
    "a%",
    "a_b",
    "é",
    "\u{1f980}x",
    "it's \"so\"",
    "*?[a]",
    "!\\",
];
const PATTERNS: [&str; 12] = [
    "",
    "a",
    "a%",
    "%b",
    "_",
    "__",
    r"a\%",
    r"a\__",
    "%a%",
    "\u{1f980}_",
    r"%\\",
    "*?[_]",
];

/// The columns of a row that are asked for.
struct Row {
    uid: String,
    group: Option<&'static str>,
    order: Option<i64>,
    rank: Option<f64>,
    ready: Option<bool>,
    end: Option<i64>,
}

/// A condition as it is meant.
enum Meant {
    Compared(&'static str, CriterionOperator, Vec<Value>),
    Group(LogicalOperator, Vec<Meant>),
    Not(Box<Meant>),
}

impl Row {
    fn random(random: &mut StdRng, number: usize) -> Self {
        let mut some = |probability| random.random_bool(probability);
        let [group, order, rank, ready, end] = [some(0.8), some(0.7), some(0.7), some(0.7), some(0.7)];
        Self {
            uid: format!("u{number:03}"),
            group: group.then(|| *TEXTS.choose(random).expect("some")),
            order: order.then(|| random.random_range(-2..3)),
            rank: rank.then(|| *[0.1, 1.0, -1e300].choose(random).expect("some")),
            ready: ready.then(|| random.random_bool(0.5)),
            end: end.then(|| random.random_range(0..4)),
        }
    }

    fn write(&self) -> kindex_store::RowWrite {
        let end = self.end.map(|second| at(second).to_string());
        let spec = json!({"group": self.group, "order": self.order, "rank": self.rank});
        let status = json!({"ready": self.ready, "endTime": end});
        widget(&self.uid, &self.uid, 1).spec(spec).status(status).live()
    }

    fn value(&self, column: &str) -> Option<Value> {
        match column {
            "group" => self.group.map(|text| Value::Text(text.to_owned())),
            "order" => self.order.map(Value::Int),
            "rank" => self.rank.map(Value::Double),
            "ready" => self.ready.map(Value::Bool),
            "end_time" => self.end.map(|second| Value::Time(at(second))),
            other => unreachable!("{other}"),
        }
    }

    /// SQL's logic of three values: `None` is neither.
    fn matches(&self, meant: &Meant) -> Option<bool> {
        match meant {
            Meant::Not(inner) => self.matches(inner).map(|known| !known),
            Meant::Group(operator, parts) => {
                let decisive = *operator == LogicalOperator::Or;
                let known: Vec<Option<bool>> = parts.iter().map(|part| self.matches(part)).collect();
                if known.contains(&Some(decisive)) {
                    Some(decisive)
                } else if known.contains(&None) {
                    None
                } else {
                    Some(!decisive)
                }
            }
            Meant::Compared(column, operator, values) => {
                let held = self.value(column);
                match operator {
                    CriterionOperator::IsNull => return Some(held.is_none()),
                    CriterionOperator::IsNotNull => return Some(held.is_some()),
                    _ => {}
                }
                let held = held?;
                let ordering = || compare(&held, &values[0]);
                Some(match operator {
                    CriterionOperator::Equal => held == values[0],
                    CriterionOperator::NotEqual => held != values[0],
                    CriterionOperator::GreaterThan => ordering().is_gt(),
                    CriterionOperator::GreaterThanOrEqualTo => ordering().is_ge(),
                    CriterionOperator::LessThan => ordering().is_lt(),
                    CriterionOperator::LessThanOrEqualTo => ordering().is_le(),
                    CriterionOperator::In => values.contains(&held),
                    CriterionOperator::NotIn => !values.contains(&held),
                    CriterionOperator::Like => match (&held, &values[0]) {
                        (Value::Text(held), Value::Text(pattern)) => like(held, pattern),
                        other => unreachable!("{other:?}"),
                    },
                    CriterionOperator::IsNull | CriterionOperator::IsNotNull => unreachable!("answered above"),
                })
            }
        }
    }
}

fn compare(one: &Value, other: &Value) -> std::cmp::Ordering {
    match (one, other) {
        (Value::Text(one), Value::Text(other)) => one.as_bytes().cmp(other.as_bytes()),
        (Value::Int(one), Value::Int(other)) => one.cmp(other),
        (Value::UInt(one), Value::UInt(other)) => one.cmp(other),
        (Value::Double(one), Value::Double(other)) => one.total_cmp(other),
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::Time(one), Value::Time(other)) => one.cmp(other),
        other => unreachable!("{other:?}"),
    }
}

fn like(text: &str, pattern: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => text.is_empty(),
        Some('%') => {
            let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            ends.into_iter().any(|at| like(&text[at..], rest.as_str()))
        }
        Some(sign) => {
            let wanted = if sign == '\\' {
                rest.next()
            } else {
                Some(sign).filter(|sign| *sign != '_')
            };
            let mut characters = text.chars();
            let first = characters.next();
            first.is_some() && (wanted.is_none() || wanted == first) && like(characters.as_str(), rest.as_str())
        }
    }
}

impl Meant {
    fn random(random: &mut StdRng, depth: usize) -> Self {
        match random.random_range(0..10) {
            0..4 if depth > 0 => {
                let operator = *[LogicalOperator::And, LogicalOperator::Or]
                    .choose(random)
                    .expect("some");
                let parts = (0..random.random_range(1..4)).map(|_| Self::random(random, depth - 1));
                Self::Group(operator, parts.collect())
            }
            4 if depth > 0 => Self::Not(Box::new(Self::random(random, depth - 1))),
            _ => Self::compared(random),
        }
    }

    fn compared(random: &mut StdRng) -> Self {
        use CriterionOperator as Is;
        let column = *["group", "group", "order", "rank", "ready", "end_time"]
            .choose(random)
            .expect("some");
        let mut operators = vec![Is::Equal, Is::NotEqual, Is::In, Is::NotIn, Is::IsNull, Is::IsNotNull];
        operators.extend([
            Is::GreaterThan,
            Is::GreaterThanOrEqualTo,
            Is::LessThan,
            Is::LessThanOrEqualTo,
        ]);
        if column == "group" {
            operators.extend([Is::Like, Is::Like]);
        }
        let operator = *operators.choose(random).expect("some");
        let count = match operator {
            Is::In | Is::NotIn => random.random_range(1..4),
            Is::IsNull | Is::IsNotNull => 0,
            _ => 1,
        };
        let texts = if operator == Is::Like { PATTERNS } else { TEXTS };
        let value = |_| match column {
            "group" => Value::Text((*texts.choose(random).expect("some")).to_owned()),
            "order" => Value::Int(random.random_range(-2..3)),
            "rank" => Value::Double(*[0.1, 1.0, -1e300].choose(random).expect("some")),
            "ready" => Value::Bool(random.random_bool(0.5)),
            _ => Value::Time(at(random.random_range(0..4))),
        };
        Self::Compared(column, operator, (0..count).map(value).collect())
    }

    /// As people type it.
    fn text(&self, random: &mut StdRng) -> String {
        match self {
            Self::Not(inner) => format!("NOT ({})", inner.text(random)),
            Self::Group(operator, parts) => {
                let word = match operator {
                    LogicalOperator::And => " and ",
                    LogicalOperator::Or => " or ",
                };
                let parts: Vec<String> = parts.iter().map(|part| format!("({})", part.text(random))).collect();
                parts.join(word)
            }
            Self::Compared(column, operator, values) => {
                let values: Vec<String> = values.iter().map(|value| typed(value, random)).collect();
                let listed = format!("({})", values.join(", "));
                match operator {
                    CriterionOperator::Equal => format!("{column}={}", values[0]),
                    CriterionOperator::NotEqual => format!("{column} != {}", values[0]),
                    CriterionOperator::GreaterThan => format!("{column}>{}", values[0]),
                    CriterionOperator::GreaterThanOrEqualTo => format!("{column} >= {}", values[0]),
                    CriterionOperator::LessThan => format!("{column} < {}", values[0]),
                    CriterionOperator::LessThanOrEqualTo => format!("{column}<={}", values[0]),
                    CriterionOperator::In => format!("{column} in {listed}"),
                    CriterionOperator::NotIn => format!("{column} not in {listed}"),
                    CriterionOperator::Like => format!("{column} Like {}", values[0]),
                    CriterionOperator::IsNull => format!("{column} is null"),
                    CriterionOperator::IsNotNull => format!("{column} is not null"),
                }
            }
        }
    }

    /// As `ListOptionsExt` has it, which knows no negation.
    fn operation(&self) -> Option<CriterionOperation> {
        let mut operation = CriterionOperation::default();
        match self {
            Self::Not(_) => return None,
            Self::Compared(column, operator, values) => operation.criterion.push(Criterion {
                field_name: (*column).to_owned(),
                operator: *operator,
                match_values: values.clone(),
            }),
            Self::Group(operator, parts) => {
                operation.logical_operator = *operator;
                for part in parts {
                    let inner = part.operation()?;
                    match part {
                        Self::Compared(..) => operation.criterion.extend(inner.criterion),
                        Self::Group(..) | Self::Not(_) => operation.sub_operations.push(inner),
                    }
                }
            }
        }
        Some(operation)
    }
}

/// A value between quotes of either sort.
fn typed(value: &Value, random: &mut StdRng) -> String {
    match value {
        Value::Text(text) => {
            let quote = *["'", "\""].choose(random).expect("some");
            format!("{quote}{}{quote}", text.replace(quote, &quote.repeat(2)))
        }
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Double(number) => format!("{number:e}"),
        Value::Bool(flag) => flag.to_string(),
        Value::Time(time) => time.to_string(),
        Value::Null => unreachable!("nobody compares with NULL"),
    }
}

pub(super) async fn found(backend: &Backend, select: &Select) -> Vec<String> {
    let page = backend.store.select(select, None).await.expect("a page");
    page.items
        .iter()
        .map(|item| item.object.metadata.uid.to_string())
        .collect()
}

async fn random_conditions_find_what_the_rules_say(backend: Backend) {
    let mut random = StdRng::seed_from_u64(SEED);
    let rows: Vec<Row> = (0..80).map(|number| Row::random(&mut random, number)).collect();
    let batch: Vec<_> = rows.iter().map(Row::write).collect();
    backend.write_all(&batch, at(0)).await;
    let (mut matched, mut operations) = (0, 0);
    for case in 0..150 {
        let meant = Meant::random(&mut random, 4);
        let expected: Vec<&str> = rows
            .iter()
            .filter(|row| row.matches(&meant) == Some(true))
            .map(|row| row.uid.as_str())
            .collect();
        let text = meant.text(&mut random);
        let mut select = Select::all(&WIDGET);
        select
            .filter_by(&text)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(
            found(&backend, &select).await,
            expected,
            "seed {SEED}, case {case}: {text}"
        );
        if let Some(operation) = meant.operation() {
            let mut select = Select::all(&WIDGET);
            select.filter_by_operation(&operation).expect(&text);
            assert_eq!(
                found(&backend, &select).await,
                expected,
                "seed {SEED}, case {case}: {operation:?}"
            );
            operations += 1;
        }
        matched += expected.len();
    }
    assert!(
        matched > 1_000 && operations > 50,
        "{matched} rows, {operations} operations"
    );
}
