//! Questions as large as they may be, which every engine answers, and one more, which none is asked: engines join 61
//! tables, nest a thousand words and take so many parameters. Continue tokens that somebody made up.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kindex_query::{LabelSelector, Select};
use kindex_store::StoreError;
use serde_json::{Value as Json, json};

use super::backend::Backend;
use super::conditions::found;
use super::widget::{WIDGET, at, widget};

scenarios!(
    a_selector_of_a_hundred_requirements_is_answered,
    a_label_may_have_one_of_two_thousand_values,
    as_many_comparisons_as_there_may_be_are_answered,
    a_token_that_was_made_up_is_refused_or_bound,
);

/// `k0=v`, `k1=v` and so on.
fn equalities(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("k{number}=v")).collect()
}

fn labeled(selector: &str) -> Select {
    let mut select = Select::all(&WIDGET);
    select
        .filter_by_labels(&LabelSelector::parse(selector).expect("a selector"))
        .expect("small enough");
    select
}

/// Why a selector is too large for a query.
fn too_large(selector: &str) -> String {
    let mut select = Select::all(&WIDGET);
    let refused = select.filter_by_labels(&LabelSelector::parse(selector).expect("a selector"));
    refused.expect_err("too large").to_string()
}

async fn a_selector_of_a_hundred_requirements_is_answered(backend: Backend) {
    let with = |uid: &str, labels: usize| {
        let object = widget(uid, uid, 1);
        (0..labels)
            .fold(object, |object, number| object.label(&format!("k{number}"), "v"))
            .live()
    };
    backend.write_all(&[with("a", 100), with("b", 99)], at(0)).await;
    for (selector, expected) in [
        (equalities(61).join(","), "ab"),
        (equalities(100).join(","), "a"),
        (equalities(99).join(",") + ",!k99", "b"),
        (equalities(100).join(",").replace("=v", ""), "a"),
        (equalities(100).join(",").replace("=v", "!=w"), "ab"),
        (equalities(100).join(",").replace("=v", " notin (u,w)"), "ab"),
        (equalities(100).join(",").replace("=v", " in (u,v,w)"), "a"),
    ] {
        let mut select = labeled(&selector);
        assert_eq!(found(&backend, &select).await.concat(), expected, "{selector}");
        let counted = backend.store.count_selected(&select).await.expect("a number");
        assert_eq!(counted, expected.len() as u64, "{selector}");
        select.filter_by("group is null").expect("a condition");
        select.order_by("name:desc").expect("a column");
        let backwards: String = expected.chars().rev().collect();
        assert_eq!(found(&backend, &select).await.concat(), backwards, "{selector}");
    }
    let refused = too_large(&equalities(101).join(","));
    assert!(
        refused.starts_with("a selector has at most 100 requirements: "),
        "{refused}"
    );
}

async fn a_label_may_have_one_of_two_thousand_values(backend: Backend) {
    backend
        .write(widget("a", "a", 1).label("team", "v1999").live(), at(0))
        .await;
    let list = |values: usize| {
        let values: Vec<String> = (0..values).map(|number| format!("v{number}")).collect();
        values.join(",")
    };
    for (operator, expected) in [("in", "a"), ("notin", "")] {
        let select = labeled(&format!("team {operator} ({})", list(2_000)));
        assert_eq!(found(&backend, &select).await.concat(), expected, "{operator}");
    }
    let refused = too_large(&format!("team in ({}),team in (more)", list(2_000)));
    assert!(refused.starts_with("a selector has at most 2000 values: "), "{refused}");
}

/// In one text or in several, by whichever way they are typed: what counts is the query.
async fn as_many_comparisons_as_there_may_be_are_answered(backend: Backend) {
    backend.write(widget("a", "a", 1).live(), at(0)).await;
    for word in [" or ", " and "] {
        let mut select = labeled(&equalities(100).join(",").replace("=v", "!=v"));
        select
            .filter_by(&vec!["not name='b'"; 250].join(word))
            .expect("few enough");
        let fields = vec!["metadata.name!=b"; 249].join(",");
        select.filter_by_fields(&fields).expect("few enough");
        select.filter_by("name like 'a%'").expect("few enough");
        assert_eq!(found(&backend, &select).await, ["a"], "{word}");
        for refused in [select.filter_by("name=a"), select.filter_by_fields("metadata.name=a")] {
            let refused = refused.expect_err("one too many").to_string();
            assert!(refused.contains("a query has at most 500 comparisons"), "{refused}");
        }
    }
    let refused = Select::all(&WIDGET).filter_by_fields("metadata.creationTimestamp=-009000-01-01T00:00:00Z");
    let refused = refused.expect_err("no server compares it").to_string();
    assert!(refused.contains("beyond the years"), "{refused}");
}

async fn a_token_that_was_made_up_is_refused_or_bound(backend: Backend) {
    let row = |uid: &str| {
        widget(uid, uid, 1)
            .status(json!({"endTime": "2024-01-01T00:00:00Z"}))
            .live()
    };
    backend.write_all(&[row("a"), row("b"), row("c")], at(0)).await;
    let mut select = Select::all(&WIDGET);
    for column in ["end_time", "rank:desc", "group", "order"] {
        select.order_by(column).expect("a column");
    }
    select.limit(1);
    let token = backend
        .store
        .select(&select, None)
        .await
        .expect("a page")
        .continue_token;
    let token = URL_SAFE_NO_PAD.decode(token.expect("another page")).expect("base64");
    let token: Json = serde_json::from_slice(&token).expect("JSON");
    let cells = [
        json!("Null"),
        json!({"Bool": true}),
        json!({"Int": i64::MIN}),
        json!({"Double": f64::NAN.to_bits()}),
        json!({"Double": f64::MIN.to_bits()}),
        json!({"Text": "x' OR 1=1 -- "}),
        json!({"Text": "\u{0}\u{10ffff}".repeat(100_000)}),
        json!({"Time": "-009999-01-01T00:00:00Z"}),
        json!({"Time": "9999-12-30T22:00:00Z"}),
        json!({"Nothing": 1}),
        json!([[[[]]]]),
    ];
    for place in 0..5 {
        for cell in &cells {
            let mut made_up = token.clone();
            made_up["after"][place] = cell.clone();
            refused_or_bound(&backend, &select, &made_up).await;
        }
    }
    for shape in [json!({}), json!({"query": token["query"], "after": []}), json!([0])] {
        refused_or_bound(&backend, &select, &shape).await;
    }
    let mut longer = token.clone();
    longer["after"] = Json::Array(vec![json!("Null"); 100_000]);
    refused_or_bound(&backend, &select, &longer).await;
    let deep = "[".repeat(1_000_000);
    let refused = backend.store.select(&select, Some(&URL_SAFE_NO_PAD.encode(deep))).await;
    assert!(matches!(refused, Err(StoreError::Continue(_))), "{refused:?}");
}

async fn refused_or_bound(backend: &Backend, select: &Select, token: &Json) {
    let text = URL_SAFE_NO_PAD.encode(token.to_string());
    let answer = backend.store.select(select, Some(&text)).await;
    let shown: String = token.to_string().chars().take(300).collect();
    match answer {
        Ok(_) | Err(StoreError::Continue(_)) => {}
        Err(error) => panic!("{shown}: {error}"),
    }
}
