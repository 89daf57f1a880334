//! Which paths are read, what they find, and which are refused.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use super::*;

/// More than any of these paths takes.
const STEPS: usize = 100;

fn find(path: &str, value: &Value) -> Vec<String> {
    let path = JsonPath::parse(path).unwrap();
    let found = path.walk(value, &mut STEPS.clone()).unwrap_or_default();
    found.iter().map(ToString::to_string).collect()
}

fn pod() -> Value {
    json!({"spec": {"replicas": 3, "list": [10, 20, 30], "names": [{"n": "a"}, {"n": "b"}]},
        "metadata": {"labels": {"app.kubernetes.io/name": "x"}},
        "status": {"conditions": [{"type": "Ready", "status": "True", "n": 1}, {"type": "Live", "status": "False", "n": 2}]}})
}

/// How many filters stand inside each other.
fn depth(path: &JsonPath) -> usize {
    let of_step = |step: &Step| match step {
        Step::Filter(Filter { left, test }) => match test {
            Test::Compare(_, Operand::Path(right)) => 1 + depth(left).max(depth(right)),
            Test::Compare(_, Operand::Literal(_)) | Test::Exists => 1 + depth(left),
        },
        Step::Field(_) | Step::Wildcard | Step::Slice { .. } => 0,
    };
    path.steps.iter().map(of_step).max().unwrap_or_default()
}

/// Reading a path takes no more of the stack than three filters do, whatever the path says: quotes that hide a closing
/// parenthesis from the filters around it show it to others.
#[test]
fn no_more_than_three_filters_stand_inside_each_other() {
    let three = r#".a"'"[?(.a'"[?(.a"[?(x)].b'")].b'")].b""#;
    assert_eq!(JsonPath::parse(three).map(|path| depth(&path)), Ok(3));

    const QUOTES: [&str; 8] = ["", "'", "\"", "'\"", "\"'", "\\'", "'\"'", "\"'\""];
    const COMPARISONS: [&str; 3] = ["", "==@.b", "==.c"];
    let (mut random, mut read) = (StdRng::seed_from_u64(1), 0);
    for _ in 0..20_000 {
        let filters = random.random_range(1..=6);
        let mut part = |parts: &[&'static str]| *parts.choose(&mut random).expect("some");
        let text = (0..filters).fold("x".to_owned(), |inner, _| {
            let (before, after) = (part(&QUOTES), part(&QUOTES));
            format!(".a{before}[?({inner}{})].b{after}", part(&COMPARISONS))
        });
        if let Ok(path) = JsonPath::parse(&text) {
            assert!(depth(&path) <= 3, "{text}");
            read += 1;
        }
    }
    assert!(read > 1_000, "{read} were read");
    let nested = (0..10_000).fold("x".to_owned(), |inner, at| {
        let quote = if at % 2 == 0 { '\'' } else { '"' };
        format!(".a{quote}[?({inner})].b{quote}")
    });
    assert!(JsonPath::parse(&nested).is_err());
}

#[test]
fn fields_with_and_without_leading_dot_and_braces() {
    for path in [
        ".spec.replicas",
        "spec.replicas",
        "{.spec.replicas}",
        "$.spec.replicas",
        ".spec['replicas']",
    ] {
        assert_eq!(find(path, &pod()), ["3"], "{path}");
    }
}

#[test]
fn keys_with_dots_are_quoted_or_escaped() {
    assert_eq!(find(r".metadata.labels['app.kubernetes.io/name']", &pod()), [r#""x""#]);
    assert_eq!(find(r".metadata.labels.app\.kubernetes\.io/name", &pod()), [r#""x""#]);
}

#[test]
fn indices_slices_and_wildcards() {
    assert_eq!(find(".spec.list[0]", &pod()), ["10"]);
    assert_eq!(find(".spec.list[-1]", &pod()), ["30"]);
    assert_eq!(find(".spec.list[1:]", &pod()), ["20", "30"]);
    assert_eq!(find(".spec.list[0:2]", &pod()), ["10", "20"]);
    assert_eq!(find(".spec.list[::2]", &pod()), ["10", "30"]);
    assert_eq!(find(".spec.names[*].n", &pod()), [r#""a""#, r#""b""#]);
    assert_eq!(find(".metadata.labels.*", &pod()), [r#""x""#]);
}

#[test]
fn filters_compare_and_test_for_existence() {
    assert_eq!(
        find(r#".status.conditions[?(@.type=="Ready")].status"#, &pod()),
        [r#""True""#]
    );
    assert_eq!(
        find(r".status.conditions[?(@.type=='Live')].status", &pod()),
        [r#""False""#]
    );
    assert_eq!(find(r".status.conditions[?(@.n>1)].type", &pod()), [r#""Live""#]);
    assert_eq!(find(r".status.conditions[?(@.type!='Live')].n", &pod()), ["1"]);
    assert_eq!(find(r".status.conditions[?(@.n)].n", &pod()), ["1", "2"]);
    assert_eq!(find(r".status.conditions[?(@.x)].n", &pod()), [""; 0]);
}

#[test]
fn a_path_that_does_not_fit_finds_nothing() {
    for path in [
        ".spec.none",
        ".spec.list[7]",
        ".spec.replicas[0]",
        ".status[?(@.a=='x')]",
        ".status.conditions[?(@.n=='x')]",
    ] {
        assert_eq!(find(path, &pod()), [""; 0], "{path}");
    }
}

#[test]
fn only_the_first_result_counts_for_a_column() {
    let path = JsonPath::parse(".spec.list[*]").unwrap();
    assert_eq!(path.first(&pod(), &mut STEPS.clone()), Some(&json!(10)));
}

#[test]
fn rejects_what_it_does_not_support() {
    let error = |text: &str| JsonPath::parse(text).unwrap_err();
    assert_eq!(error(".a[0"), PathError::UnclosedBracket);
    assert_eq!(error(".a[?(@.b=='c']"), PathError::UnclosedFilter);
    assert_eq!(error(".a[x]"), PathError::InvalidIndex("x".to_owned()));
    assert_eq!(error(".a[]"), PathError::InvalidIndex(String::new()));
    assert_eq!(error("..a"), PathError::Unsupported("recursive descent"));
    assert_eq!(error(".a['b','c']"), PathError::Unsupported("a union"));
}

#[test]
fn indices_and_slices_end_at_their_list() {
    for (path, found) in [
        (".spec.list[-3]", vec!["10"]),
        (".spec.list[-4]", vec![]),
        (".spec.list[3]", vec![]),
        (".spec.list[1:1]", vec![]),
        (".spec.list[1:4]", vec![]),
        (".spec.list[2:1]", vec![]),
        (".spec.list[-2:]", vec!["20", "30"]),
        (".spec.list[:-1]", vec!["10", "20"]),
        (".spec.list.*", vec!["10", "20", "30"]),
        (".spec.list.[0]", vec!["10"]),
        (".spec.replicas.", vec!["3"]),
    ] {
        assert_eq!(find(path, &pod()), found, "{path}");
    }
}

/// What holds nothing is no misfit, which would end the whole path.
#[test]
fn empty_lists_and_nulls_are_passed_over() {
    let value = json!({"rows": [{"a": []}, {"a": null}, {"a": [1, 2]}]});
    for (path, found) in [(".rows[*].a[*]", vec!["1", "2"]), (".rows[1:].a[0]", vec!["1"])] {
        assert_eq!(find(path, &value), found, "{path}");
    }
}

#[test]
fn filters_compare_numbers_truths_and_two_fields() {
    let value = json!({"items": [
        {"n": 1, "f": 1.5, "b": false, "low": 0},
        {"n": 2, "f": 2, "b": true, "low": 2},
        {"n": 3, "f": 2.5, "b": true},
    ]});
    for (filter, found) in [
        ("@.n==2", vec!["2"]),
        ("@.n!=2", vec!["1", "3"]),
        ("@.n<2", vec!["1"]),
        ("@.n<=2", vec!["1", "2"]),
        ("@.n>2", vec!["3"]),
        ("@.n>=2", vec!["2", "3"]),
        ("@.n==+2", vec!["2"]),
        ("@.f>1.5", vec!["2", "3"]),
        ("@.f==2.0", vec!["2"]),
        ("@.b==true", vec!["2", "3"]),
        ("@.n==@.low", vec!["2"]),
        ("@.n>@.low", vec!["1"]),
    ] {
        assert_eq!(find(&format!(".items[?({filter})].n"), &value), found, "{filter}");
    }
    let large = json!([{"n": 9_007_199_254_740_992_i64}, {"n": 9_007_199_254_740_993_i64}]);
    let found = find("[?(@.n==9007199254740993)].n", &large);
    assert_eq!(found, ["9007199254740993"], "a whole number is compared as such");
}

#[test]
fn a_comparison_of_other_types_or_of_several_values_finds_nothing() {
    let value = json!({"items": [{"t": "x", "list": [1, 2]}, {"t": 1, "list": [1]}]});
    for filter in ["@.t=='x'", "@.list[*]==1"] {
        assert_eq!(find(&format!(".items[?({filter})]"), &value), [""; 0], "{filter}");
    }
}

#[test]
fn a_backslash_takes_a_quote_as_it_is() {
    let value = json!({"it's": 1, "items": [{"t": "it's) so", "n": 2}, {"t": "it", "n": 3}]});
    assert_eq!(find(r"['it\'s']", &value), ["1"]);
    assert_eq!(find(r".items[?(@.t=='it\'s) so')].n", &value), ["2"]);
}

#[test]
fn rejects_slices_and_filters_that_are_none() {
    let error = |text: &str| JsonPath::parse(text).unwrap_err();
    for index in ["::0", "::-1", "1:2:3:4"] {
        let path = format!(".a[{index}]");
        assert_eq!(error(&path), PathError::InvalidIndex(index.to_owned()));
    }
    assert_eq!(error(".a[0,1]"), PathError::Unsupported("a union"));
    assert_eq!(error(".a[?(@.b=='c'd)]"), PathError::InvalidOperand("'c'd".to_owned()));
    for operator in ["=", "=<", "<>"] {
        let path = format!(".a[?(@.b{operator}1)]");
        assert_eq!(error(&path), PathError::Unsupported("this filter operator"), "{path}");
    }
}
