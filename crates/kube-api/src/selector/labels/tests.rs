//! The grammar of label selectors, and the server's messages for what is outside of it.

use serde_json::json;

use super::*;

fn read(text: &str) -> Vec<(String, Test)> {
    let selector = LabelSelector::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let requirements = selector.requirements.into_iter();
    requirements
        .map(|requirement| (requirement.key, requirement.test))
        .collect()
}

fn values(values: &[&str]) -> BTreeSet<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

fn refused(text: &str) -> String {
    LabelSelector::parse(text).expect_err(text).to_string()
}

#[test]
fn each_form_is_read() {
    let is = |list: &[&str]| Test::In(values(list));
    let is_not = |list: &[&str]| Test::NotIn(values(list));
    for (text, test) in [
        ("a=b", is(&["b"])),
        ("a==b", is(&["b"])),
        (" a = b ", is(&["b"])),
        ("a=", is(&[""])),
        ("a!=b", is_not(&["b"])),
        ("a!=", is_not(&[""])),
        ("a in (b)", is(&["b"])),
        ("a in (c, b,c)", is(&["b", "c"])),
        ("a in(b)", is(&["b"])),
        ("a notin\t(b)", is_not(&["b"])),
        ("a in (,b)", is(&["", "b"])),
        ("a in (b,)", is(&["", "b"])),
        ("a in (b,,c)", is(&["", "b", "c"])),
        ("a in (,)", is(&[""])),
        ("a in ()", is(&[""])),
        ("a notin ( )", is_not(&[""])),
        ("a=in", is(&["in"])),
        ("a in (in,notin)", is(&["in", "notin"])),
        ("a", Test::Exists),
        ("!a", Test::DoesNotExist),
        ("! a", Test::DoesNotExist),
        ("a>1", Test::GreaterThan(1)),
        ("a > 007", Test::GreaterThan(7)),
        ("a<9223372036854775807", Test::LessThan(i64::MAX)),
    ] {
        assert_eq!(read(text), [("a".to_owned(), test)], "{text}");
    }
    assert_eq!(read(""), []);
    assert_eq!(read(" "), []);
    assert_eq!(read("in in (in)"), [("in".to_owned(), is(&["in"]))]);
    let keys: Vec<String> = read("team in (a,b),!old,x/y=,z")
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(keys, ["team", "old", "x/y", "z"]);
}

#[test]
fn what_is_outside_the_grammar_is_refused_with_the_servers_message() {
    for (text, words) in [
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        (
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            "a()",
            "unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt",
        ),
        ("a==(b)", "unable to parse requirement: found '(', expected: identifier"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        (
            "a in (",
            "unable to parse requirement: found '', expected: ',', ')' or identifier",
        ),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        (
            "a in (b c)",
            "unable to parse requirement: found 'c', expected: ',' or ')'",
        ),
        (
            "a in (,",
            "unable to parse requirement: found '', expected: ',', or identifier",
        ),
    ] {
        assert_eq!(refused(text), words, "{text}");
    }
}

#[test]
fn keys_and_values_that_no_label_can_have_are_refused() {
    let words = "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of";
    assert!(refused("-a=b").starts_with(words));
    let words = "unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid label must be";
    assert!(refused("a=-b").starts_with(words));
    assert!(refused("a in (ok,-b)").starts_with(words));
    assert!(refused("a notin (ok,-b)").starts_with(words));
    let both = refused("a in (-b,-c)");
    assert!(both.contains(": [values[0][a]: ") && both.contains(", values[1][a]: ") && both.ends_with(']'));
    assert!(refused(&format!("a={}", "v".repeat(64))).ends_with("must be no more than 63 bytes"));
    let number = |text: &str| {
        format!(
            "unable to parse requirement: values[0]: Invalid value: {text:?}: for 'Gt', 'Lt' operators, the value must be an integer"
        )
    };
    for text in ["", "x", "1.5", "9223372036854775808"] {
        assert_eq!(refused(&format!("a>{text}")), number(text));
        assert_eq!(refused(&format!("a<{text}")), number(text));
    }
    // An integer with a sign is one, and is no value of a label.
    let words = "unable to parse requirement: values[0][a]: Invalid value: \"-1\": a valid label must be";
    assert!(refused("a>-1").starts_with(words));
    assert!(refused("a<=1").ends_with("found '=', expected: identifier"));
}

#[test]
fn no_text_of_a_selector_is_ever_more_than_a_key_or_a_value() {
    for text in [
        "a='; DROP TABLE run; --",
        "a' OR '1'='1",
        "a in ('x') UNION SELECT 1",
        "a=b`",
        "a=\"b\"",
        "a=\\",
        "a=%",
        "a=b\0c",
        "a/*b*/=c",
    ] {
        refused(text);
    }
}

#[test]
fn each_operator_decides_as_kubernetes_does() {
    let labels = [
        ("app", "web"),
        ("tier", ""),
        ("rank", "7"),
        ("zeros", "007"),
        ("long", "9223372036854775808"),
    ];
    for (text, is_selected) in [
        ("", true),
        ("app=web", true),
        ("app==web", true),
        ("app = web , rank", true),
        ("app!=web", false),
        ("other!=x", true),
        ("app!=db,other!=x,!other", true),
        ("app in (db, web)", true),
        ("app in (db,web),tier", true),
        ("app in (db)", false),
        ("app notin (db)", true),
        ("other notin (db)", true),
        ("app notin (web)", false),
        ("app", true),
        ("!app", false),
        ("!other", true),
        ("app=web,other", false),
        ("tier=", true),
        ("tier=,app", true),
        ("tier in (,)", true),
        ("tier in ()", true),
        ("rank>6", true),
        ("rank>7", false),
        ("rank<8", true),
        ("rank<7", false),
        ("zeros>6,zeros<8", true),
        // Neither is what is beyond 64 bits above or below anything.
        ("long>1", false),
        ("long<1", false),
        ("app>1", false),
        ("app<1", false),
        ("tier<1", false),
        ("other<1", false),
        ("in=x", false),
    ] {
        let selector = LabelSelector::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let value_of = |key: &str| labels.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
        assert_eq!(selector.matches(value_of), is_selected, "{text}");
    }
    let absent = LabelSelector::parse("!a").unwrap();
    assert!(absent.matches(|_| None) && absent.matches_json(&Value::Null));
    assert!(!absent.matches_json(&json!({"a": "b"})));
}

#[test]
fn a_selector_has_so_many_terms_and_values_at_most() {
    let terms = |count: usize| vec!["a!=b"; count].join(",");
    let values = |count: usize| format!("a in ({})", vec!["b"; count].join(","));
    for text in [terms(TERMS_MAX), values(VALUES_MAX)] {
        assert!(LabelSelector::parse(&text).is_ok());
    }
    for text in [
        terms(TERMS_MAX + 1),
        values(VALUES_MAX + 1),
        terms(100_000),
        values(100_000),
    ] {
        assert_eq!(LabelSelector::parse(&text), Err(SelectorError::TooMany));
    }
}

#[test]
fn what_is_outside_the_grammar_is_refused() {
    for selector in [
        "a=b=c", "a in b", "a in (b", "=x", ",a", "a,", "a b", "a>x", "a(b)", "-a=b", "a=b!", "()",
    ] {
        assert!(LabelSelector::parse(selector).is_err(), "{selector}");
    }
}
