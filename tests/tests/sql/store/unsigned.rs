//! Unsigned numbers of 64 bits: each has its value and its order on every engine, on both sides of 2^63, where signed
//! numbers end. What is found is held against the plain order of `u64`.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kindex_model::kind::{Migration, Registry};
use kindex_model::value::Value;
use kindex_query::{Criterion, CriterionOperation, CriterionOperator, Page, Select, Stored};
use kindex_store::progress::NoProgress;
use kindex_store::{Address, MetadataStorage, MigrateOptions, StoreError};
use kindex_tests::databases::patient;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use super::backend::Backend;
use super::pages::widgets::{Query, constants};
use super::widget::{REGISTRY, WIDGET, at, widget};

scenarios!(
    numbers_come_back_as_they_were,
    pages_have_the_order_of_the_numbers,
    comparisons_find_what_plain_numbers_say,
    builders_and_field_selectors_take_large_numbers,
    numbers_of_other_types_are_compared_by_their_value,
    what_is_no_unsigned_number_is_refused,
    a_token_without_an_unsigned_number_is_refused,
    columns_of_earlier_releases_are_filled,
);

const SEED: u64 = 20_261_123;
const BORDER: u64 = 1 << 63;
const EDGES: [u64; 8] = [0, 1, 7, BORDER - 1, BORDER, BORDER + 1, u64::MAX - 1, u64::MAX];

/// Objects with these numbers, `u000` and on, as JSON numbers and as texts by turns; the last one has none.
async fn fill(backend: &Backend, numbers: &[u64]) {
    let mut batch = Vec::new();
    for (at, number) in numbers.iter().enumerate() {
        let size = if at % 2 == 0 {
            json!(number)
        } else {
            json!(number.to_string())
        };
        let uid = format!("u{at:03}");
        batch.push(widget(&uid, &uid, 1 + at as u64).spec(json!({ "size": size })).live());
    }
    batch.push(widget("without", "without", 1).live());
    backend.write_all(&batch, at(0)).await;
}

fn random_numbers(random: &mut StdRng) -> Vec<u64> {
    let mut numbers = EDGES.to_vec();
    numbers.extend((0..40).map(|_| {
        let near = *EDGES.choose(random).expect("some");
        match random.random_range(0..3) {
            0 => random.random(),
            1 => near.wrapping_add(random.random_range(0..4)),
            _ => near,
        }
    }));
    numbers
}

fn number(stored: &Stored) -> Option<u64> {
    let json: serde_json::Value = serde_json::from_str(stored.object.text()).expect("an object");
    let size = &json["spec"]["size"];
    size.as_u64().or_else(|| size.as_str()?.parse().ok())
}

async fn numbers_come_back_as_they_were(backend: Backend) {
    fill(&backend, &EDGES).await;
    let query = Query::all().allow_scan();
    let rows = query.select((constants::UID, constants::SIZE));
    let rows = rows.fetch(&*backend.store).await;
    let found: BTreeMap<String, Option<u64>> = rows.expect("a page").items.into_iter().collect();
    for (at, number) in EDGES.iter().enumerate() {
        assert_eq!(found[&format!("u{at:03}")], Some(*number));
    }
    assert_eq!(found["without"], None);
    // What others read.
    let read = "SELECT size FROM widget WHERE size IS NOT NULL ORDER BY size";
    let Some(rows) = backend.rows(read).await else { return };
    let shown: Vec<String> = rows.into_iter().flatten().flatten().collect();
    let digits = |number: &u64| match &backend.address {
        Address::Sqlite(_) if *number >= BORDER => format!("{number:020}"),
        Address::Sqlite(_) | Address::MySql(_) => number.to_string(),
    };
    assert_eq!(shown, EDGES.iter().map(digits).collect::<Vec<_>>());
}

async fn pages_have_the_order_of_the_numbers(backend: Backend) {
    let mut random = StdRng::seed_from_u64(SEED);
    let numbers = random_numbers(&mut random);
    fill(&backend, &numbers).await;
    let mut ordered: Vec<Option<u64>> = numbers.iter().copied().map(Some).chain([None]).collect();
    for order in ["size", "size:desc"] {
        ordered.sort_unstable();
        if order.ends_with("desc") {
            ordered.reverse();
        }
        for limit in [1, 3, 100] {
            let mut select = Select::all(&WIDGET);
            select.order_by(order).expect("a column");
            select.allow_scan();
            select.limit(limit);
            let (mut found, mut token) = (Vec::new(), None::<String>);
            loop {
                let page: Page = backend.store.select(&select, token.as_deref()).await.expect("a page");
                found.extend(page.items.iter().map(number));
                token = page.continue_token;
                if token.is_none() {
                    break;
                }
            }
            assert_eq!(found, ordered, "seed {SEED}: {order}, pages of {limit}");
        }
    }
}

fn holds(operator: CriterionOperator, held: u64, values: &[u64]) -> bool {
    use CriterionOperator as Is;
    match operator {
        Is::Equal | Is::In => values.contains(&held),
        Is::NotEqual | Is::NotIn => !values.contains(&held),
        Is::GreaterThan => held > values[0],
        Is::GreaterThanOrEqualTo => held >= values[0],
        Is::LessThan => held < values[0],
        Is::LessThanOrEqualTo => held <= values[0],
        Is::Like | Is::IsNull | Is::IsNotNull => unreachable!("not asked for"),
    }
}

async fn found(backend: &Backend, select: &Select) -> Vec<u64> {
    let page = backend.store.select(select, None).await.expect("a page");
    let mut found: Vec<u64> = page.items.iter().filter_map(number).collect();
    found.sort_unstable();
    found
}

fn compared(operator: CriterionOperator, values: Vec<Value>) -> CriterionOperation {
    CriterionOperation {
        criterion: vec![Criterion {
            field_name: "spec.size".to_owned(),
            operator,
            match_values: values,
        }],
        ..CriterionOperation::default()
    }
}

async fn comparisons_find_what_plain_numbers_say(backend: Backend) {
    use CriterionOperator as Is;
    let mut random = StdRng::seed_from_u64(SEED);
    let numbers = random_numbers(&mut random);
    fill(&backend, &numbers).await;
    let signs = [
        (Is::Equal, "="),
        (Is::NotEqual, "!="),
        (Is::GreaterThan, ">"),
        (Is::GreaterThanOrEqualTo, ">="),
        (Is::LessThan, "<"),
        (Is::LessThanOrEqualTo, "<="),
    ];
    for (operator, sign) in signs {
        for value in EDGES {
            let mut wanted: Vec<u64> = numbers
                .iter()
                .copied()
                .filter(|held| holds(operator, *held, &[value]))
                .collect();
            wanted.sort_unstable();
            let mut typed = Select::all(&WIDGET);
            typed.filter_by(&format!("size {sign} {value}")).expect("a condition");
            assert_eq!(
                found(&backend, &typed).await,
                wanted,
                "seed {SEED}: size {sign} {value}"
            );
            let mut select = Select::all(&WIDGET);
            let operation = compared(operator, vec![Value::UInt(value)]);
            select.filter_by_operation(&operation).expect("a condition");
            assert_eq!(found(&backend, &select).await, wanted, "seed {SEED}: {operation:?}");
        }
    }
    for (operator, word) in [(Is::In, "in"), (Is::NotIn, "not in")] {
        let list: Vec<u64> = (0..4).map(|_| *numbers.choose(&mut random).expect("some")).collect();
        let texts: Vec<String> = list.iter().map(u64::to_string).collect();
        let mut select = Select::all(&WIDGET);
        let text = format!("size {word} ({})", texts.join(", "));
        select.filter_by(&text).expect("a condition");
        let mut wanted: Vec<u64> = numbers
            .iter()
            .copied()
            .filter(|held| holds(operator, *held, &list))
            .collect();
        wanted.sort_unstable();
        assert_eq!(found(&backend, &select).await, wanted, "seed {SEED}: {text}");
    }
}

async fn builders_and_field_selectors_take_large_numbers(backend: Backend) {
    let mut random = StdRng::seed_from_u64(SEED);
    let numbers = random_numbers(&mut random);
    fill(&backend, &numbers).await;
    let built = Query::all()
        .size()
        .ge(BORDER)
        .order_by(constants::SIZE)
        .asc()
        .limit(500);
    let built: Vec<u64> = built
        .fetch(&*backend.store)
        .await
        .expect("a page")
        .items
        .iter()
        .filter_map(number)
        .collect();
    let mut wanted: Vec<u64> = numbers.iter().copied().filter(|held| *held >= BORDER).collect();
    wanted.sort_unstable();
    assert_eq!(built, wanted);
    let mut field = Select::all(&WIDGET);
    field
        .filter_by_fields("spec.size=18446744073709551615")
        .expect("a selector");
    let largest = numbers.iter().filter(|held| **held == u64::MAX).count();
    assert_eq!(found(&backend, &field).await, vec![u64::MAX; largest]);
}

async fn numbers_of_other_types_are_compared_by_their_value(backend: Backend) {
    fill(&backend, &EDGES).await;
    for value in [Value::Int(7), Value::UInt(7), Value::Text("7".to_owned())] {
        let mut select = Select::all(&WIDGET);
        let operation = compared(CriterionOperator::Equal, vec![value]);
        select.filter_by_operation(&operation).expect("a condition");
        assert_eq!(found(&backend, &select).await, [7], "{operation:?}");
    }
}

async fn what_is_no_unsigned_number_is_refused(backend: Backend) {
    let wanted = "a whole number from 0 to 18446744073709551615";
    for text in ["-1", "18446744073709551616", "1.5", "x"] {
        let mut select = Select::all(&WIDGET);
        let refused = select
            .filter_by(&format!("name = a and size > {text}"))
            .expect_err(text);
        let message = format!("column size: \"{text}\" is not {wanted}\n  name = a and size > {text}\n");
        assert_eq!(refused.to_string(), format!("{message}  {}^", " ".repeat(20)));
        let refused = select.filter_by_fields(&format!("spec.size={text}")).expect_err(text);
        assert_eq!(refused.to_string(), format!("column size: \"{text}\" is not {wanted}"));
    }
    for (field, value, message) in [
        ("size", Value::Int(-1), format!("column size: \"-1\" is not {wanted}")),
        (
            "key",
            Value::UInt(BORDER),
            "column key: \"9223372036854775808\" is not a whole number".to_owned(),
        ),
    ] {
        let mut operation = compared(CriterionOperator::LessThan, vec![value]);
        field.clone_into(&mut operation.criterion[0].field_name);
        let refused = Select::all(&WIDGET).filter_by_operation(&operation);
        assert_eq!(refused.expect_err(field).to_string(), message);
    }
    // In an object it is NULL, and a problem that says so.
    for size in [
        json!(-1),
        json!(1.5),
        json!("18446744073709551616"),
        json!("x"),
        json!(true),
    ] {
        let version = widget("u", "u", 1).spec(json!({ "size": size })).project();
        assert_eq!(version.columns.last(), Some(&Value::Null), "{size}");
        assert_eq!(version.problems.len(), 1, "{size}");
        let message = format!("cannot read {size} as UInt64");
        assert_eq!(
            (version.problems[0].path.as_str(), &version.problems[0].message),
            ("spec.size", &message)
        );
        backend
            .write(widget("u", "u", 1).spec(json!({ "size": size })).live(), at(0))
            .await;
    }
}

async fn a_token_without_an_unsigned_number_is_refused(backend: Backend) {
    fill(&backend, &EDGES).await;
    let mut select = Select::all(&WIDGET);
    select.order_by("size:desc").expect("a column");
    select.allow_scan();
    select.limit(2);
    let page = backend.store.select(&select, None).await.expect("a page");
    let token = URL_SAFE_NO_PAD
        .decode(page.continue_token.expect("more"))
        .expect("base64");
    let token = String::from_utf8(token).expect("JSON");
    let cell = format!("{{\"UInt\":{}}}", u64::MAX - 1);
    assert!(token.contains(&cell), "{token}");
    for forged in ["{\"Int\":-2}", "{\"UInt\":18446744073709551616}", "{\"Text\":\"7\"}"] {
        let forged = URL_SAFE_NO_PAD.encode(token.replace(&cell, forged));
        let refused = backend.store.select(&select, Some(&forged)).await;
        assert!(matches!(refused, Err(StoreError::Continue(_))), "{refused:?}");
    }
}

/// What `kindex plan` writes for a lock that lacks the line of `size`.
const WIDENED: &[Migration] = &[
    Migration {
        number: 1,
        name: "initial",
        compatible: 1,
        texts: &[("mysql", "-- 0001_initial\n"), ("sqlite", "-- 0001_initial\n")],
        checksum: "one",
    },
    Migration {
        number: 2,
        name: "change_column_widget_size",
        compatible: 1,
        texts: &[
            ("mysql", "-- step: fill widget size\n"),
            (
                "sqlite",
                "-- step: drop-key widget widget_size\nDROP INDEX IF EXISTS `widget_size`;\n\
                 -- step: drop-column widget size\nALTER TABLE `widget` DROP COLUMN `size`;\n\
                 -- step: add-column widget size\nALTER TABLE `widget` ADD COLUMN `size` ANY;\n\
                 -- step: add-key widget widget_size\n\
                 CREATE INDEX IF NOT EXISTS `widget_size` ON `widget` (`size`, `uid`);\n\
                 -- step: fill widget size\n",
            ),
        ],
        checksum: "two",
    },
];

async fn columns_of_earlier_releases_are_filled(backend: Backend) {
    let open = |migrations| -> Arc<dyn MetadataStorage> {
        let registry = Registry { migrations, ..REGISTRY };
        kindex_store::open(&backend.address, registry, &patient()).expect("the address is right")
    };
    if backend.rows("SELECT 1").await.is_none() {
        return;
    }
    open(&WIDENED[..1]).prepare().await.expect("taken up");
    fill(&backend, &EDGES).await;
    let made = match &backend.address {
        Address::Sqlite(_) => vec![
            "DROP INDEX widget_size",
            "ALTER TABLE widget DROP COLUMN size",
            "ALTER TABLE widget ADD COLUMN size INTEGER",
            "CREATE INDEX widget_size ON widget (size, uid)",
            "UPDATE widget SET size = 7 WHERE uid = 'u002'",
        ],
        Address::MySql(_) => vec!["UPDATE widget SET size = NULL WHERE uid <> 'u002'"],
    };
    for statement in made {
        backend.rows(statement).await;
    }
    let store = open(WIDENED);
    store
        .migrate(&MigrateOptions::default(), &NoProgress)
        .await
        .expect("migrated");
    store.prepare().await.expect("current");
    for (at, number) in EDGES.iter().enumerate() {
        let mut select = Select::all(&WIDGET);
        select.filter_by(&format!("size = {number}")).expect("a condition");
        let page = store.select(&select, None).await.expect("a page");
        let uids: Vec<&str> = page.items.iter().map(|item| &*item.object.metadata.uid.0).collect();
        assert_eq!(uids, [format!("u{at:03}")]);
    }
}
