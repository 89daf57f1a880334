//! Whoever writes a platform, a kind or a registry by hand begins with an empty one, so that a new field has its
//! neutral value in one place. Tests that know the emitted kinds begin with one of those instead.

use std::collections::BTreeSet;

use super::expect_none;
use super::rust::Rust;
use super::sources::RUST_FILES;

/// The only file that spells every field.
const SPELLS: &str = "crates/model/src/empty.rs";

/// The folders whose tests know the emitted kinds.
const KNOW_EMITTED: [&str; 3] = ["crates/commands/", "kindex/", "tests/tests/"];

/// The files there that need an empty kind all the same, with the reason.
const NEED_EMPTY: [(&str, &str); 2] = [
    (
        "tests/tests/graph/kinds.rs",
        "its kinds are those of three services, which no crds.toml of one of them declares together",
    ),
    (
        "tests/tests/sql/store/widget.rs",
        "it has tables of its own, with columns that crds.toml refuses",
    ),
];

#[test]
fn only_an_empty_one_spells_every_field() {
    let mut files = RUST_FILES.iter();
    let spells = files.find(|(file, _)| file.path == SPELLS);
    let (_, spells) = spells.expect("the file with the empty ones");
    let fields = fields_of_empty(spells);
    assert_eq!(fields.len(), 3, "a platform, a kind and a registry");
    let mut findings = Vec::new();
    for (file, rust) in RUST_FILES.iter().filter(|(file, _)| file.path != SPELLS) {
        for line in spelled(&fields, rust) {
            findings.push(file.finding(line, "every field is spelled: take the neutral ones from `EMPTY`"));
        }
    }
    expect_none(findings);
}

#[test]
fn where_kinds_are_emitted_no_test_begins_with_an_empty_one() {
    let mut findings = Vec::new();
    for (file, rust) in RUST_FILES.iter().filter(|(file, _)| knows_emitted(&file.path)) {
        let reason = NEED_EMPTY.iter().find(|(path, _)| *path == file.path);
        let lines = empty_kinds(rust);
        match reason {
            Some((_, why)) if lines.is_empty() => {
                findings.push(file.finding(0, &format!("no empty kind is left, and it was excepted since {why}")));
            }
            Some(_) => {}
            None => findings.extend(lines.into_iter().map(|line| {
                let instead = "`Kind::EMPTY`: take a kind that is emitted, such as `..model::KIND`";
                file.finding(line, instead)
            })),
        }
    }
    expect_none(findings);
}

fn knows_emitted(path: &str) -> bool {
    KNOW_EMITTED.iter().any(|folder| path.starts_with(folder))
}

/// The lines that name an empty kind.
fn empty_kinds(rust: &Rust) -> Vec<usize> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let names = |line: &str| {
        let mut paths = line.split(|c| !is_path(c));
        paths.any(|path| path == "Kind::EMPTY" || path.ends_with("::Kind::EMPTY"))
    };
    let lines = rust.code.lines().enumerate();
    lines.filter(|(_, line)| names(line)).map(|(line, _)| line).collect()
}

/// The fields of each empty one.
fn fields_of_empty(spells: &Rust) -> Vec<&BTreeSet<String>> {
    let own = spells.structs.iter().filter(|literal| literal.name == "Self");
    own.map(|literal| &literal.fields).collect()
}

/// The lines of literals with all of these fields. Other structs have the same names, but not the same fields.
fn spelled(fields: &[&BTreeSet<String>], rust: &Rust) -> Vec<usize> {
    let spelled = rust.structs.iter().filter(|literal| fields.contains(&&literal.fields));
    spelled.map(|literal| literal.line).collect()
}

#[test]
fn a_literal_without_a_base_is_found() {
    let spells = "impl Kind {\n    const EMPTY: Self = Self { name: \"\", keys: none() };\n}\n";
    let spells = Rust::parse(spells).expect("Rust");
    let fields = fields_of_empty(&spells);
    let found = |text: &str| spelled(&fields, &Rust::parse(text).expect("Rust"));
    assert_eq!(found("static A: Kind = Kind { keys: &[], name: \"a\" };\n"), [0]);
    assert_eq!(
        found("fn f() {\n    g(vec![1, kind::Kind { name, keys }]);\n}\n"),
        [1],
        "in a macro"
    );
    let others = [
        "static A: Kind = Kind { name: \"a\", ..Kind::EMPTY };\n",
        "static A: Kind = Kind { name: \"a\", keys: &[], ..Kind::EMPTY };\n",
        "fn f(kind: &Kind) {\n    let Kind { name, keys } = kind;\n}\n",
        "static A: other::Kind = other::Kind { name: \"a\", samples: &[] };\n",
    ];
    for text in others {
        assert!(found(text).is_empty(), "{text}");
    }
}

/// As if only the base of a literal were one, or a comment, a text or what another type has.
#[test]
fn an_empty_kind_is_found_and_nothing_else() {
    let found = |text: &str| empty_kinds(&Rust::parse(text).expect("Rust"));
    assert_eq!(
        found("static A: Kind = Kind {\n    name: \"a\",\n    ..Kind::EMPTY\n};\n"),
        [2]
    );
    assert_eq!(found("fn f() {\n    g!(&kind::Kind::EMPTY, 1);\n}\n"), [1]);
    for text in [
        "//! Not `Kind::EMPTY`.\n",
        "const A: &str = \"..Kind::EMPTY\";\n",
        "static A: Registry = Registry { kinds: &[], ..Registry::EMPTY };\n",
        "static A: ForeignKind = ForeignKind::EMPTY;\n",
        "static A: Kind = Kind { name: \"a\", ..model::KIND };\n",
    ] {
        assert!(found(text).is_empty(), "{text}");
    }
    assert!(knows_emitted("kindex/tests/up/peers.rs") && knows_emitted("tests/tests/api/alone.rs"));
    assert!(!knows_emitted("crates/query/src/reach.rs") && !knows_emitted("tests/sim/src/thing.rs"));
}
