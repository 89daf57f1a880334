//! `lib.rs` is a reading order: a module imports only modules declared above it,
//! so that a crate has no cycles.

use std::collections::BTreeSet;

use super::expect_none;
use super::files::{File, hand_written};
use super::lexer::split;

#[test]
fn a_module_imports_only_modules_above_it() {
    let files = hand_written(&[".rs"]);
    let mut findings = Vec::new();
    for library in files.iter().filter(|file| file.path.ends_with("src/lib.rs")) {
        let source = library.path.trim_end_matches("lib.rs");
        let order = declared(&split(&library.text).code);
        for file in files.iter().filter(|file| file.path.starts_with(source)) {
            findings.extend(upward_imports(file, source, &order));
        }
    }
    expect_none(findings);
}

/// The modules that a `lib.rs` declares, in order.
fn declared(code: &str) -> Vec<String> {
    let lines = code.lines().map(str::trim);
    let names = lines.filter_map(|line| {
        let declaration = line.strip_suffix(';')?;
        let (visibility, name) = declaration.rsplit_once("mod ")?;
        (visibility.is_empty() || visibility.starts_with("pub")).then(|| name.trim().to_owned())
    });
    names.collect()
}

fn upward_imports(file: &File, source: &str, order: &[String]) -> Vec<String> {
    let place = |name: &str| order.iter().position(|module| module == name);
    let below = &file.path[source.len()..];
    let module = below.split(['/', '.']).next().unwrap_or("");
    let Some(own) = place(module) else {
        return Vec::new();
    };
    let code = split(&file.text).code;
    let production = code.split("#[cfg(test)]").next().unwrap_or("");
    let imports = imports(production);
    let upward = imports
        .into_iter()
        .filter(|name| place(name).is_some_and(|other| other > own));
    upward
        .map(|name| file.finding(0, &format!("`{module}` imports `{name}`, declared below it in lib.rs")))
        .collect()
}

/// Every module that is named after `crate::`, alone or in a group.
fn imports(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, word) in code.match_indices("crate::") {
        let after = &code[at + word.len()..];
        match after.strip_prefix('{') {
            None => names.insert(identifier(after)),
            Some(group) => {
                names.extend(group_members(group));
                true
            }
        };
    }
    names
}

fn group_members(group: &str) -> Vec<String> {
    let mut members = vec![identifier(group.trim_start())];
    let mut depth = 0;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => members.push(identifier(group[at + 1..].trim_start())),
            _ => {}
        }
    }
    members
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| *c == '_' || c.is_alphanumeric()).collect()
}

#[test]
fn groups_and_single_paths_are_both_seen() {
    let code = "use crate::a::B;\nuse crate::{c::{D, E}, f, g::H};\nlet x = crate::i::j();";
    let expected = ["a", "c", "f", "g", "i"].map(str::to_owned);
    assert_eq!(imports(code), BTreeSet::from(expected));
    assert_eq!(
        declared("mod a;\npub mod b;\npub(crate) mod c;\nuse d;"),
        ["a", "b", "c"]
    );
}
