//! Conditions one by one: what texts are equal, where an error stands, what is too large, and that
//! nothing typed is ever SQL.

use kindex_model::value::Value;
use kindex_query::CriterionOperator::{Equal, GreaterThan, In, IsNull, Like};
use kindex_query::{Criterion, CriterionOperation, CriterionOperator, Select};
use kindex_store::ToSql as _;
use serde_json::{Value as Json, json};

use super::backend::Backend;
use super::conditions::found;
use super::widget::{WIDGET, Widget, at, widget};

scenarios!(
    texts_are_compared_to_the_byte_and_ordered_by_code_points,
    not_binds_more_strongly_than_and_wherever_it_stands,
    an_error_is_shown_where_it_stands,
    what_is_too_large_is_refused,
    all_that_is_asked_of_one_query_counts_together,
    values_are_checked_by_the_columns_type,
    what_cannot_be_compared_is_refused,
    no_part_of_a_condition_is_sql,
);

async fn texts_are_compared_to_the_byte_and_ordered_by_code_points(backend: Backend) {
    let texts = ["a", "a ", "A", "a\u{1}", "b", "\u{e9}", "\u{1f980}", "%"];
    let batch: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(number, text)| widget(&number.to_string(), "n", 1).spec(json!({"group": text})))
        .map(|object| {
            Widget {
                name: object.uid.clone(),
                ..object
            }
            .live()
        })
        .chain([widget("8", "8", 1).live()])
        .collect();
    backend.write_all(&batch, at(0)).await;
    for (condition, expected) in [
        ("group = a", "0"),
        ("group = 'a '", "1"),
        ("group in (a, A)", "02"),
        ("group != a", "1234567"),
        ("group not in (a, 'a ')", "234567"),
        ("not group = a", "1234567"),
        ("group > a", "13456"),
        ("group >= 'a '", "1456"),
        ("group < b", "01237"),
        ("group <= 'a\u{1}'", "0237"),
        ("group like a", "0"),
        ("group like 'a_'", "13"),
        ("group like _", "024567"),
        (r"group like '\%'", "7"),
        ("group not like 'a%'", "24567"),
        ("group is null or group like '%'", "012345678"),
        ("group is null and not group = a", ""),
        ("not (group = a or group is null)", "1234567"),
    ] {
        let mut select = Select::all(&WIDGET);
        select
            .filter_by(condition)
            .unwrap_or_else(|error| panic!("{condition}: {error}"));
        assert_eq!(found(&backend, &select).await.concat(), expected, "{condition}");
    }
}

async fn not_binds_more_strongly_than_and_wherever_it_stands(backend: Backend) {
    let row =
        |uid: &str, group: &str, order: i64| widget(uid, uid, 1).spec(json!({"group": group, "order": order})).live();
    let batch = [
        row("0", "a", 1),
        row("1", "a", 2),
        row("2", "b", 1),
        row("3", "b", 2),
        row("4", "c", 3),
    ];
    backend.write_all(&batch, at(0)).await;
    for (condition, with_parentheses, expected) in [
        ("not group=a and order=1", "(not group=a) and order=1", "2"),
        ("order=1 and not group=a", "order=1 and (not group=a)", "2"),
        (
            "order>0 and not group=a and order=1",
            "order>0 and (not group=a) and order=1",
            "2",
        ),
        ("not group=a and not order=1", "(not group=a) and (not order=1)", "34"),
        ("not (group=a) and order=1", "(not (group=a)) and order=1", "2"),
        ("not not group=a and order=1", "(not (not group=a)) and order=1", "0"),
        (
            "not group in (a, c) and order=1",
            "(not group in (a, c)) and order=1",
            "2",
        ),
        (
            "not group like 'a%' and order=1",
            "(not group like 'a%') and order=1",
            "2",
        ),
        ("not group is null and order=1", "(not group is null) and order=1", "02"),
        ("not group=a or order=1", "(not group=a) or order=1", "0234"),
        (
            "group=c or not group=a and order=1",
            "group=c or ((not group=a) and order=1)",
            "24",
        ),
        (
            "not group=a and order=1 or group=c",
            "((not group=a) and order=1) or group=c",
            "24",
        ),
        ("(not group=a and order=1)", "((not group=a) and order=1)", "2"),
        (
            "not (not group=a and order=1)",
            "not ((not group=a) and order=1)",
            "0134",
        ),
    ] {
        let [read, meant] = [condition, with_parentheses].map(|text| {
            let mut select = Select::all(&WIDGET);
            select.filter_by(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            select
        });
        let dialect = backend.store.dialect();
        assert_eq!(read.to_sql(dialect), meant.to_sql(dialect), "{condition}");
        assert_eq!(found(&backend, &read).await.concat(), expected, "{condition}");
    }
}

async fn an_error_is_shown_where_it_stands(_: Backend) {
    for (text, message, caret) in [
        (
            "",
            "expected a column, as in state=VALUE, `not` or an opening parenthesis",
            0,
        ),
        ("group", "expected one of =", 5),
        ("group = a and", "expected a column", 13),
        ("group = a b", "expected `and`, `or` or the end of the condition", 10),
        ("(group = a", "missing closing parenthesis", 10),
        ("group = a)", "closing parenthesis without an opening one", 9),
        ("group = é and color = b", "Widget has no column \"color\"", 14),
        (
            "order = 1 or order = x",
            "column order: \"x\" is not a whole number",
            21,
        ),
        ("group in a", "expected values in parentheses after `in`", 9),
        ("group in ()", "expected a value", 10),
        ("group in (a b)", "expected a comma or a closing parenthesis", 12),
        ("group = 'a", "missing closing quote", 8),
        ("group =", "expected a value; write '' for the empty text", 7),
        ("group is no", "expected null or not null after `is`", 9),
        ("group not = a", "expected one of =", 10),
        (
            "order like 'a'",
            "column order: LIKE compares texts, but the column holds no text",
            0,
        ),
        (
            r"group like 'a\b'",
            r"expected %, _ or \ after a backslash in a pattern",
            0,
        ),
        (
            "end_time > 0900-01-01",
            "is beyond the years 1000 to 9999 that SQL holds",
            11,
        ),
        ("a; DROP TABLE widget", "Widget has no column \"a;\"", 0),
    ] {
        let refused = Select::all(&WIDGET).filter_by(text).expect_err(text).to_string();
        let lines: Vec<&str> = refused.lines().collect();
        assert!(lines[0].contains(message), "{refused}");
        assert_eq!(
            lines[1..],
            [format!("  {text}"), format!("  {}^", " ".repeat(caret))],
            "{refused}"
        );
    }
}

async fn what_is_too_large_is_refused(backend: Backend) {
    let filter = |text: &str| Select::all(&WIDGET).filter_by(text).map_err(|error| error.to_string());
    let deep = |depth: usize| format!("{}order=1{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(filter(&deep(15)), Ok(()));
    for text in [deep(16), deep(100_000), "not ".repeat(100_000) + "order=1"] {
        assert!(
            filter(&text)
                .expect_err("deep")
                .contains("groups may be nested at most 16 deep")
        );
    }
    let wide = |width: usize| vec!["(group='a' and order=1)"; width].join(" or ");
    let mut widest = Select::all(&WIDGET);
    widest.filter_by(&wide(250)).expect("wide enough");
    assert_eq!(found(&backend, &widest).await, [""; 0]);
    assert!(
        filter(&wide(251))
            .expect_err("wide")
            .contains("at most 500 comparisons")
    );
    let many = |count: usize| format!("group in ({})", vec!["a"; count].join(","));
    let mut most = Select::all(&WIDGET);
    most.filter_by(&many(2_000)).expect("few enough");
    assert_eq!(found(&backend, &most).await, [""; 0]);
    assert!(filter(&many(2_001)).expect_err("many").contains("at most 2000 values"));
    let mut nested = CriterionOperation::default();
    for _ in 0..20 {
        nested = CriterionOperation {
            sub_operations: vec![nested],
            ..CriterionOperation::default()
        };
    }
    let refused = Select::all(&WIDGET).filter_by_operation(&nested).expect_err("deep");
    assert!(
        refused.to_string().contains("groups may be nested at most 16 deep"),
        "{refused}"
    );
}

/// Fields, conditions and groups are parts of one statement.
async fn all_that_is_asked_of_one_query_counts_together(backend: Backend) {
    let fields = |count: usize| vec!["group!=a"; count].join(",");
    let condition = |count: usize| vec!["group='a'"; count].join(" or ");
    let group = |count: usize| {
        let criterion = Criterion {
            field_name: "group".to_owned(),
            operator: IsNull,
            match_values: Vec::new(),
        };
        CriterionOperation {
            criterion: vec![criterion; count],
            ..CriterionOperation::default()
        }
    };
    let mut select = Select::all(&WIDGET);
    select.filter_by_fields(&fields(200)).expect("few enough");
    select.filter_by(&condition(200)).expect("few enough");
    select.filter_by_operation(&group(100)).expect("few enough");
    assert_eq!(found(&backend, &select).await, [""; 0]);
    for refused in [
        select.filter_by_fields(&fields(1)),
        select.filter_by(&condition(1)),
        select.filter_by_operation(&group(1)),
    ] {
        let refused = refused.expect_err("one more").to_string();
        assert!(refused.contains("at most 500 comparisons"), "{refused}");
    }
}

/// The query of one comparison.
fn select_by(field: &str, operator: CriterionOperator, values: &[Value]) -> Result<Select, String> {
    let criterion = Criterion {
        field_name: field.to_owned(),
        operator,
        match_values: values.to_vec(),
    };
    let operation = CriterionOperation {
        criterion: vec![criterion],
        ..CriterionOperation::default()
    };
    let mut select = Select::all(&WIDGET);
    let filtered = select.filter_by_operation(&operation);
    filtered.map(|()| select).map_err(|error| error.to_string())
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

async fn values_are_checked_by_the_columns_type(backend: Backend) {
    backend
        .write(
            widget("u1", "u1", 1).spec(json!({"order": 7, "rank": 2.0})).live(),
            at(0),
        )
        .await;
    for (field, operator, values) in [
        ("order", Equal, vec![Value::Int(7)]),
        ("spec.order", Equal, vec![text("7")]),
        ("rank", Equal, vec![Value::Int(2)]),
        ("metadata.name", In, vec![text("u1"), text("u2")]),
        ("metadata.creationTimestamp", GreaterThan, vec![text("2024-01-01")]),
        ("metadata.namespace", Like, vec![text("sh%")]),
        ("end_time", IsNull, vec![]),
    ] {
        let select = select_by(field, operator, &values).unwrap_or_else(|error| panic!("{field}: {error}"));
        assert_eq!(found(&backend, &select).await, ["u1"], "{field}");
    }
    let mut select = Select::all(&WIDGET);
    let everything = CriterionOperation::default();
    select.filter_by_operation(&everything).expect("nothing is asked");
    assert_eq!(found(&backend, &select).await, ["u1"]);
}

async fn what_cannot_be_compared_is_refused(_: Backend) {
    for (field, operator, values, words) in [
        (
            "order",
            Equal,
            vec![Value::Bool(true)],
            "column order: Bool(true) is not a value of Int32",
        ),
        (
            "order",
            Equal,
            vec![text("1 OR 1=1")],
            "\"1 OR 1=1\" is not a whole number",
        ),
        ("order", Equal, vec![Value::Null], "NULL cannot be compared"),
        ("order", Equal, vec![], "Equal takes 1 value, not 0"),
        ("order", In, vec![], "In takes 1 or more values, not 0"),
        ("order", IsNull, vec![Value::Int(1)], "IsNull takes no value, not 1"),
        ("order", Like, vec![Value::Int(1)], "LIKE compares texts"),
        ("rank", Equal, vec![Value::Double(f64::NAN)], "is not a value of Double"),
        (
            "spec.nothing",
            Equal,
            vec![Value::Int(1)],
            "Widget has no column \"spec.nothing\"",
        ),
    ] {
        let refused = select_by(field, operator, &values).expect_err(words);
        assert!(refused.contains(words), "{refused}");
    }
    let hollow = CriterionOperation {
        sub_operations: vec![CriterionOperation::default()],
        ..CriterionOperation::default()
    };
    let refused = Select::all(&WIDGET)
        .filter_by_operation(&hollow)
        .expect_err("nothing within");
    assert_eq!(refused.to_string(), "a nested group has no comparison");
}

async fn no_part_of_a_condition_is_sql(backend: Backend) {
    backend
        .write(widget("u1", "u1", 1).spec(json!({"group": "red"})).live(), at(0))
        .await;
    for text in [
        "x' OR '1'='1",
        "x\" OR \"\"=\"",
        "'); DROP TABLE widget; --",
        "?",
        "!%",
        "`",
        "x') UNION SELECT 1 -- ",
    ] {
        let quoted = format!("'{}'", text.replace('\'', "''"));
        for condition in [
            format!("group = {quoted}"),
            format!("group in ({quoted}, {quoted})"),
            format!("group like {quoted}"),
            format!("group = {quoted} or (group > zzz and group < {quoted})"),
        ] {
            let mut select = Select::all(&WIDGET);
            select.filter_by(&condition).expect("a value is any text");
            assert_eq!(found(&backend, &select).await, [""; 0], "{condition}");
        }
        let criterion = Criterion {
            field_name: text.to_owned(),
            operator: CriterionOperator::Equal,
            match_values: vec![Value::Int(1)],
        };
        let operation = CriterionOperation {
            criterion: vec![criterion],
            ..CriterionOperation::default()
        };
        Select::all(&WIDGET)
            .filter_by_operation(&operation)
            .expect_err("no column is called so");
    }
    let everything: Json = json!(found(&backend, &Select::all(&WIDGET)).await);
    assert_eq!(everything, json!(["u1"]));
}
