//! Tests choose no engine by hand, so that none passes over a new one in silence: what they ask of an engine is a
//! method of `Backend`, lists of engines come from `kindex_tests::databases`, and files with statements of their own
//! name all addresses, so that the compiler leads whoever adds an engine there.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::expect_none;
use super::files::{File, all};
use super::sources::RUST_FILES;
use super::tokens::{braces, each_sequence, is_punct, line};

/// Where tests run on engines that somebody chooses.
const TESTS: &str = "tests/tests/";

/// The types of which each engine has a variant.
const OF_ENGINES: [&str; 2] = ["Address", "Dialect"];

/// The variants, which are called as the generator calls its dialects.
static VARIANTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    kindex_codegen::dialect::ALL
        .map(|dialect| format!("{dialect:?}"))
        .into()
});

/// The files below that may name an engine's variant, and what for.
const NAMED_IN: [(&str, &str); 11] = [
    ("sql/schema/plans.rs", "how rows are made, and statistics"),
    ("sql/schema/queries.rs", "the statements that each engine explains"),
    (
        "sql/schema/work.rs",
        "how an engine counts what it reads, and what statistics change",
    ),
    ("sql/store/backend.rs", "what tests ask of an engine"),
    ("sql/store/convert/history.rs", "a table that the schema lacks"),
    ("sql/store/convert/mod.rs", "how a row is refused"),
    (
        "sql/store/migrate.rs",
        "how the engine shows a number in the column of another type",
    ),
    ("sql/store/quarantine.rs", "how records are refused"),
    ("sql/store/rewound_meanwhile.rs", "how a change of a row is refused"),
    ("sql/store/second_connection.rs", "how the engine is connected to"),
    (
        "sql/store/unsigned.rs",
        "how numbers are shown, and the tables of earlier releases",
    ),
];

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
    let is_end = |token: &TokenTree| is_punct(token, ',') || braces(token).is_some();
    (0..sequence.len()).any(|at| match &sequence[at..] {
        [TokenTree::Ident(_), first, second, ..] => {
            let begins = at == 0 || is_end(&sequence[at - 1]);
            begins && is_punct(first, '=') && is_punct(second, '>')
        }
        _ => false,
    })
}

fn is_word(token: &TokenTree, word: &str) -> bool {
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
    let Some(inside) = file.path.strip_prefix(TESTS) else {
        return Vec::new();
    };
    let is_listed = NAMED_IN.iter().any(|(listed, _)| *listed == inside);
    let tokens: TokenStream = file.text.parse().expect("Rust");
    let mut lines = BTreeSet::new();
    each_sequence(tokens, &mut |sequence| {
        lines.extend(match is_listed {
            true => in_part(sequence),
            false => variants(sequence),
        });
    });
    let message = match is_listed {
        true => "name every engine, so that the compiler asks for a new one here",
        false => "an engine is chosen by hand: ask a method of `Backend`, or list the file with a reason",
    };
    lines.into_iter().map(|line| file.finding(line, message)).collect()
}

#[test]
fn no_test_chooses_an_engine_by_hand() {
    expect_none(RUST_FILES.iter().flat_map(|(file, _)| findings(file)).collect());
}

#[test]
fn each_file_that_may_name_an_engine_does() {
    for (listed, _) in NAMED_IN {
        let mut files = RUST_FILES.iter().map(|(file, _)| file);
        let file = files.find(|file| file.path.strip_prefix(TESTS) == Some(listed));
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

fn found(path: &str, text: &str) -> usize {
    let (path, text) = (format!("{TESTS}{path}"), text.to_owned());
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
    let rest = "fn f() -> u8 { match address { Address::Sqlite(_) => 1, _ => 2 } }";
    let by_name = "fn f() -> u8 { match address { Address::Sqlite(_) => { 1 } other => g(other) } }";
    let in_pair = "fn f() -> u8 { match (a, b) { (Address::Sqlite(_), Some(_)) => 1, _ => 2 } }";
    for planted in [or_nothing, if_let, asked, compared, other, rest, by_name, in_pair] {
        assert_eq!(found("sql/store/planted.rs", planted), 1, "{planted}");
        assert_eq!(found(listed, planted), 1, "{planted}");
    }
    let all = "fn f() -> u8 { match address { Address::Sqlite(_) if g() => 1, Address::Sqlite(_) => 2 } }";
    let imported = "use kindex_store::Address::*;";
    let made = "fn f() { everything(&Address::Sqlite(SqliteLocation::Memory)); }";
    for named in [all, imported, made] {
        assert_eq!(found("sql/store/planted.rs", named), 1, "{named}");
        assert_eq!(found(listed, named), 0, "{named}");
    }
    let of_fields = "use kindex_store::{Address, Dialect};\nfn f() -> Address { Address::mysql(&fields) }";
    let of_another_type = "fn f() -> bool { matches!(webhook.address, Address::Url(_)) }";
    for other in [of_fields, of_another_type] {
        assert_eq!(found("sql/store/planted.rs", other), 0, "{other}");
    }
}
