//! Label selectors, field selectors and conditions as people type them, on real rows: what SQL
//! finds is what a plain reading of the rules finds, and nothing typed is ever SQL.

use std::collections::BTreeMap;

use kindex_query::{LabelSelector, Reach, Select};
use kindex_store::StoreError;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use super::backend::Backend;
use super::widget::{WIDGET, at, soft_delete, widget};

scenarios!(
    random_selectors_find_what_kubernetes_would_find,
    numbers_of_labels_are_compared_as_kubernetes_does,
    a_selector_that_is_too_large_for_a_statement_is_refused,
    fields_are_selected_as_kubernetes_does,
    conditions_compare_as_sql_does,
    what_is_typed_is_never_sql,
);

const KEYS: [&str; 4] = ["team", "a", "example.com/tier", "in"];
const VALUES: [&str; 5] = ["", "a", "A", "in", "fraud-1"];

/// What decimal integers may look like, and what may look like them.
const NUMBERS: [&str; 10] = [
    "0",
    "7",
    "007",
    "8",
    "70",
    "9223372036854775807",
    "9223372036854775808",
    "7e1",
    "7.5",
    "",
];

/// One requirement, as it is meant and not as it is typed.
struct Wanted {
    key: &'static str,
    /// `None`: any value.
    values: Option<Vec<&'static str>>,
    present: bool,
}

impl Wanted {
    fn random(random: &mut StdRng) -> Self {
        let values: Vec<_> = VALUES.into_iter().filter(|_| random.random_bool(0.4)).collect();
        Self {
            key: KEYS[random.random_range(0..KEYS.len())],
            values: Some(values).filter(|values| !values.is_empty()),
            present: random.random_bool(0.5),
        }
    }

    fn matches(&self, labels: &BTreeMap<&str, &str>) -> bool {
        let found = match (labels.get(self.key), &self.values) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(value), Some(values)) => values.contains(value),
        };
        found == self.present
    }

    /// One of the ways to type it.
    fn text(&self, random: &mut StdRng) -> String {
        let key = self.key;
        match (&self.values, self.present) {
            (None, true) => key.to_owned(),
            (None, false) => format!("!{key}"),
            (Some(values), present) if values.len() == 1 && random.random_bool(0.7) => {
                let operators: &[&str] = if present { &["=", "==", " = "] } else { &["!=", " != "] };
                let operator = operators[random.random_range(0..operators.len())];
                format!("{key}{operator}{}", values[0])
            }
            (Some(values), present) => {
                let operator = if present { "in" } else { "notin" };
                // An empty value alone is typed as nothing between commas.
                let more = if values[..] == [""] { "," } else { "" };
                format!("{key} {operator} ({}{more})", values.join(", "))
            }
        }
    }
}

async fn random_selectors_find_what_kubernetes_would_find(backend: Backend) {
    const SEED: u64 = 20_261_121;
    let mut random = StdRng::seed_from_u64(SEED);
    let mut objects = Vec::new();
    for number in 0..60 {
        let mut labels = BTreeMap::new();
        for key in KEYS {
            if random.random_bool(0.6) {
                labels.insert(key, VALUES[random.random_range(0..VALUES.len())]);
            }
        }
        objects.push((format!("u{number:02}"), labels));
    }
    let batch: Vec<_> = objects
        .iter()
        .map(|(uid, labels)| {
            let bare = widget(uid, uid, 1);
            let labeled = labels
                .iter()
                .fold(bare, |object, (key, value)| object.label(key, value));
            labeled.live()
        })
        .collect();
    backend.write_all(&batch, at(0)).await;
    let mut matched = 0;
    for case in 0..120 {
        let wanted: Vec<_> = (0..random.random_range(1..4))
            .map(|_| Wanted::random(&mut random))
            .collect();
        let text: Vec<String> = wanted.iter().map(|wanted| wanted.text(&mut random)).collect();
        let text = text.join(",");
        let expected: Vec<&str> = objects
            .iter()
            .filter(|(_, labels)| wanted.iter().all(|wanted| wanted.matches(labels)))
            .map(|(uid, _)| uid.as_str())
            .collect();
        let mut select = Select::all(&WIDGET);
        let selector = LabelSelector::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        select.filter_by_labels(&selector).expect("small enough");
        assert_eq!(
            found(&backend, &select).await,
            expected,
            "seed {SEED}, case {case}: {text}"
        );
        let counted = backend.store.count_selected(&select).await.expect("a number");
        assert_eq!(counted, expected.len() as u64, "{text}");
        matched += expected.len();
    }
    assert!(matched > 200, "the selectors find something: {matched}");
}

async fn numbers_of_labels_are_compared_as_kubernetes_does(backend: Backend) {
    let labeled = |(number, value): (usize, &&str)| {
        let uid = format!("u{number}");
        widget(&uid, &uid, 1).label("rank", value).live()
    };
    let mut batch: Vec<_> = NUMBERS.iter().enumerate().map(labeled).collect();
    batch.push(widget("none", "none", 1).live());
    backend.write_all(&batch, at(0)).await;
    for (text, expected) in [
        ("rank>7", vec!["8", "70", "9223372036854775807"]),
        ("rank>6", vec!["7", "007", "8", "70", "9223372036854775807"]),
        ("rank<8", vec!["0", "7", "007"]),
        ("rank<007", vec!["0"]),
        ("rank>7,rank<70", vec!["8"]),
        ("rank<9223372036854775807", vec!["0", "7", "007", "8", "70"]),
        ("rank>9223372036854775806", vec!["9223372036854775807"]),
        ("rank>9223372036854775807", vec![]),
        ("rank<0", vec![]),
    ] {
        let selector = LabelSelector::parse(text).expect("a selector");
        let mut select = Select::all(&WIDGET);
        select.filter_by_labels(&selector).expect("small enough");
        let uids = NUMBERS.iter().enumerate().filter(|(_, value)| expected.contains(value));
        let uids: Vec<String> = uids.map(|(number, _)| format!("u{number}")).collect();
        assert_eq!(found(&backend, &select).await, uids, "{text}");
        let matched = NUMBERS.iter().filter(|value| selector.matches(|_| Some(**value)));
        assert_eq!(matched.count(), uids.len(), "SQL and the selector agree on {text}");
        assert_eq!(
            backend.store.count_selected(&select).await.expect("a number"),
            uids.len() as u64,
            "{text}"
        );
    }
}

async fn a_selector_that_is_too_large_for_a_statement_is_refused(backend: Backend) {
    let filtered = |text: &str| {
        let mut select = Select::all(&WIDGET);
        let selector = LabelSelector::parse(text).expect("a selector");
        let filtered = select.filter_by_labels(&selector).map_err(|error| error.to_string());
        filtered.map(|()| select)
    };
    let requirements = |count: usize| vec!["team!=a"; count].join(",");
    let values = |count: usize| {
        let values: Vec<String> = (0..count).map(|number| format!("v{number}")).collect();
        format!(
            "team in ({}),a notin ({})",
            values[..1_000].join(","),
            values[1_000..].join(",")
        )
    };
    for text in [requirements(100), values(2_000)] {
        assert_eq!(found(&backend, &filtered(&text).expect("small enough")).await, [""; 0]);
    }
    for (text, message) in [
        (requirements(101), "at most 100 requirements"),
        (values(2_001), "at most 2000 values"),
    ] {
        assert!(filtered(&text).expect_err("too large").contains(message), "{message}");
    }
}

/// The uids of the first page.
async fn found(backend: &Backend, select: &Select) -> Vec<String> {
    let page = backend.store.select(select, None).await.expect("a page");
    let uids = page.items.iter().map(|item| item.object.metadata.uid.to_string());
    uids.collect()
}

/// Rows that differ in every column, some of them without a value.
async fn fill(backend: &Backend) {
    let full = |uid: &str, group: &str, order: i64| {
        let spec = json!({"group": group, "order": order, "key": order * 10, "rank": 0.5 * order as f64});
        let status = json!({"ready": order == 1, "endTime": format!("2024-02-2{order}T12:00:00Z")});
        widget(uid, uid, 1).spec(spec).status(status).live()
    };
    let empty = widget("c", "c", 1).spec(json!({"group": ""})).live();
    let gone = soft_delete("e");
    let batch = [
        full("a", "red", 1),
        full("b", "it's, ok", 2),
        empty,
        widget("d", "d", 1).live(),
    ];
    backend.write_all(&batch, at(0)).await;
    backend.write_all(&[full("e", "red", 3)], at(0)).await;
    backend.write_all(&[gone], at(1)).await;
}

async fn fields_are_selected_as_kubernetes_does(backend: Backend) {
    fill(&backend).await;
    for (selector, expected) in [
        ("", "abcde"),
        ("metadata.name=a", "a"),
        ("metadata.name==a,metadata.namespace=shop", "a"),
        ("metadata.name!=a", "bcde"),
        ("metadata.namespace!=shop", ""),
        ("spec.group=red", "ae"),
        ("group=red,order!=1", "e"),
        ("spec.group!=red", "bcd"),
        ("spec.group=", "cd"),
        ("spec.group!=", "abe"),
        (r"spec.group=it's\, ok", "b"),
        ("order=", "cd"),
        ("order!=2", "acde"),
        ("status.ready=true", "a"),
        ("metadata.resourceVersion=1", "abcde"),
    ] {
        let mut select = Select::all(&WIDGET);
        select
            .filter_by_fields(selector)
            .unwrap_or_else(|error| panic!("{selector}: {error}"));
        assert_eq!(found(&backend, &select).await.concat(), expected, "{selector}");
    }
    for (selector, words) in [
        (
            "metadata.name",
            "invalid selector: 'metadata.name'; can't understand 'metadata.name'",
        ),
        ("a=1,b", "field label not supported: a"),
        ("spec.color=red", "field label not supported: spec.color"),
        ("=x", "field label not supported: "),
        ("group=a=b", "invalid field selector: unescaped character in value: ="),
        (r"group=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("order=x", "column order: \"x\" is not a whole number"),
    ] {
        let refused = Select::all(&WIDGET).filter_by_fields(selector).expect_err(selector);
        assert_eq!(refused.to_string(), words, "{selector}");
    }
}

async fn conditions_compare_as_sql_does(backend: Backend) {
    fill(&backend).await;
    for (condition, expected) in [
        ("group=red", "ae"),
        ("group = 'it''s, ok'", "b"),
        ("group in (red, 'it''s, ok')", "abe"),
        ("group IN ( red )", "ae"),
        ("group!=red", "bc"),
        ("group is null", "d"),
        ("group is not null", "abce"),
        ("spec.order>=2", "be"),
        ("order < 2", "a"),
        ("key in (10,30)", "ae"),
        ("rank<=1", "ab"),
        ("ready=true", "a"),
        ("end_time>2024-02-22", "be"),
        ("end_time=2024-02-21T13:00:00+01:00", "a"),
        ("uid>c", "de"),
        ("delete_time is not null", "e"),
    ] {
        let mut select = Select::all(&WIDGET);
        select
            .filter_by(condition)
            .unwrap_or_else(|error| panic!("{condition}: {error}"));
        assert_eq!(found(&backend, &select).await.concat(), expected, "{condition}");
    }
    let mut select = Select::all(&WIDGET);
    select.order_by("rank:desc").expect("a column");
    select.order_by("metadata.name").expect("a path");
    assert_eq!(found(&backend, &select).await.concat(), "ebacd");
    assert_eq!(select.reach(), Reach::Sort("rank"));
}

async fn what_is_typed_is_never_sql(backend: Backend) {
    fill(&backend).await;
    let injections = [
        "x' OR '1'='1",
        "x'; DROP TABLE widget; --",
        "x\\' OR 1=1 -- ",
        "\" OR \"\"=\"",
        "`",
        "x') UNION SELECT uid FROM widget -- ",
        "%",
        "\u{2019} OR 1=1",
        "?",
    ];
    for text in injections {
        let quoted = format!("'{}'", text.replace('\'', "''"));
        for condition in [format!("group={quoted}"), format!("group in ({quoted}, {quoted})")] {
            let mut select = Select::all(&WIDGET);
            select.filter_by(&condition).expect("a value is any text");
            assert_eq!(found(&backend, &select).await, [""; 0], "{condition}");
        }
        let escaped = text.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=");
        let mut select = Select::all(&WIDGET);
        select.filter_by_fields(&format!("group={escaped}")).expect("escaped");
        assert_eq!(found(&backend, &select).await, [""; 0], "{text}");
        LabelSelector::parse(&format!("team={text}")).expect_err("no label has such a value");
        LabelSelector::parse(&format!("{text}=a")).expect_err("no label has such a key");
        Select::all(&WIDGET)
            .filter_by(&format!("{text}=1"))
            .expect_err("no column is called so");
        Select::all(&WIDGET).order_by(text).expect_err("no column is called so");
        Select::all(&WIDGET)
            .order_by(&format!("name:{text}"))
            .expect_err("no direction");
        Select::all(&WIDGET)
            .filter_by(&format!("order={text}"))
            .expect_err("no number");
        Select::all(&WIDGET)
            .filter_by(&format!("end_time>{text}"))
            .expect_err("no time");
        let token = backend.store.select(&Select::all(&WIDGET), Some(text)).await;
        assert!(matches!(token, Err(StoreError::Continue(_))), "{text}: {token:?}");
    }
    assert_eq!(found(&backend, &Select::all(&WIDGET)).await.concat(), "abcde");
}
