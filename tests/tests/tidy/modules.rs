//! A `lib.rs` or `mod.rs` is a reading order: a module imports only those that are declared above it,
//! so that neither a crate nor a folder has circles.

use std::collections::{BTreeMap, BTreeSet};

use super::expect_none;
use super::files::{File, hand_written};
use super::lexer::split;

/// Imports against the order, which are to go. One that is gone fails the test until it leaves the list.
const AGAINST_THE_ORDER: &[(&str, &str, &str)] = &[
    ("codegen/src/dialect/mod.rs", "step", "mysql"),
    ("crates/store/src/lib.rs", "past", "past_list"),
    ("crates/store/src/lib.rs", "write", "changes"),
    ("crates/store/src/lib.rs", "write", "replaced"),
];

#[test]
fn a_module_imports_only_modules_above_it() {
    let files = hand_written(&[".rs"]);
    let is_listed = |file: &&File| file.path.ends_with("src/lib.rs") || file.path.ends_with("/mod.rs");
    let is_test = |file: &&File| {
        ["tests/tests/", "tests/fixtures/", "kindex/tests/"]
            .iter()
            .any(|tests| file.path.starts_with(tests))
    };
    let mut found = BTreeSet::new();
    for list in files.iter().filter(is_listed).filter(|file| !is_test(file)) {
        let folder = Folder::of(list);
        for file in files.iter().filter(|file| file.path.starts_with(&folder.path)) {
            found.extend(folder.upward_imports(file));
        }
    }
    let known = |(list, module, other): &(String, String, String)| {
        AGAINST_THE_ORDER.contains(&(list.as_str(), module.as_str(), other.as_str()))
    };
    let mut findings: Vec<String> = found
        .iter()
        .filter(|import| !known(import))
        .map(|(list, module, other)| format!("{list}: `{module}` imports `{other}`, which is declared below it"))
        .collect();
    for (list, module, other) in AGAINST_THE_ORDER {
        let gone = !found.contains(&((*list).to_owned(), (*module).to_owned(), (*other).to_owned()));
        if gone {
            findings.push(format!(
                "{list}: `{module}` no longer imports `{other}`: take it off the list"
            ));
        }
    }
    expect_none(findings);
}

/// A folder of modules, as the file in it says that declares them.
struct Folder {
    list: String,
    path: String,
    /// Whether `crate::` means this folder.
    is_crate: bool,
    /// In order, without those of tests.
    modules: Vec<String>,
    /// What the file takes out of its modules, so that others have it from here.
    exported: BTreeMap<String, String>,
}

impl Folder {
    fn of(list: &File) -> Self {
        let name = list.path.rsplit('/').next().unwrap_or_default();
        let code = split(&list.text).code;
        let modules = declared(&code);
        let mut exported = BTreeMap::new();
        for module in &modules {
            for start in [format!("use {module}::"), format!("use self::{module}::")] {
                for (at, found) in code.match_indices(&start) {
                    for item in names(&code[at + found.len()..]) {
                        exported.insert(item, module.clone());
                    }
                }
            }
        }
        Self {
            path: list.path[..list.path.len() - name.len()].to_owned(),
            list: list.path.clone(),
            is_crate: name == "lib.rs",
            modules,
            exported,
        }
    }

    /// List, module and imported module.
    fn upward_imports(&self, file: &File) -> Vec<(String, String, String)> {
        let below = &file.path[self.path.len()..];
        let module = below.split(['/', '.']).next().unwrap_or_default();
        let Some(own) = self.place(module) else {
            return Vec::new();
        };
        let code = split(&file.text).code;
        let production = code.split("#[cfg(test)]").next().unwrap_or_default();
        let depth = below.matches('/').count() + usize::from(!below.ends_with("/mod.rs"));
        let mut imported = imports(production, &"super::".repeat(depth));
        if self.is_crate {
            imported.extend(imports(production, "crate::"));
        }
        let modules = imported.iter().map(|name| self.exported.get(name).unwrap_or(name));
        let upward = modules.filter(|name| self.place(name).is_some_and(|other| other > own));
        upward
            .map(|other| (self.list.clone(), module.to_owned(), other.clone()))
            .collect()
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.modules.iter().position(|module| module == name)
    }
}

/// The modules that a file declares, in order, without those of tests.
fn declared(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut of_tests = false;
    for line in code.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let declaration = line.strip_suffix(';').and_then(|line| line.rsplit_once("mod "));
        if let Some((visibility, name)) = declaration
            && (visibility.is_empty() || visibility.starts_with("pub"))
            && !of_tests
        {
            names.push(name.trim().to_owned());
        }
        of_tests = line == "#[cfg(test)]";
    }
    names
}

/// Every name that follows exactly this path, alone or in a group.
fn imports(code: &str, path: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(path) {
        let before = &code[..at];
        let goes_on = before.ends_with("::") || before.ends_with(|c: char| c == '_' || c.is_alphanumeric());
        if !goes_on {
            found.extend(names(&code[at + path.len()..]));
        }
    }
    found
}

/// The name, or the names of the group, that a path goes on with.
fn names(after: &str) -> Vec<String> {
    let Some(group) = after.strip_prefix('{') else {
        return vec![identifier(after)];
    };
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
    assert_eq!(imports(code, "crate::"), BTreeSet::from(expected));
    assert_eq!(
        declared("mod a;\npub mod b;\npub(crate) mod c;\n#[cfg(test)]\nmod tests;\nuse d;"),
        ["a", "b", "c"]
    );
}

/// As in a circle of two files of a folder within a folder.
#[test]
fn an_import_against_the_order_is_found_in_every_folder() {
    let file = |path: &str, text: &str| File {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let folder = Folder::of(&file("x/src/y/mod.rs", "mod a;\n\nmod b;\n\npub use b::Thing;\n"));
    let found = |path: &str, text: &str| folder.upward_imports(&file(path, text)).len();
    assert_eq!(found("x/src/y/a.rs", "use super::b::f;\n"), 1);
    assert_eq!(found("x/src/y/a.rs", "use super::Thing;\n"), 1, "by another name");
    assert_eq!(found("x/src/y/a/c.rs", "use super::super::{Other, b};\n"), 1);
    assert_eq!(found("x/src/y/a/mod.rs", "use super::b;\n"), 1);
    assert_eq!(found("x/src/y/b.rs", "use super::a;\n"), 0, "in the order");
    assert_eq!(found("x/src/y/a.rs", "use super::super::b;\n"), 0, "of another folder");
    assert_eq!(
        found("x/src/y/a.rs", "#[cfg(test)]\nmod tests {\n    use super::b;\n}\n"),
        0
    );
}
