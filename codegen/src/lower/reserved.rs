//! Words that cannot name a column: those that a dialect of SQL reserves (a column of that name works only in quotes,
//! and people query these tables by hand), and those that Rust does not even accept as a raw identifier.

use crate::dialect;

/// Keywords that have no raw form.
const RUST: [&str; 3] = ["crate", "self", "super"];

/// Keywords that a module cannot be named without the raw form, which nobody wants to type.
#[rustfmt::skip]
const RUST_MODULE: [&str; 46] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match",
    "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait",
    "true", "try", "type", "unsafe", "use", "where",
];

/// Who reserves `name`, if somebody does.
pub(super) fn column(name: &str) -> Option<&'static str> {
    if dialect::ALL.iter().any(|dialect| dialect.reserves(name)) {
        Some("SQL")
    } else if RUST.contains(&name) {
        Some("Rust")
    } else {
        None
    }
}

/// Whether `name` is a Rust keyword and so cannot be the module of a kind.
pub(super) fn module(name: &str) -> bool {
    RUST_MODULE.contains(&name)
}
