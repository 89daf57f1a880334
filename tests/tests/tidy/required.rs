//! Where all checks run, no test is passed over in silence: `.ci/run` names in `KINDEX_REQUIRE` each component that a
//! test asks for, and none that no test asks for. Knows no component but the exceptions.

use std::collections::BTreeSet;
use std::fs;

use proc_macro2::{Group, TokenStream, TokenTree};

use super::expect_none;
use super::files::{File, hand_written, root};
use super::tokens::{each_sequence, is_punct, line};

/// The script that runs all checks.
const RUN: &str = ".ci/run";
/// What it sets.
const VARIABLE: &str = "KINDEX_REQUIRE";
/// The functions of the script that run tests, each with the ending of the files of these.
const SUITES: [(&str, &str); 2] = [("run_tests", ".rs"), ("check_sdk", ".py")];

/// What `require` itself is made of.
const REQUIRE: &str = "tests/harness/src/require.rs";

/// What tests ask for and the script does not name, with the reason.
const NOT_NAMED: [(&str, &str); 1] = [(
    "mount",
    "many machines on which all checks can run let nobody mount a disk",
)];

/// A component that a test asks for, and the line, from zero. There is none where no literal says which one it is.
type Need = (usize, Option<String>);

fn needs(file: &File) -> Vec<Need> {
    match file.path.ends_with(".py") {
        true => needs_in_python(&file.text),
        false => needs_in_rust(&file.text),
    }
}

/// By `require("…", …)`, also in a macro, or by hand: then a closure compares what the variable names with a literal.
fn needs_in_rust(text: &str) -> Vec<Need> {
    if !text.contains("require(") && !text.contains(VARIABLE) {
        return Vec::new();
    }
    let tokens: TokenStream = text.parse().expect("Rust");
    let (mut needs, mut compared, mut by_hand) = (Vec::new(), Vec::new(), None);
    each_sequence(tokens, &mut |sequence| {
        for (at, token) in sequence.iter().enumerate() {
            if text_of(token).is_some_and(|text| text == VARIABLE) {
                by_hand = Some(line(token.span()));
            }
            compared.extend(compared_with(&sequence[at..]));
            if let [TokenTree::Ident(name), TokenTree::Group(arguments), ..] = &sequence[at..]
                && *name == "require"
            {
                let is_another = at > 0 && makes_another(&sequence[at - 1]);
                needs.extend((!is_another).then(|| (line(name.span()), first_text(arguments))));
            }
        }
    });
    if let Some(line) = by_hand {
        needs.extend(compared.is_empty().then_some((line, None)));
        needs.extend(compared);
    }
    needs
}

/// What a closure compares its argument with: `|it| it == "…"`.
fn compared_with(sequence: &[TokenTree]) -> Option<Need> {
    let [
        open,
        TokenTree::Ident(_),
        close,
        TokenTree::Ident(_),
        first,
        second,
        value,
        ..,
    ] = sequence
    else {
        return None;
    };
    let is_closure = is_punct(open, '|') && is_punct(close, '|');
    let is_comparison = is_punct(first, '=') && is_punct(second, '=');
    let text = text_of(value).filter(|_| is_closure && is_comparison)?;
    Some((line(value.span()), Some(text)))
}

/// Whether a `require` that follows is a method, or is defined.
fn makes_another(token: &TokenTree) -> bool {
    is_punct(token, '.') || matches!(token, TokenTree::Ident(word) if *word == "fn")
}

fn first_text(arguments: &Group) -> Option<String> {
    text_of(&arguments.stream().into_iter().next()?)
}

/// The value of a token that is a text.
fn text_of(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else {
        return None;
    };
    let text = syn::parse_str::<syn::LitStr>(&literal.to_string()).ok()?;
    Some(text.value())
}

/// By hand: the line that reads the variable looks for a literal in it.
fn needs_in_python(text: &str) -> Vec<Need> {
    let variable = format!("\"{VARIABLE}\"");
    let lines = text.lines().enumerate().filter(|(_, line)| line.contains(&variable));
    lines.map(|(number, line)| (number, sought_in_python(line))).collect()
}

/// What a line looks for in the environment: `"…" in os.environ…`.
fn sought_in_python(line: &str) -> Option<String> {
    let (before, _) = line.split_once(" in os.environ")?;
    let before = before.strip_suffix(" not").unwrap_or(before).strip_suffix('"')?;
    before.rsplit_once('"').map(|(_, component)| component.to_owned())
}

/// The components that a function of the script names.
fn named(script: &str, function: &str) -> BTreeSet<String> {
    let body = script.split_once(&format!("\n{function}() {{\n"));
    let (_, body) = body.unwrap_or_else(|| panic!("{RUN} has no function {function}"));
    let body = body.split("\n}").next().unwrap_or_default();
    let assignment = format!("{VARIABLE}=");
    let mut words = body.split_whitespace();
    let components = words.find_map(|word| word.strip_prefix(assignment.as_str()));
    let components = components.unwrap_or_else(|| panic!("{function} of {RUN} does not set {VARIABLE}"));
    components.split(',').map(str::to_owned).collect()
}

/// Where tests ask for what the script does not name, and what it names for none of them.
fn findings(files: &[&File], named: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    let mut unneeded = named.clone();
    for file in files {
        for (line, component) in needs(file) {
            let Some(component) = component else {
                found.push(file.finding(line, "say in a literal which component the test asks for"));
                continue;
            };
            unneeded.remove(&component);
            let is_exception = NOT_NAMED.iter().any(|(exception, _)| *exception == component);
            let message = match (named.contains(&component), is_exception) {
                (false, false) => format!("without `{component}` in {VARIABLE} of {RUN}, the test may be passed over"),
                (true, true) => format!("`{component}` is in {VARIABLE} of {RUN}: it is not an exception"),
                (true, false) | (false, true) => continue,
            };
            found.push(file.finding(line, &message));
        }
    }
    let unneeded = unneeded.into_iter();
    found.extend(unneeded.map(|component| format!("{RUN}: no test asks for `{component}` of {VARIABLE}")));
    found
}

/// Whether a file has tests, or what they share. The rules here name components only as cases of their own.
fn is_of_tests(file: &File) -> bool {
    let is_of_others = ["benches/", "tests/tests/tidy/"]
        .iter()
        .any(|start| file.path.starts_with(start));
    !is_of_others && file.path != REQUIRE
}

#[test]
fn where_all_checks_run_each_component_that_a_test_asks_for_is_required() {
    let script = fs::read_to_string(root().join(RUN)).expect("the script is there");
    let files = hand_written(&[".rs", ".py"]);
    let mut found = Vec::new();
    for (function, ending) in SUITES {
        let of_suite = files.iter().filter(|file| file.path.ends_with(ending));
        let of_suite: Vec<&File> = of_suite.filter(|file| is_of_tests(file)).collect();
        found.extend(findings(&of_suite, &named(&script, function)));
    }
    expect_none(found);
}

#[test]
fn what_need_not_be_there_is_asked_for() {
    let files = hand_written(&[".rs", ".py"]).into_iter().filter(is_of_tests);
    let needed = files.flat_map(|file| needs(&file));
    let needed: BTreeSet<String> = needed.filter_map(|(_, component)| component).collect();
    for (exception, _) in NOT_NAMED {
        assert!(needed.contains(exception), "no test asks for {exception}");
    }
}

fn found(path: &str, text: &str, named: &[&str]) -> usize {
    let (path, text) = (path.to_owned(), text.to_owned());
    let named = named.iter().map(|component| (*component).to_owned()).collect();
    findings(&[&File { path, text }], &named).len()
}

/// As if only one form were read, or only one of the two lists.
#[test]
fn a_component_that_is_not_required_is_found_and_so_is_one_that_no_test_asks_for() {
    let in_macro = r#"fn f() { assert!(kindex_harness::require::require("nats", Nats::installed()), "a server"); }"#;
    let after_another = r#"fn f() -> bool { kubectl_is_there() && require("nats", Nats::installed()) }"#;
    let by_hand = r#"fn f() -> bool { var("KINDEX_REQUIRE").is_ok_and(|it| it.split(',').any(|it| it == "nats")) }"#;
    let python = r#"assert "nats" not in os.environ.get("KINDEX_REQUIRE", "").split(","), "it is not there""#;
    let python_if = r#"if "nats" in os.environ["KINDEX_REQUIRE"]:"#;
    for (path, text) in [
        ("a.rs", in_macro),
        ("a.rs", after_another),
        ("a.rs", by_hand),
        ("a.py", python),
        ("a.py", python_if),
    ] {
        assert_eq!(found(path, text, &["nats"]), 0, "{text}");
        assert_eq!(found(path, text, &[]), 1, "{text}");
        assert_eq!(found(path, text, &["nats", "walk"]), 1, "{text}");
        assert_eq!(found(path, text, &["walk"]), 2, "{text}");
    }
    let excepted = r#"fn f() -> bool { require("mount", true) }"#;
    assert_eq!(found("a.rs", excepted, &[]), 0);
    assert_eq!(found("a.rs", excepted, &["mount"]), 1);
}

/// As if what is no literal asked for nothing, and as if everything of this name asked for something.
#[test]
fn a_component_that_no_literal_names_is_found_and_other_functions_are_not() {
    let variable = "fn f(component: &str) -> bool { require(component, true) }";
    let by_hand = r#"fn f(component: &str) -> bool { var("KINDEX_REQUIRE").is_ok_and(|it| it == component) }"#;
    for (path, text) in [
        ("a.rs", variable),
        ("a.rs", by_hand),
        ("a.py", r#"required = os.environ["KINDEX_REQUIRE"]"#),
    ] {
        assert_eq!(found(path, text, &[]), 1, "{text}");
    }
    let others = r#"fn require(path: String) {} fn f(imports: Imports) -> bool { imports.require(path); x == "walk" }"#;
    assert_eq!(found("a.rs", others, &[]), 0);
}

#[test]
fn the_components_of_a_function_are_those_that_it_sets_itself() {
    let script =
        "\nfirst() {\n    local -x A=1 KINDEX_REQUIRE=a,b B=2\n}\n\nsecond() {\n    local -x KINDEX_REQUIRE=c\n}\n";
    let of = |function| named(script, function).into_iter().collect::<Vec<_>>();
    assert_eq!(of("first"), ["a", "b"]);
    assert_eq!(of("second"), ["c"]);
}
