//! Whoever writes a platform, a kind or a registry by hand begins with an empty one, so that a new field has its
//! neutral value in one place.

use std::collections::BTreeSet;

use super::expect_none;
use super::rust::Rust;
use super::sources::RUST_FILES;

/// The only file that spells every field.
const SPELLS: &str = "crates/model/src/empty.rs";

#[test]
fn only_an_empty_one_spells_every_field() {
    let mut files = RUST_FILES.iter();
    let spells = files.find(|(file, _)| file.path == SPELLS);
    let (_, spells) = spells.expect("the file with the empty ones");
    let fields = fields_of_empty(spells);
    assert_eq!(fields.len(), 3, "a platform, a kind and a registry");
    let mut findings = Vec::new();
    for (file, rust) in RUST_FILES.iter().filter(|(file, _)| file.path != SPELLS) {
        for line in spelt(&fields, rust) {
            findings.push(file.finding(line, "every field is spelt: take the neutral ones from `EMPTY`"));
        }
    }
    expect_none(findings);
}

/// The fields of each empty one.
fn fields_of_empty(spells: &Rust) -> Vec<&BTreeSet<String>> {
    let own = spells.structs.iter().filter(|literal| literal.name == "Self");
    own.map(|literal| &literal.fields).collect()
}

/// The lines of literals with all of these fields. Other structs have the same names, but not the same fields.
fn spelt(fields: &[&BTreeSet<String>], rust: &Rust) -> Vec<usize> {
    let spelt = rust.structs.iter().filter(|literal| fields.contains(&&literal.fields));
    spelt.map(|literal| literal.line).collect()
}

#[test]
fn a_literal_without_a_base_is_found() {
    let spells = "impl Kind {\n    const EMPTY: Self = Self { name: \"\", keys: none() };\n}\n";
    let spells = Rust::parse(spells).expect("Rust");
    let fields = fields_of_empty(&spells);
    let found = |text: &str| spelt(&fields, &Rust::parse(text).expect("Rust"));
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
