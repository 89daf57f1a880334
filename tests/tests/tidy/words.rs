//! One term for each concept, from the glossary: terms that it retired come back neither in pages, messages and help
//! nor as names in code. Knows nothing of ordinary English.

use clap::{Command, CommandFactory as _};
use kindex::cli::Cli;

use super::expect_none;
use super::files::{File, hand_written};
use super::rust::Rust;
use super::sources::RUST_FILES;

/// What pages, messages and help no longer say, with what they say instead.
const IN_PROSE: &[(&str, &str)] = &[
    ("in so many words", "explicitly"),
    ("the server bears", "the limit"),
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
    ("stored only", "archived"),
    ("comes to rest", "drains"),
    ("lets go of", "releases"),
    ("is amiss", "is wrong"),
    ("unguarded object", "object without the finalizer"),
    ("is let pass", "is allowed"),
    ("here comes", "expected"),
    ("on our word", "by our delete"),
];

/// What no type, function or variable has in its name, with the term for it.
const IN_NAMES: &[(&str, &str)] = &[
    ("buried", "tombstone"),
    ("buries", "needs_tombstone"),
    ("bury", "make_tombstone"),
    ("deed", "operation, attributes or action"),
    ("deeds", "operations or actions"),
    ("desk", "replica"),
    ("fate", "action"),
    ("fates", "actions"),
    ("glance", "state"),
    ("incarnation", "row"),
    ("incarnations", "rows_of_name"),
    ("mistake", "error"),
    ("mistakes", "errors"),
    ("outlived", "superseded"),
    ("patience", "retry budget, or the limit of a wait"),
    ("patiently", "with retries"),
    ("retold", "repeated"),
    ("sighting", "observed object"),
    ("sightings", "observed objects"),
    ("stray", "orphaned"),
    ("strays", "orphaned"),
    ("tell", "report, send or log"),
    ("told", "reported, received or sent"),
    ("unsaid", "absent or lost"),
    ("unsay", "branch_off_beyond"),
    ("untold", "no progress"),
    ("useless", "invalid"),
    ("whereabouts", "location"),
    ("wish", "action"),
    ("wishes", "options"),
];

/// What no type is called, although its parts and values may be, with the term for it.
const AS_TYPES: &[(&str, &str)] = &[
    ("Among", "Scope"),
    ("Behind", "Access"),
    ("News", "Event"),
    ("Passing", "InFlight"),
    ("Place", "Location, Position or what is placed"),
    ("Seeing", "Observation"),
    ("Who", "Identity"),
    ("Whose", "Owner, or Rights"),
    ("Words", "what the texts are"),
];

/// A longer name is a sentence, as those of tests are: ordinary English.
const NAME_WORDS_MAX: usize = 4;

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

/// The words of a name, in small letters: those of `FeedEntry` and `feed_entry` are the same.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut begins = false;
    for letter in name.chars() {
        if letter == '_' || (begins && letter.is_ascii_uppercase()) {
            words.push(String::new());
        }
        begins = !letter.is_ascii_uppercase();
        if let Some(word) = words.last_mut().filter(|_| letter != '_') {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The retired terms among the names of a line of code, with what to call them.
fn retired_names(line: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names: Vec<&str> = line.split(|c| !is_part(c)).filter(|name| !name.is_empty()).collect();
    let mut found = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| names[before]);
        let is_type = matches!(before, Some("struct" | "enum" | "trait" | "type" | "union"));
        let as_type = AS_TYPES.iter().filter(|(retired, _)| is_type && retired == name);
        found.extend(as_type.map(|(_, instead)| (*name, *instead)));
        let words = words_of(name);
        if words.len() <= NAME_WORDS_MAX {
            let retired = IN_NAMES
                .iter()
                .filter(|(retired, _)| words.iter().any(|word| word == retired));
            found.extend(retired.map(|(_, instead)| (*name, *instead)));
        }
    }
    let finding = |(name, instead): (&str, &str)| format!("`{name}` has a retired term: the glossary says `{instead}`");
    found.into_iter().map(finding).collect()
}

#[test]
fn names_are_terms_of_the_glossary() {
    let mut findings = Vec::new();
    for (file, rust) in sources() {
        for (number, line) in rust.code.lines().enumerate() {
            findings.extend(retired_names(line).into_iter().map(|what| file.finding(number, &what)));
        }
    }
    expect_none(findings);
}

#[test]
fn a_retired_term_is_found_in_any_case() {
    let found: Vec<String> = retired_in("It lives In SQL alone.").collect();
    assert_eq!(
        found,
        ["`in sql alone` is retired: the glossary says `archived, or of a SQL-only kind`"]
    );
    assert_eq!(retired_in("It is archived.").count(), 0);
}

/// A comparison of whole names, or of one spelling, would miss most of these.
#[test]
fn a_retired_term_is_found_in_compounds() {
    for line in [
        "let all_told = guarded;",
        "let _told_later = open();",
        "world.stray_rows();",
        "fn stray_holders()",
        "const FAILURES_TOLD: u32 = 3;",
        "Class::ReferenceStray",
        "retries.patiently()",
        "enum Place {",
        "pub(crate) struct Words<'a> {",
        "Bug::BuryAnyway",
        "enum Whereabouts {",
    ] {
        assert_eq!(retired_names(line).len(), 1, "{line}: {:?}", retired_names(line));
    }
}

#[test]
fn terms_of_the_field_and_sentences_are_no_retired_names() {
    for line in [
        "let rule = NotOlderThan;",
        "Step::Place { target }",
        "struct Placed;",
        "fn a_watch_is_told_of_the_objects_of_its_namespace_alone()",
        "impl Words {",
    ] {
        assert_eq!(retired_names(line), [""; 0], "{line}");
    }
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
