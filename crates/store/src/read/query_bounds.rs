//! What a typed query may cost: generated conditions, selectors, orders and tokens, each with a budget of memory and
//! allocations that follows from its size, and with a bounded statement. Seeds reproduce each of them.

use allocation_counter::measure;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kindex_query::{LabelSelector, Select};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::dialect::Dialect;
use crate::read::page;
use crate::statements::select::ToSql as _;
use crate::statements::typed_queries::KIND;

const RUNS: u64 = 400;
/// A comparison of three letters is a condition with its value; an error contains the whole text and a line below.
const HELD: u64 = 80;
const ALLOCATED: u64 = 200;
const FIXED_BYTES: u64 = 64 * 1024;
/// One mistyped name is compared with every name that there is, and each comparison frees what it took.
const SUGGESTION_BYTES: u64 = 1024 * 1024;
/// The text of the largest query: a hundred labels, 500 comparisons, 2,000 values, each with its sign.
const STATEMENT_BYTES_MAX: usize = 64 * 1024;

const WORDS: &[&str] = &[
    "name",
    "uid",
    "create_time",
    "=",
    "!=",
    "<",
    "like",
    "in",
    "(",
    ")",
    ",",
    "and",
    "or",
    "not",
    "is",
    "null",
    "'a'",
    "'%a%'",
    "\"",
    "'",
    "a",
    "é",
    "1",
    "not not",
    "name=a",
    "name in (a,b,c)",
    "or name=b",
    "and not name=c",
    "2026-01-01T00:00:00Z",
];

fn size(random: &mut StdRng) -> usize {
    1 << random.random_range(0..16)
}

/// Words in any order, or one group of them again and again.
fn condition(random: &mut StdRng) -> String {
    let bytes = size(random);
    let repeated = [
        "name=a or ",
        "(",
        "not ",
        "name in (",
        "a,",
        "name like '%' and ",
        "'",
        "((name=a) and ",
    ];
    match random.random_range(0..3) {
        0 => repeated.choose(random).expect("some").repeat(bytes / 4) + "name=a",
        1 => format!("name in ({})", vec!["a"; bytes / 2].join(",")),
        _ => {
            let mut text = String::new();
            while text.len() < bytes {
                text.push_str(WORDS.choose(random).expect("some"));
                text.push(' ');
            }
            text
        }
    }
}

/// The statement on each engine, where the question is one.
fn parameters(condition: &str, fields: &str, labels: &str, order: &str) -> Option<Vec<String>> {
    let mut select = Select::all(&KIND);
    select.filter_by(condition).ok()?;
    let _refused = select.filter_by_fields(fields);
    if let Ok(labels) = LabelSelector::parse(labels) {
        let _too_large = select.filter_by_labels(&labels);
    }
    let _unknown = select.order_by(order);
    Some(Dialect::ALL.map(|spelling| select.to_sql(spelling).sql).into())
}

#[test]
fn no_generated_question_costs_more_than_its_bytes_are_worth() {
    let mut is_asked = 0;
    for seed in 0..RUNS {
        let mut random = StdRng::seed_from_u64(seed);
        let condition = condition(&mut random);
        let fields = "metadata.name!=b,".repeat(size(&mut random) / 17);
        let labels = ["a,", "!a,", "a in (b,c),", "a=b,c!=d,", "a>1,b<2,"]
            .choose(&mut random)
            .expect("some");
        let labels = labels.repeat(size(&mut random) / 8) + "a";
        let order = "x".repeat(size(&mut random));
        let bytes = (condition.len() + fields.len() + labels.len() + order.len()) as u64;
        let mut outcome = None;
        let spent = measure(|| outcome = parameters(&condition, &fields, &labels, &order));
        let fixed = FIXED_BYTES + STATEMENT_BYTES_MAX as u64;
        assert!(
            spent.bytes_max <= fixed + HELD * bytes
                && spent.bytes_total <= fixed + SUGGESTION_BYTES + ALLOCATED * bytes,
            "seed {seed}: {spent:?} for {bytes} bytes"
        );
        for statement in outcome.into_iter().flatten() {
            is_asked += 1;
            assert!(
                statement.len() <= STATEMENT_BYTES_MAX,
                "seed {seed}: {} bytes",
                statement.len()
            );
        }
    }
    assert!(
        (1..Dialect::ALL.len() as u64 * RUNS).contains(&is_asked),
        "{is_asked} statements of {RUNS} questions"
    );
}

#[test]
fn no_generated_token_costs_more_than_its_bytes_are_worth() {
    for seed in 0..RUNS {
        let mut random = StdRng::seed_from_u64(seed);
        let repeated = ["[", "{\"Text\":", "\"Null\",", "{\"Int\":1},", "x", "\\u0000"];
        let cells = repeated
            .choose(&mut random)
            .expect("some")
            .repeat(size(&mut random) / 4);
        let json = format!("{{\"query\":\"q\",\"after\":[{cells}\"Null\"]}}");
        let token = URL_SAFE_NO_PAD.encode(json);
        let select = Select::all(&KIND);
        let mut outcome = None;
        let spent = measure(|| outcome = Some(page::read(&token, &select).is_err()));
        let most = FIXED_BYTES + HELD * token.len() as u64;
        assert!(
            spent.bytes_max <= most,
            "seed {seed}: {spent:?} for {} bytes",
            token.len()
        );
        assert_eq!(outcome, Some(true), "seed {seed}: nobody gave it out");
    }
}
