//! What is parsed, what it is worth, and what is refused.

use serde_json::{Value, json};

use super::*;

fn asked(rule: &str, new: &Value) -> Result<bool, Failure> {
    holds(
        &parse(rule).expect(rule),
        new,
        Some(&json!({"a": "x"})),
        &mut Budget::default(),
    )
}

#[test]
fn rules_hold_or_do_not() {
    let value = json!({"a": "x", "n": 3, "list": [1, 2], "on": true, "none": null});
    for (rule, expected) in [
        ("self.a == 'x' && self.n > 2", true),
        ("self.a + '.' + \"y\" == 'x.y'", true),
        ("has(self.b) && self.b == '' ? false : self.on", true),
        ("!(self.n + 1 + 1 <= 4)", true),
        ("self.n >= 4 || self.n != 3", false),
        ("size(self.list) == 2 && self.a.size() < 2", true),
        (
            "self.a.startsWith('x') && self.a.endsWith('x') && self.a.contains('')",
            true,
        ),
        ("self == oldSelf", false),
        ("self.a == oldSelf.a", true),
        ("has(self.none)", false),
        ("self.b == 'x' || true", true),
        ("self.b == 'x' && false", false),
    ] {
        assert_eq!(asked(rule, &value), Ok(expected), "{rule}");
    }
}

#[test]
fn what_has_no_answer_says_why() {
    let error = |why: &str| Err(Failure::Error(why.to_owned()));
    assert_eq!(asked("self.b == 'x' && true", &json!({})), error("no such key: b"));
    let most = json!({"n": i64::MAX});
    assert_eq!(asked("self.n + 1 > 0", &most), error("integer overflow"));
}

#[test]
fn rules_of_large_values_end_when_their_budget_does() {
    let large = json!({"a": "x".repeat(4_000_000)});
    let rule = vec!["self.a == self.a"; 20].join(" && ");
    assert_eq!(asked(&rule, &large), Err(Failure::Exhausted));
}

#[test]
fn what_is_not_evaluated_is_refused_by_name() {
    for (rule, name) in [
        ("self.a.matches('x')", "function 'matches'"),
        ("self.list.all(x, x > 1)", "function 'all'"),
        ("duration(self.a) > 1", "function 'duration'"),
        ("self.a in ['x']", "operator 'in'"),
        ("['x'] == self.list", "a list or an index"),
        ("self.list[0] == 1", "a list or an index"),
        ("self.n - 1 > 0", "operator '-'"),
        ("self.n > 1.5", "the number 1.5"),
        ("self.a == null", "null"),
        ("self.a == r'x'", "the string prefix \"r\""),
        ("self.namespace == 'x'", "field 'namespace'"),
    ] {
        assert_eq!(parse(rule), Err(Refusal::Unsupported(name.to_owned())), "{rule}");
    }
    let deep = format!("{}true{}", "(".repeat(500), ")".repeat(500));
    for long in [deep, "!".repeat(400), vec!["true"; 1000].join("||")] {
        assert!(matches!(parse(&long), Err(Refusal::Unsupported(_))));
    }
}

#[test]
fn what_is_no_expression_is_wrong() {
    for rule in [
        "",
        "self.",
        "self.a ==",
        "self a",
        "(self.a",
        "'x",
        "self.a === 1",
        "other",
        "has(self)",
        "@",
        "'\\",
    ] {
        assert!(matches!(parse(rule), Err(Refusal::Wrong(_))), "{rule}");
    }
}
