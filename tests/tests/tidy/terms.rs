//! One term for each concept, from the glossary: terms that it retired come back in nothing that people read (pages,
//! messages, help, comments, manifests and scripts). Knows nothing of ordinary English.

use clap::{Command, CommandFactory as _};
use kindex::cli::Cli;

use super::expect_none;
use super::files::{File, hand_written};
use super::rust::Rust;
use super::sources::RUST_FILES;

/// A retired term, with what to say instead.
type Term = (&'static str, &'static str);

/// What nothing that people read says any more, with what it says instead.
const IN_PROSE: &[Term] = &[
    ("in so many words", "explicitly"),
    ("bear", "have, as an object has a reference"),
    ("bore", "had, as an object had a reference"),
    ("borne", "had, or tolerated"),
    ("goes along", "is deleted with it"),
    ("go along", "are deleted with it"),
    ("went along", "was deleted with it"),
    ("takes along", "deletes with it"),
    ("take along", "delete with it"),
    ("taken along", "deleted with it"),
    ("takes them along", "deletes them with it"),
    ("take them along", "delete them with it"),
    ("on its way out", "leaving the cluster"),
    ("on their way out", "leaving the cluster"),
    ("turned away", "rejected"),
    ("in sql alone", "archived, or of a SQL-only kind"),
    ("of sql alone", "of a SQL-only kind"),
    ("sql alone has", "archived, or of a SQL-only kind"),
    ("sql alone keeps", "of a SQL-only kind"),
    ("evicted object", "archived object"),
    ("evicted row", "row of an archived object"),
    ("evicted or deleted", "archived or deleted"),
    ("deleted or evicted", "deleted or archived"),
    ("deleted and evicted", "deleted and archived"),
    ("live and evicted", "live and archived"),
    ("evicted version", "archived version"),
    ("evicted holder", "archived holder"),
    ("evicted target", "archived target"),
    ("counts as evicted", "counts as an eviction"),
    ("stored only", "archived"),
    ("comes to rest", "drains"),
    ("lets go of", "releases"),
    ("is amiss", "is wrong"),
    ("unguarded", "without the finalizer, or without the graph"),
    ("is guarded", "has the finalizer"),
    ("are guarded", "have the finalizer"),
    ("was guarded", "had the finalizer"),
    ("were guarded", "had the finalizer"),
    ("stays guarded", "keeps the finalizer"),
    ("guarded object", "object with the finalizer"),
    ("guarded client", "client that waits for the finalizer"),
    ("its guard", "its finalizer, or its version check"),
    ("guards its object", "adds the finalizer to its object"),
    ("guards their object", "adds the finalizer to their object"),
    ("version guard", "version check"),
    ("a cursor", "a position, or a continue token"),
    ("the cursor", "the position, or the continue token"),
    ("its cursor", "its position, or its continue token"),
    ("refuses to know", "knows nothing of"),
    ("is let pass", "is allowed"),
    ("here comes", "expected"),
    ("on our word", "by our delete"),
    ("spelt", "spelled"),
    ("misspelt", "misspelled"),
];

/// What pages, messages, help, manifests and scripts do not say either. In comments of code it is ordinary English.
const IN_TEXTS: &[Term] = &[
    ("it is tried again", "retrying"),
    ("mend", "correct, fix or restore"),
    ("mended", "corrected, fixed or restored"),
    ("mending", "correcting, fixing or restoring"),
];

/// What follows on `stored only` where it says when or how something is stored.
const AFTER_STORED_ONLY: [&str; 7] = ["if", "when", "where", "once", "after", "by", "as"];

/// What follows on `is no` where that is plain English.
const AFTER_IS_NO: [&str; 5] = ["longer", "more", "less", "such", "other"];

/// Where the retired terms stand because they are explained.
const EXCEPT: &[&str] = &[
    "docs/src/reference/glossary.md",
    "tests/tests/tidy/terms.rs",
    "tests/tests/tidy/words.rs",
];

/// The endings of what people read besides pages and Rust. Those without a dot are names of scripts.
const OTHER_ENDINGS: &[&str] = &[
    ".json",
    ".yaml",
    ".yml",
    ".tpl",
    ".toml",
    ".proto",
    ".py",
    ".sh",
    "run",
    "tests",
    "build",
    "check",
    "install",
    "Containerfile",
];

fn is_checked(file: &File) -> bool {
    !EXCEPT.contains(&file.path.as_str())
}

/// The hand-written texts besides pages and Rust that have to use the terms.
pub(super) fn others() -> impl Iterator<Item = File> {
    hand_written(OTHER_ENDINGS).into_iter().filter(is_checked)
}

/// The Rust files that have to use the terms.
pub(super) fn sources() -> impl Iterator<Item = &'static (File, Rust)> {
    RUST_FILES.iter().filter(|(file, _)| is_checked(file))
}

/// What is retired outside of comments of code.
fn in_texts() -> impl Iterator<Item = &'static Term> {
    IN_PROSE.iter().chain(IN_TEXTS)
}

fn message_of((term, instead): &Term) -> String {
    format!("`{term}` is retired: say `{instead}`")
}

/// Where a text in small letters has a term, in the singular or the plural.
fn places<'t>(text: &'t str, term: &'t str) -> impl Iterator<Item = usize> {
    let is_term = move |at: &usize| {
        let (before, after) = (&text[..*at], &text[*at + term.len()..]);
        let next = after.split_whitespace().next().unwrap_or_default();
        let rest = after.strip_prefix('s').unwrap_or(after);
        // Pages list tests by their names, which are code.
        let is_part = |c: char| c.is_alphabetic() || c == '_';
        let is_longer = before.ends_with(is_part) || rest.starts_with(is_part);
        let is_other = term == "stored only" && AFTER_STORED_ONLY.contains(&next);
        !is_longer && !is_other
    };
    text.match_indices(term).map(|(at, _)| at).filter(is_term)
}

/// The retired terms in a text, with what to say instead.
fn retired_in(text: &str) -> impl Iterator<Item = String> {
    let text = text.to_lowercase();
    let found = in_texts().filter(move |(term, _)| places(&text, term).next().is_some());
    found.map(message_of)
}

/// Those of these terms that are in a text, with the number of the line on which each begins. A term may continue on
/// the next line, after the marks with which lines of comments, lists and quotations begin.
fn retired_in_lines(text: &str, terms: impl Iterator<Item = &'static Term>) -> Vec<(usize, String)> {
    let is_mark = |c: char| c.is_whitespace() || "/!#*>|-".contains(c);
    let (mut joined, mut starts) = (String::new(), Vec::new());
    for line in text.lines() {
        starts.push(joined.len());
        joined.push_str(&line.trim_start_matches(is_mark).trim_end().to_lowercase());
        joined.push(' ');
    }
    let line = |at: usize| starts.partition_point(|start| *start <= at) - 1;
    let mut found = Vec::new();
    for retired in terms {
        found.extend(places(&joined, retired.0).map(|at| (line(at), message_of(retired))));
    }
    found
}

/// Every `is no …` of a text that means `is not a …`. It may say that there is no such thing, and it may compare.
fn denials(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain = |at: usize| {
        let word = words.get(at).copied().unwrap_or_default();
        word.trim_matches(|c: char| !c.is_alphabetic()).to_lowercase()
    };
    let is_denial = |at: &usize| {
        let is_there = at.checked_sub(1).is_some_and(|before| plain(before) == "there");
        let is_plain = AFTER_IS_NO.contains(&plain(at + 2).as_str()) || plain(at + 3) == "than";
        matches!(words[*at], "is" | "are") && words[at + 1] == "no" && !is_there && !is_plain
    };
    let found = (0..words.len().saturating_sub(2)).filter(is_denial);
    let finding = |at: usize| format!("`{} no {}`: say `not a`", words[at], words[at + 2]);
    found.map(finding).collect()
}

/// A page of which what stands in backquotes is not read: the names of code that it gives may be former ones, because
/// readers of older programs look for these.
const WITH_FORMER_NAMES: &str = "CHANGELOG.md";

/// A page without what stands in backquotes. Its lines keep their numbers, and one backquote stands for each name, so
/// that the words around it are not taken for neighbors. Backquotes come in pairs within an entry.
fn without_code(page: &str) -> String {
    let mut prose = String::new();
    let mut in_code = false;
    for line in page.lines() {
        if line.starts_with("- ") {
            in_code = false;
        }
        for (at, part) in line.split('`').enumerate() {
            in_code ^= at > 0;
            prose.push_str(if in_code { "`" } else { part });
        }
        prose.push('\n');
    }
    prose
}

/// What of a page has to use the terms.
fn text_of(page: &File) -> String {
    match page.path == WITH_FORMER_NAMES {
        true => without_code(&page.text),
        false => page.text.clone(),
    }
}

/// Every place in a text of this file that has one of these terms.
fn findings_in(file: &File, text: &str, terms: impl Iterator<Item = &'static Term>) -> Vec<String> {
    let found = retired_in_lines(text, terms).into_iter();
    found.map(|(line, what)| file.finding(line, &what)).collect()
}

#[test]
fn pages_use_the_terms_of_the_glossary() {
    let pages = hand_written(&[".md"]).into_iter().filter(is_checked);
    let found = pages.flat_map(|page| findings_in(&page, &text_of(&page), in_texts()));
    expect_none(found.collect());
}

/// The whole page was exempt, and entries kept the terms of the day on which they were written.
#[test]
fn the_changelog_has_retired_terms_only_in_names_of_code() {
    let lines = |text: &str| -> Vec<usize> {
        let file = File {
            path: WITH_FORMER_NAMES.to_owned(),
            text: text.to_owned(),
        };
        let found = retired_in_lines(&text_of(&file), in_texts()).into_iter();
        found.map(|(line, _)| line).collect()
    };
    assert_eq!(
        lines("- `Archive::bears` and `kindex\n  bear` are `has_reference`.\n"),
        [0; 0]
    );
    assert_eq!(
        lines("- `Archive::bears` is there.\n- A target bears the `reference`.\n"),
        [1]
    );
    assert_eq!(lines("- An odd ` mark.\n- The target bears it.\n"), [1]);
}

#[test]
fn manifests_and_scripts_use_the_terms_of_the_glossary() {
    let found = others().flat_map(|file| findings_in(&file, &file.text, in_texts()));
    expect_none(found.collect());
}

#[test]
fn comments_use_the_terms_of_the_glossary() {
    let found = sources().flat_map(|(file, rust)| findings_in(file, &rust.comments, IN_PROSE.iter()));
    expect_none(found.collect());
}

#[test]
fn messages_use_the_terms_of_the_glossary() {
    let mut findings = Vec::new();
    for (file, rust) in sources() {
        for (line, text) in &rust.texts {
            findings.extend(retired_in(text).map(|what| file.finding(*line, &what)));
        }
    }
    expect_none(findings);
}

#[test]
fn messages_say_that_something_is_not_a_thing_instead_of_no_thing() {
    let mut findings = Vec::new();
    for (file, rust) in sources() {
        for (line, text) in &rust.texts {
            findings.extend(denials(text).iter().map(|what| file.finding(*line, what)));
        }
    }
    expect_none(findings);
}

/// Every text that a command and those below it show as help, with the name of its command.
fn help(command: &Command) -> Vec<(String, String)> {
    let own = [command.get_about(), command.get_long_about(), command.get_after_help()];
    let arguments = command.get_arguments();
    let of_arguments = arguments.flat_map(|argument| [argument.get_help(), argument.get_long_help()]);
    let texts = own.into_iter().chain(of_arguments).flatten();
    let mut found: Vec<_> = texts
        .map(|text| (command.get_name().to_owned(), text.to_string()))
        .collect();
    found.extend(command.get_subcommands().flat_map(help));
    found
}

#[test]
fn help_uses_the_terms_of_the_glossary() {
    let mut findings = Vec::new();
    for (command, text) in help(&Cli::command()) {
        findings.extend(retired_in(&text).map(|what| format!("the help of {command}: {what}")));
    }
    expect_none(findings);
}

#[test]
fn a_retired_term_is_found_in_any_case() {
    let found: Vec<String> = retired_in("It lives In SQL alone.").collect();
    assert_eq!(
        found,
        ["`in sql alone` is retired: say `archived, or of a SQL-only kind`"]
    );
    assert_eq!(retired_in("It is archived.").count(), 0);
}

/// As if every `no` after `is` denied a thing.
#[test]
fn a_denial_is_found_and_plain_english_is_not() {
    for text in [
        "{name:?} is no name",
        "{0:?} is no \"UUID\".",
        "the bodies are no objects",
        "an answer that is no\n    429",
        "There it is no name.",
    ] {
        assert_eq!(denials(text).len(), 1, "{text}");
    }
    for text in [
        "{name:?} is not a name",
        "there is no name",
        "There are no kinds.",
        "it is no longer there",
        "of this name is no such, and of that is no other",
        "the row is no newer than the object",
        "the answer is no. Try again",
        "this no name",
        "it is no",
    ] {
        assert_eq!(denials(text), [""; 0], "{text}");
    }
}

/// As if the end of a longer word, or its beginning, were the term.
#[test]
fn a_retired_term_is_whole_words() {
    let found = |text: &str| (retired_in(text).count(), retired_in_lines(text, in_texts()).len());
    for text in [
        "Here comes one.",
        "Evicted rows stay.",
        "It is stored only.",
        "(unguarded)",
        "Every object is guarded.",
        "The graph guards their objects.",
        "It resumes at the cursor.",
        "The evicted version comes again.",
        "Its deletion counts as evicted.",
        "The target bears the reference.",
        "What does not bear it is free.",
        "A holder goes along.",
        "An object on its way out.",
        "The caller is turned away.",
        "A misspelt kind gets a suggestion.",
        "It mends the row.",
    ] {
        assert_eq!(found(text), (1, 1), "{text}");
    }
    for text in [
        "There comes one.",
        "Restored only now.",
        "It comes to restore.",
        "Stored only once it ends.",
        "The column `guarded` counts them.",
        "A lock guards the list, for as long as the guard lives.",
        "The object is evicted, and archived then.",
        "What stands in the columns is read.",
        "`what_bears_the_reference_and_what_does_not_bear_it` with a bearer token.",
        "Calls take no turns away from other steps.",
        "The error names the way out.",
        "Amend what is recommended.",
    ] {
        assert_eq!(found(text), (0, 0), "{text}");
    }
}

/// An ending that is left out, or a directory that the walk does not enter, would miss one of these.
#[test]
fn manifests_and_scripts_are_among_what_is_read() {
    let paths: Vec<String> = others().map(|file| file.path).collect();
    for known in [
        "deploy/grafana/kindex.json",
        "deploy/prometheus/alerts.yaml",
        "deploy/helm/kindex/templates/_helpers.tpl",
        "sdk/python/check",
        ".ci/run",
        ".ci/tests",
        "tests/mysql/install",
    ] {
        assert!(paths.iter().any(|path| path == known), "{known}");
    }
}

/// A rule that reads line by line misses the first.
#[test]
fn a_retired_term_is_found_in_comments_manifests_and_scripts() {
    let rust = "//! An object that is on its way\n//! out.\nfn page() {} // Nothing is amiss.\n";
    let rust = Rust::parse(rust).expect("it compiles");
    let lines = |text: &str| -> Vec<usize> {
        let found = retired_in_lines(text, in_texts()).into_iter();
        found.map(|(line, _)| line).collect()
    };
    assert_eq!(lines(&rust.comments), [0, 2]);
    assert_eq!(lines("{\n  \"description\": \"Evicted objects.\"\n}\n"), [1]);
    assert_eq!(lines("groups:\n# An object that lives in SQL\n# alone.\n"), [1]);
    assert_eq!(lines("{{- /* Rows that are live and evicted. */}}\n"), [0]);
    assert_eq!(lines("#!/bin/sh\necho 'The program refuses to know.'\n"), [1]);
}

/// As if comments of code were read as texts, or pages and messages as comments.
#[test]
fn ordinary_words_are_retired_in_texts_and_not_in_comments() {
    let text = "Mend the row, then it is\ntried again.";
    assert_eq!(retired_in_lines(text, in_texts()).len(), 2);
    assert_eq!(retired_in(&text.replace('\n', " ")).count(), 2);
    assert_eq!(retired_in_lines(text, IN_PROSE.iter()).len(), 0);
}

#[test]
fn help_of_a_flag_of_an_inner_command_is_read() {
    let flag = clap::Arg::new("flag").long("flag").help("All evicted objects.");
    let program = Command::new("kindex").subcommand(Command::new("restore").arg(flag));
    let found = help(&program);
    assert!(
        found.contains(&("restore".to_owned(), "All evicted objects.".to_owned())),
        "{found:?}"
    );
}
