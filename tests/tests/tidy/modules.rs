//! The file that declares modules is their reading order: a module imports only those that are declared above it,
//! so that neither a crate nor a folder has circles.

use std::collections::BTreeSet;

use super::expect_none;
use super::files::File;
use super::rust::Rust;
use super::sources::RUST_FILES;

#[test]
fn a_module_imports_only_modules_above_it() {
    let is_test = |file: &File| {
        file.path.contains("/tests/") || file.path.ends_with("/tests.rs") || file.path.starts_with("tests/fixtures/")
    };
    let mut found = BTreeSet::new();
    for (list, rust) in RUST_FILES.iter().filter(|(file, _)| !is_test(file)) {
        let folder = Folder::of(&list.path, rust);
        for (file, rust) in RUST_FILES
            .iter()
            .filter(|(file, _)| file.path.starts_with(&folder.path))
        {
            found.extend(folder.upward_imports(&file.path, rust));
        }
    }
    let reported = |(list, module, other): &(String, String, String)| {
        format!("{list}: `{module}` imports `{other}`, which is declared below it")
    };
    expect_none(found.iter().map(reported).collect());
}

/// A folder of modules in the order of the file that declares them.
struct Folder<'r> {
    list: String,
    path: String,
    /// Whether `crate::` means this folder.
    is_crate: bool,
    rust: &'r Rust,
}

impl<'r> Folder<'r> {
    /// The list stands in its folder, or beside it and is called like it.
    fn of(list: &str, rust: &'r Rust) -> Self {
        let name = list.rsplit('/').next().unwrap_or_default();
        let path = match name {
            "lib.rs" | "main.rs" | "mod.rs" => list[..list.len() - name.len()].to_owned(),
            _ => format!("{}/", list.trim_end_matches(".rs")),
        };
        Self {
            path,
            list: list.to_owned(),
            is_crate: ["lib.rs", "main.rs"].contains(&name),
            rust,
        }
    }

    /// List, module and imported module.
    fn upward_imports(&self, path: &str, rust: &Rust) -> Vec<(String, String, String)> {
        let below = &path[self.path.len()..];
        let module = below.split(['/', '.']).next().unwrap_or_default();
        let Some(own) = self.place(module) else {
            return Vec::new();
        };
        let depth = below.matches('/').count() + usize::from(!below.ends_with("/mod.rs"));
        let imported = rust.imports.iter().filter_map(|path| {
            let (name, start) = path.split_last()?;
            let from_here = start.len() == depth && start.iter().all(|part| part == "super");
            let from_crate = self.is_crate && start == ["crate"];
            (from_here || from_crate).then_some(name)
        });
        let modules = imported.map(|name| self.rust.exported.get(name).unwrap_or(name));
        let upward = modules.filter(|name| self.place(name).is_some_and(|other| other > own));
        upward
            .map(|other| (self.list.clone(), module.to_owned(), other.clone()))
            .collect()
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.rust.modules.iter().position(|module| module == name)
    }
}

/// As in a circle of two files of a folder within a folder.
#[test]
fn an_import_against_the_order_is_found_in_every_folder() {
    let list = Rust::parse("mod a;\n\nmod b;\n\npub use b::Thing;\n").expect("Rust");
    for place in ["x/src/y/mod.rs", "x/src/y.rs"] {
        let folder = Folder::of(place, &list);
        assert_eq!(folder.path, "x/src/y/");
        let found = |path: &str, text: &str| {
            let rust = Rust::parse(text).expect("Rust");
            folder.upward_imports(path, &rust).len()
        };
        assert_eq!(found("x/src/y/a.rs", "use super::b::f;\n"), 1);
        assert_eq!(found("x/src/y/a.rs", "use super::Thing;\n"), 1, "by another name");
        assert_eq!(found("x/src/y/a/c.rs", "use super::super::{Other, b};\n"), 1);
        assert_eq!(found("x/src/y/a/mod.rs", "use super::b;\n"), 1);
        assert_eq!(found("x/src/y/b.rs", "use super::a;\n"), 0, "in the order");
        assert_eq!(found("x/src/y/a.rs", "use super::super::b;\n"), 0, "of another folder");
        let of_tests = "#[cfg(test)]\nmod tests {\n    use super::b;\n}\n";
        assert_eq!(found("x/src/y/a.rs", of_tests), 0);
    }
}
