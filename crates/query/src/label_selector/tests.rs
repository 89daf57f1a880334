//! The grammar of label selectors, and the server's words for what is outside it.

use super::*;

fn parsed(text: &str) -> Vec<(String, Test)> {
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
        ("a=in", is(&["in"])),
        ("a in (in,notin)", is(&["in", "notin"])),
        ("a", Test::Exists),
        ("!a", Test::DoesNotExist),
        ("! a", Test::DoesNotExist),
    ] {
        assert_eq!(parsed(text), [("a".to_owned(), test)], "{text}");
    }
    assert_eq!(parsed(""), []);
    assert_eq!(parsed(" "), []);
    assert_eq!(parsed("in in (in)"), [("in".to_owned(), is(&["in"]))]);
    let keys: Vec<String> = parsed("team in (a,b),!old,x/y=,z")
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(keys, ["team", "old", "x/y", "z"]);
}

#[test]
fn what_is_outside_the_grammar_is_refused_in_the_servers_words() {
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
        (
            "a in ()",
            "unable to parse requirement: values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            "a notin ( )",
            "unable to parse requirement: values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
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
    let both = refused("a in (-b,-c)");
    assert!(both.contains(": [values[0][a]: ") && both.contains(", values[1][a]: ") && both.ends_with(']'));
    assert!(refused(&format!("a={}", "v".repeat(64))).ends_with("must be no more than 63 characters"));
    assert!(refused("a>1").contains("'>' compares labels as numbers"));
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
fn labels_match_as_in_kubernetes() {
    let labels = BTreeMap::from([
        ("team".to_owned(), "risk".to_owned()),
        ("old".to_owned(), String::new()),
    ]);
    for (text, matches) in [
        ("", true),
        ("team=risk", true),
        ("team in (fraud,risk),old", true),
        ("team!=fraud,new!=x,!new", true),
        ("new notin (x)", true),
        ("old=", true),
        ("team=fraud", false),
        ("team=risk,new", false),
        ("!old", false),
        ("team notin (risk)", false),
    ] {
        let selector = LabelSelector::parse(text).expect(text);
        assert_eq!(selector.matches(&labels), matches, "{text}");
    }
}
