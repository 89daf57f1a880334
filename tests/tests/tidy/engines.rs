//! Tests choose no engine by hand, so that none passes over a new one in silence: what they ask of an engine is a
//! method of `Backend`, lists of engines come from `kindex_tests::databases`, and files with statements of their own
//! name all addresses, so that the compiler leads whoever adds an engine there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::expect_none;
use super::files::{File, all};
use super::sources::RUST_FILES;
use super::tokens::{braces, each_sequence, is_punct, line};

/// Whether tests are there that run on engines which somebody chooses.
pub(super) fn has_tests(path: &str) -> bool {
    let of_service = path.strip_prefix("services/").and_then(|path| path.split_once('/'));
    path.starts_with("tests/tests/")
        || path.starts_with("kindex/tests/")
        || of_service.is_some_and(|(_, inside)| inside.starts_with("tests/"))
}

/// The types of which each engine has a variant.
const OF_ENGINES: [&str; 2] = ["Address", "Dialect"];

/// The variants, which are called as the generator calls its dialects.
static VARIANTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    kindex_codegen::dialect::ALL
        .map(|dialect| format!("{dialect:?}"))
        .into()
});

/// The files that may name an engine's variant, and what for.
const NAMED_IN: [(&str, &str); 12] = [
    ("kindex/tests/faults/database.rs", "where databases under faults are"),
    ("tests/tests/sql/schema/plans.rs", "how rows are made, and statistics"),
    (
        "tests/tests/sql/schema/queries.rs",
        "the statements that each engine explains",
    ),
    (
        "tests/tests/sql/schema/work.rs",
        "how an engine counts what it reads, and what statistics change",
    ),
    ("tests/tests/sql/store/backend.rs", "what tests ask of an engine"),
    (
        "tests/tests/sql/store/convert/history.rs",
        "a table that the schema lacks",
    ),
    ("tests/tests/sql/store/convert/mod.rs", "how a row is refused"),
    (
        "tests/tests/sql/store/migrate.rs",
        "how the engine shows a number in the column of another type",
    ),
    ("tests/tests/sql/store/quarantine.rs", "how records are refused"),
    (
        "tests/tests/sql/store/rewound_meanwhile.rs",
        "how a change of a row is refused",
    ),
    (
        "tests/tests/sql/store/second_connection.rs",
        "how the engine is connected to",
    ),
    (
        "tests/tests/sql/store/unsigned.rs",
        "how numbers are shown, and the tables of earlier releases",
    ),
];

/// The modules of `kindex_tests::databases` that make databases, each with the dialect that these have.
const MAKERS: [(&str, &str); 3] = [("mariadb", "mysql"), ("mysql", "mysql"), ("sqlite", "sqlite")];

/// The functions of these modules that make one.
const MAKES: [&str; 3] = ["database", "file", "memory"];

/// The lines, from zero, in which a sequence names an engine's variant, or may name any.
fn variants(sequence: &[TokenTree]) -> Vec<usize> {
    let paths = sequence.windows(4).filter(|window| {
        let is_path = is_punct(&window[1], ':') && is_punct(&window[2], ':');
        is_path && OF_ENGINES.iter().any(|name| is_word(&window[0], name)) && may_be_variant(&window[3])
    });
    paths.map(|path| line(path[0].span())).collect()
}

/// The lines, from zero, in which a sequence chooses an engine and says nothing of the others.
fn in_part(sequence: &[TokenTree]) -> Vec<usize> {
    let mut lines = Vec::new();
    for (at, token) in sequence.iter().enumerate() {
        let rest = &sequence[at + 1..];
        if is_word(token, "let") {
            let end = rest.iter().position(|token| is_punct(token, '='));
            lines.extend(within(&rest[..end.unwrap_or(rest.len())]));
        }
        match rest {
            [mark, TokenTree::Group(group), ..] if is_word(token, "matches") && is_punct(mark, '!') => {
                lines.extend(within(&[TokenTree::Group(group.clone())]));
            }
            [second, compared @ ..] if (is_punct(token, '=') || is_punct(token, '!')) && is_punct(second, '=') => {
                // A path at most: the end of a longer text is another expression.
                lines.extend(variants(&compared[..compared.len().min(PATH_TOKENS_MAX)]));
                lines.extend(variants(last_path(&sequence[..at])));
            }
            _ => {}
        }
    }
    if has_arm_for_the_rest(sequence) {
        lines.extend(within(sequence));
    }
    lines
}

/// As many as `kindex_store::Dialect::MySql` has.
const PATH_TOKENS_MAX: usize = 7;

/// The type and the variant with which a sequence ends, without what the variant holds.
fn last_path(sequence: &[TokenTree]) -> &[TokenTree] {
    let path = match sequence {
        [path @ .., TokenTree::Group(_)] => path,
        _ => sequence,
    };
    &path[path.len().saturating_sub(4)..]
}

/// The lines, from zero, in which a sequence gives a type another name, by which its variants are not found.
fn other_names(sequence: &[TokenTree]) -> Vec<usize> {
    let is_type = |token: &TokenTree| OF_ENGINES.iter().any(|name| is_word(token, name));
    let mut lines = Vec::new();
    for (at, token) in sequence.iter().enumerate() {
        match &sequence[at..] {
            // Not that of a trait, which is imported for its methods, and not `<Address as Trait>`.
            [_, to, TokenTree::Ident(name), rest @ ..] if is_type(token) && is_word(to, "as") && name != "_" => {
                let is_import = rest.first().is_none_or(|end| is_punct(end, ',') || is_punct(end, ';'));
                lines.extend(is_import.then(|| line(token.span())));
            }
            [_, TokenTree::Ident(_), is, rest @ ..] if is_word(token, "type") && is_punct(is, '=') => {
                let end = rest.iter().position(|token| is_punct(token, ';'));
                let last = end.and_then(|end| rest[..end].last());
                lines.extend(last.filter(|last| is_type(last)).map(|last| line(last.span())));
            }
            _ => {}
        }
    }
    lines
}

/// The lines, from zero, in which a sequence makes a database of an engine that it names, each with its dialect.
fn made(sequence: &[TokenTree]) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for path in sequence.windows(4) {
        if is_punct(&path[1], ':') && is_punct(&path[2], ':') {
            let makes = |maker: &str| match is_word(&path[0], "Engine") {
                true => is_word(&path[3], maker),
                false => is_word(&path[0], maker) && MAKES.iter().any(|function| is_word(&path[3], function)),
            };
            let makers = MAKERS.iter().filter(|(maker, _)| makes(maker));
            found.extend(makers.map(|(_, dialect)| (line(path[0].span()), *dialect)));
        }
    }
    found
}

/// As [`variants`], in groups as well, but for those in braces.
fn within(sequence: &[TokenTree]) -> Vec<usize> {
    let mut lines = variants(sequence);
    for token in sequence {
        if let TokenTree::Group(group) = token
            && group.delimiter() != Delimiter::Brace
        {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            lines.extend(within(&inner));
        }
    }
    lines
}

/// Whether a sequence is that of a `match` with an arm that takes whatever is left, by `_` or by a name.
fn has_arm_for_the_rest(sequence: &[TokenTree]) -> bool {
    let ends_arm = |token: &TokenTree| is_punct(token, ',') || braces(token).is_some();
    (1..sequence.len()).any(|at| {
        if !is_punct(&sequence[at - 1], '=') || !is_punct(&sequence[at], '>') {
            return false;
        }
        let before = &sequence[..at - 1];
        let begins = before.iter().rposition(ends_arm).map_or(0, |end| end + 1);
        before[begins..].split(|token| is_punct(token, '|')).any(takes_all)
    })
}

/// Whether a pattern takes every value.
fn takes_all(pattern: &[TokenTree]) -> bool {
    match pattern {
        [TokenTree::Ident(name)] => {
            let is_value = *name == "true" || *name == "false";
            !is_value && name.to_string().starts_with(|c: char| c == '_' || c.is_lowercase())
        }
        [first, second] if is_punct(first, '.') && is_punct(second, '.') => true,
        [TokenTree::Ident(word), rest @ ..] if *word == "ref" || *word == "mut" => takes_all(rest),
        [TokenTree::Ident(_), mark, rest @ ..] if is_punct(mark, '@') => takes_all(rest),
        [mark, TokenTree::Group(_), rest @ ..] if is_punct(mark, '#') => takes_all(rest),
        [mark, rest @ ..] if is_punct(mark, '&') => takes_all(rest),
        [TokenTree::Group(group)] => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            let mut parts = inner
                .split(|token| is_punct(token, ','))
                .filter(|part| !part.is_empty());
            !inner.is_empty() && parts.all(takes_all)
        }
        _ => false,
    }
}

pub(super) fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if *ident == word)
}

/// Whether what follows the path of a type is a variant, or a list or a star, which may have one.
fn may_be_variant(token: &TokenTree) -> bool {
    match token {
        TokenTree::Ident(name) => VARIANTS.iter().any(|variant| name == variant),
        TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => true,
    }
}

/// Where a test chooses an engine.
fn findings(file: &File) -> Vec<String> {
    if !has_tests(&file.path) {
        return Vec::new();
    }
    let is_listed = NAMED_IN.iter().any(|(listed, _)| *listed == file.path);
    let tokens: TokenStream = file.text.parse().expect("Rust");
    let (mut lines, mut makers) = (BTreeSet::new(), BTreeMap::new());
    each_sequence(tokens, &mut |sequence| {
        lines.extend(other_names(sequence));
        lines.extend(match is_listed {
            true => in_part(sequence),
            false => variants(sequence),
        });
        makers.extend(made(sequence).into_iter().map(|(line, dialect)| (dialect, line)));
    });
    let message = match is_listed {
        true => "name every engine, so that the compiler asks for a new one here",
        false => "an engine is chosen by hand: ask a method of `Backend`, or list the file with a reason",
    };
    let chosen = lines.into_iter().map(|line| file.finding(line, message));
    // A test of one engine names that one, and the compiler leads to a file that is listed.
    let is_list = makers.len() > 1 && !is_listed;
    let message = "engines are listed by hand: take those of `kindex_tests::databases::engines`";
    let lists = makers.into_values().max().filter(|_| is_list);
    chosen.chain(lists.map(|line| file.finding(line, message))).collect()
}

#[test]
fn no_test_chooses_an_engine_by_hand() {
    expect_none(RUST_FILES.iter().flat_map(|(file, _)| findings(file)).collect());
}

#[test]
fn each_file_that_may_name_an_engine_does() {
    for (listed, _) in NAMED_IN {
        let mut files = RUST_FILES.iter().map(|(file, _)| file);
        let file = files.find(|file| file.path == listed);
        let tokens = file.map(|file| file.text.parse::<TokenStream>().expect("Rust"));
        let mut names = false;
        each_sequence(tokens.unwrap_or_default(), &mut |sequence| {
            names |= !variants(sequence).is_empty();
        });
        assert!(names, "{listed} names no engine, and is listed");
    }
}

/// Whoever adds a dialect finds all of them in the table, each by its name.
#[test]
fn the_table_of_a_new_dialect_has_each_file_that_names_engines() {
    let pages = all(&["CONTRIBUTING.md"]);
    let mut sections = pages.iter().flat_map(|page| page.text.split("\n## "));
    let section = sections.find(|section| section.starts_with("Add a dialect\n"));
    let section = section.expect("the section is there");
    for (listed, _) in NAMED_IN {
        let name = listed.rsplit('/').next().unwrap_or(listed);
        let is_there = ["/", "`"]
            .iter()
            .any(|before| section.contains(&format!("{before}{name}`")));
        assert!(is_there, "whoever adds a dialect is not told of {listed}");
    }
}

/// A file that is not listed.
const PLANTED: &str = "tests/tests/sql/store/planted.rs";

fn found(path: &str, text: &str) -> usize {
    let (path, text) = (path.to_owned(), text.to_owned());
    findings(&File { path, text }).len()
}

/// As if only `let … else` were looked for, only addresses, or only files that are not listed.
#[test]
fn an_engine_that_is_chosen_by_hand_is_found() {
    let (listed, _) = NAMED_IN[0];
    let or_nothing = "fn f() { let Address::MySql(options) = &backend.address else { return; }; }";
    let if_let = "fn f() { if let Some(kindex_store::Address::MySql(_)) = address { g(); } }";
    let asked = "fn f() -> bool { matches!(backend.address, Address::Sqlite(SqliteLocation::Memory)) }";
    let compared = "fn f() -> bool { store.dialect() == Dialect::Sqlite }";
    let other = "fn f() -> bool { store.dialect() != kindex_store::Dialect::MySql }";
    let reversed = "fn f() -> bool { g() && kindex_store::Dialect::MySql == store.dialect() }";
    let reversed_address = "fn f() -> bool { Address::Sqlite(SqliteLocation::Memory) != backend.address }";
    for planted in [or_nothing, if_let, asked, compared, other, reversed, reversed_address] {
        assert_eq!(found(PLANTED, planted), 1, "{planted}");
        assert_eq!(found(listed, planted), 1, "{planted}");
    }
    let all = "fn f() -> u8 { match address { Address::Sqlite(_) if g() => 1, Address::Sqlite(_) => 2 } }";
    let imported = "use kindex_store::Address::*;";
    let made = "fn f() { everything(&Address::Sqlite(SqliteLocation::Memory)); }";
    let then_compared = "fn f() -> bool { g(Dialect::Sqlite, store) == h() }";
    for named in [all, imported, made, then_compared] {
        assert_eq!(found(PLANTED, named), 1, "{named}");
        assert_eq!(found(listed, named), 0, "{named}");
    }
    let of_fields = "use kindex_store::{Address, Dialect};\nfn f() -> Address { Address::mysql(&fields) }";
    let of_another_type = "fn f() -> bool { matches!(webhook.address, Address::Url(_)) }";
    for other in [of_fields, of_another_type] {
        assert_eq!(found(PLANTED, other), 0, "{other}");
    }
}

/// As if only `_` and a name stood for the rest, and not what is made of them.
#[test]
fn an_arm_that_takes_whatever_is_left_is_found() {
    let (listed, _) = NAMED_IN[0];
    let found = |arms: &str| found(listed, &format!("fn f() -> u8 {{ match address {{ {arms} }} }}"));
    for arms in [
        "Address::Sqlite(_) => 1, _ => 2",
        "Address::Sqlite(_) => { 1 } other => g(other)",
        "Address::Sqlite(_) => 1, ref other => g(other)",
        "Address::Sqlite(_) => 1, ref mut other => g(other)",
        "Address::Sqlite(_) => 1, &_ => 2",
        "Address::Sqlite(_) => 1, other @ _ => g(other)",
        "Address::Sqlite(_) => 1, Address::MySql(_) | _ => 2",
        "Address::Sqlite(_) => 1, #[cfg(unix)] _ => 2",
        "(Address::Sqlite(_), Some(_)) => 1, _ => 2",
        "(Address::Sqlite(_), Some(_)) => 1, (_, _) => 2",
        "(Address::Sqlite(_), Some(_)) => 1, (ref other, (_, ..)) => g(other)",
        "(Address::Sqlite(_), Some(_)) => 1, (..) => 2",
        "[Address::Sqlite(_), last] => 1, [_, _] => 2",
    ] {
        assert_eq!(found(arms), 1, "{arms}");
    }
    for arms in [
        "Address::Sqlite(_) => 1, Address::MySql(other) => g(other)",
        "Address::Sqlite(_) => 1, other if g(other) => 2, Address::MySql(_) => 3",
        "Some(Address::Sqlite(_)) => 1, Some(Address::MySql(_)) => 2, None => 3",
        "(Address::Sqlite(_), _) => 1, (Address::MySql(_), None) => 2, (_, Some(_)) => 3",
        "Address::Sqlite(_) => match size { 0 => 1, _ => 2 }, Address::MySql(_) => 3",
        "true => g(Address::Sqlite(SqliteLocation::Memory)), false => h()",
    ] {
        assert_eq!(found(arms), 0, "{arms}");
    }
}

/// As if a type had one name.
#[test]
fn another_name_of_a_type_is_found() {
    let (listed, _) = NAMED_IN[0];
    let found = |text: &str| [found(PLANTED, text), found(listed, text)];
    for text in [
        "use kindex_store::Address as Location;",
        "use kindex_store::{Address as Location, MetadataStorage};",
        "use kindex_store::{MetadataStorage, Dialect as Sql};",
        "type Location = kindex_store::Address;",
    ] {
        assert_eq!(found(text), [1, 1], "{text}");
    }
    for text in [
        "use kindex_codegen::dialect::{Dialect as _, MySql};",
        "fn f() { let address = <Address as FromStr>::from_str(text); }",
        "use kindex_model::object::Object as Text;",
        "type Places = Vec<Address>;",
    ] {
        assert_eq!(found(text), [0, 0], "{text}");
    }
}

/// As if each engine had to be named by a variant.
#[test]
fn a_list_of_engines_is_found_and_one_engine_is_not() {
    let (listed, _) = NAMED_IN[0];
    let each =
        "fn f() { g(&sqlite::memory()); if let Some(database) = mariadb::database(Flavor::Plain) { g(&database) } }";
    let as_engines = "fn f() -> Vec<Engine> { Engine::mysql().into_iter().chain([Engine::sqlite()]).collect() }";
    for text in [each, as_engines] {
        assert_eq!(found(PLANTED, text), 1, "{text}");
        assert_eq!(found(listed, text), 0, "{text}");
    }
    let servers = "fn f() { g(mariadb::database(Flavor::Plain)); g(mysql::database()); }";
    let file = "fn f() { g(&sqlite::file(path)); g(&sqlite::memory()); }";
    let drivers = "use sqlx::mysql::MySqlConnection;\nuse sqlx::sqlite::SqliteConnection;";
    for text in [servers, file, drivers] {
        assert_eq!(found(PLANTED, text), 0, "{text}");
    }
    let dialects: BTreeSet<&str> = MAKERS.iter().map(|(_, dialect)| *dialect).collect();
    let all = BTreeSet::from(kindex_codegen::dialect::ALL.map(|dialect| dialect.word()));
    assert_eq!(dialects, all, "each dialect has a module that makes its databases");
}

/// As if the tests of this crate were all that there are.
#[test]
fn tests_of_the_program_and_of_services_choose_no_engine_either() {
    let chosen = "fn f() { everything(&Address::Sqlite(SqliteLocation::Memory)); }";
    for (path, finds) in [
        ("kindex/tests/up/planted.rs", 1),
        ("services/planted/tests/planted.rs", 1),
        ("services/planted/src/tests/planted.rs", 0),
        ("benches/planted.rs", 0),
    ] {
        assert_eq!(found(path, chosen), finds, "{path}");
    }
}
