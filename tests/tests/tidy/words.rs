//! One term for each concept, from the glossary: terms that it retired come back neither in pages and messages nor as
//! names in code. Knows nothing of ordinary English.

use super::expect_none;
use super::files::{File, hand_written};
use super::rust::Rust;
use super::sources::RUST_FILES;

/// What pages and messages no longer say, with what they say instead.
const IN_PROSE: &[(&str, &str)] = &[
    ("in so many words", "explicitly"),
    ("the server bears", "the limit"),
    ("lives in sql alone", "is archived"),
    ("stored only", "archived"),
    ("comes to rest", "drains"),
    ("lets go of", "releases"),
    ("is amiss", "is wrong"),
    ("unguarded object", "object without the finalizer"),
    ("is let pass", "is allowed"),
    ("here comes", "expected"),
    ("on our word", "by our delete"),
];

/// What no type, function or variable is called, with the term for it.
const IN_NAMES: &[(&str, &str)] = &[
    ("Deed", "Operation, Attributes or UserAction"),
    ("Desk", "Replica"),
    ("Incarnation", "NamedRow"),
    ("Mistake", "FileError"),
    ("Passing", "InFlight"),
    ("Patience", "RetryBudget"),
    ("Seeing", "Observation"),
    ("Sighting", "ObservedObject"),
    ("Told", "FeedEntry"),
    ("Untold", "NoProgress"),
    ("Wish", "LeaseAction"),
    ("Wishes", "MigrationOptions"),
    ("incarnation", "row"),
    ("incarnations", "rows_of_name"),
    ("mistake", "error"),
    ("mistakes", "errors"),
    ("outlived", "superseded"),
    ("strays", "orphaned_sides"),
    ("tell", "report, send or log"),
    ("told", "reported, received or sent"),
    ("unsaid", "lost"),
    ("unsay", "branch_off_beyond"),
];

/// Where the retired terms stand because they are explained, or because that was what was said then.
const EXCEPT: &[&str] = &[
    "CHANGELOG.md",
    "docs/src/reference/glossary.md",
    "tests/tests/tidy/words.rs",
];

fn is_checked(file: &File) -> bool {
    !EXCEPT.contains(&file.path.as_str())
}

fn sources() -> impl Iterator<Item = &'static (File, Rust)> {
    RUST_FILES.iter().filter(|(file, _)| is_checked(file))
}

/// The retired terms in a text, with what to say instead.
fn retired_in(text: &str) -> impl Iterator<Item = String> {
    let text = text.to_lowercase();
    let found = IN_PROSE.iter().filter(move |(term, _)| text.contains(term));
    found.map(|(term, instead)| format!("`{term}` is retired: the glossary says `{instead}`"))
}

#[test]
fn pages_use_the_terms_of_the_glossary() {
    let mut findings = Vec::new();
    for page in hand_written(&[".md"]).iter().filter(|page| is_checked(page)) {
        for (number, line) in page.text.lines().enumerate() {
            findings.extend(retired_in(line).map(|what| page.finding(number, &what)));
        }
    }
    expect_none(findings);
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
fn names_are_terms_of_the_glossary() {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut findings = Vec::new();
    for (file, rust) in sources() {
        for (number, line) in rust.code.lines().enumerate() {
            for word in line.split(|c| !is_part(c)) {
                let retired = IN_NAMES.iter().filter(|(name, _)| *name == word);
                findings.extend(retired.map(|(name, instead)| {
                    file.finding(number, &format!("`{name}` is retired: the glossary says `{instead}`"))
                }));
            }
        }
    }
    expect_none(findings);
}

#[test]
fn a_retired_term_is_found_in_any_case() {
    let found: Vec<String> = retired_in("It Lives in SQL alone.").collect();
    assert_eq!(
        found,
        ["`lives in sql alone` is retired: the glossary says `is archived`"]
    );
    assert_eq!(retired_in("It is archived.").count(), 0);
}
